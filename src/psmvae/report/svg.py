"""Compact SVG of a matplotlib figure, for a page with hundreds of pictures.

A renderer of matplotlib that differs from matplotlib's own in these points:

- the lengths of the view box are tenths of a point, so that coordinates are short whole numbers,
  and neighbouring marks of one style are one path;
- text is text in the font of the page; its widths are estimated, so no font is loaded;
- colours of the palette are CSS variables with the colour as a fallback;
- there are no identifiers, style sheets or definitions that could clash with those of the page.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_hex
from matplotlib.path import Path
from numpy.typing import NDArray

from psmvae.graphics import labels
from psmvae.graphics.axes import SIZE
from psmvae.graphics.palette import BG, FG, INK, LIGHT, MUTED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

_UNIT = 10  # units of the view box in a point
_TOLERANCE = 0.3  # points by which a simplified curve may differ
_ROLES = {colour: role for role, colour in LIGHT.items()}
_ANCHORS = {"center": "middle", "right": "end"}


class _Style(NamedTuple):
    """How a path is drawn; paths that follow each other in one style become one."""

    fill: str | None = None
    stroke: str | None = None
    width: int = 0
    fill_opacity: float = 1.0
    stroke_opacity: float = 1.0
    dashes: str = ""
    cap: str = ""
    crisp: bool = False

    def attributes(self) -> str:
        parts = [] if self.fill is None else [f'fill="{_css(self.fill)}"']
        if self.stroke is not None:
            parts.append(f'stroke="{_css(self.stroke)}" stroke-width="{self.width}"')
            if self.stroke_opacity < 1:
                parts.append(f'stroke-opacity="{_decimal(self.stroke_opacity)}"')
        if self.fill is not None and self.fill_opacity < 1:
            parts.append(f'fill-opacity="{_decimal(self.fill_opacity)}"')
        if self.dashes:
            parts.append(f'stroke-dasharray="{self.dashes}"')
        if self.cap:
            parts.append(f'stroke-linecap="{self.cap}"')
        if self.crisp:
            # neighbouring cells without a seam between them
            parts.append('shape-rendering="crispEdges"')
        return " ".join(parts)


def to_svg(figure: Figure, alt: str) -> str:
    """Return a figure as an ``<svg>`` element.

    Parameters
    ----------
    figure : matplotlib Figure
        With 72 dots per inch, so that a dot is a point.
    alt : str
        What the picture shows, for those who do not see it.

    Returns
    -------
    str
        The element, without an XML declaration.
    """
    renderer = _Renderer(figure)
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    figure.draw(renderer)
    width, height = renderer.get_canvas_width_height()
    # a style attribute would be against the Content-Security-Policy of the page, which makes a
    # picture smaller where there is less room
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label={quoteattr(alt)} '
        f'viewBox="0 0 {width * _UNIT:.0f} {height * _UNIT:.0f}" '
        f'width="{1.3 * width:.0f}" direction="ltr" font-family="inherit" '
        f'font-size="{SIZE * _UNIT:.0f}" fill="none" stroke-linejoin="round">'
        f"{renderer.finish()}</svg>"
    )


class _Renderer(RendererBase):
    """Draw the artists of a figure as elements of SVG."""

    def __init__(self, figure: Figure) -> None:
        super().__init__()
        self._size = float(figure.bbox.width), float(figure.bbox.height)
        self._parts: list[str] = []
        self._style: _Style | None = None
        self._data: list[str] = []
        self._texts: list[str] = []
        self._merging = False

    def finish(self) -> str:
        """Return the elements: text is above all marks."""
        self._flush()
        return "".join([*self._parts, f'<g fill="{_css(FG)}">', *self._texts, "</g>"])

    # what matplotlib asks of a renderer

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self._size

    def points_to_pixels(self, points: Any) -> Any:
        return points

    def flipy(self) -> bool:
        return True

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:  # noqa: ARG002
        size = prop.get_size_in_points()
        return labels.width(s, size), size, 0.24 * size

    def _get_font_height_metrics(self, prop: Any) -> tuple[float, float, float]:
        # matplotlib 3.11 would otherwise measure a font that the page may not use
        size = prop.get_size_in_points()
        return 0.76 * size, 0.24 * size, 0.0

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        style = _style(gc, rgbFace)
        if style is None:
            return
        outline = _outline(path.transformed(transform), filled=style.fill is not None)
        clip = gc.get_clip_rectangle()
        if clip is not None and _leaves(outline, clip):
            self._flush()
            x, y, width, height = clip.bounds
            x, y = _UNIT * x, _UNIT * (self._size[1] - y - height)
            box = f"{x:.0f} {y:.0f} {_UNIT * width:.0f} {_UNIT * height:.0f}"
            place = 'x="{}" y="{}" width="{}" height="{}"'.format(*box.split())
            # a nested view box clips without an identifier
            element = f'<path {style.attributes()} d="{self._data_of(outline)}"/>'
            self._parts.append(f'<svg {place} viewBox="{box}">{element}</svg>')
        else:
            self._add(style, self._data_of(outline))

    def draw_markers(
        self, gc: Any, marker_path: Any, marker_trans: Any, path: Any, trans: Any,
        rgbFace: Any = None,
    ) -> None:  # fmt: skip
        points = trans.transform(path.vertices)
        points = points[np.isfinite(points).all(axis=1)]
        marker = marker_path.transformed(marker_trans)
        # a tick has no area to fill
        style = _style(gc, rgbFace if len(marker.vertices) > 2 else None)
        if style is None or not len(points):
            return
        if not _is_circle(marker):
            for x, y in points:
                moved = Path(marker.vertices + np.array([x, y]), marker.codes)
                self._add(style, self._data_of(moved))
            return
        # a line without length and with round ends is a disc
        discs = self._discs(points)
        size = round(2 * marker.get_extents().xmax * _UNIT)
        ring = style.width if style.stroke is not None else 0
        if style.stroke is not None:
            self._add(_disc(style.stroke, size + ring, style.stroke_opacity), discs)
        inner = size - ring
        if style.fill is None:
            self._add(_disc(BG, inner, 1.0), discs)
        elif style.fill != style.stroke:
            self._add(_disc(style.fill, inner, style.fill_opacity), discs)

    def draw_path_collection(self, *args: Any, **options: Any) -> None:
        self._flush()
        self._merging = True
        super().draw_path_collection(*args, **options)
        self._merging = False

    def draw_quad_mesh(
        self, gc: Any, master_transform: Any, meshWidth: int, meshHeight: int,
        coordinates: Any, offsets: Any, offsetTrans: Any, facecolors: Any,  # noqa: ARG002
        antialiased: Any, edgecolors: Any,  # noqa: ARG002
    ) -> None:  # fmt: skip
        corners = master_transform.transform(np.reshape(coordinates, (-1, 2)))
        corners = corners.reshape(meshHeight + 1, meshWidth + 1, 2)
        x, y = corners[0, :, 0], self._size[1] - corners[:, 0, 1]
        colours = np.reshape(facecolors, (meshHeight, meshWidth, 4))
        gap = gc.get_linewidth() if len(np.atleast_1d(edgecolors)) else 0.0
        # a row of cells is a thick line
        by_style: dict[_Style, list[tuple[int, int, int]]] = {}
        for i, j, end in _runs(colours, merge=gap == 0):
            if colours[i, j, 3] == 0:
                continue
            style = _Style(
                stroke=to_hex(colours[i, j]),
                width=_whole(abs(y[i + 1] - y[i]) - gap),
                stroke_opacity=float(colours[i, j, 3]),
                crisp=True,
            )
            left, right = _whole(x[j] + gap / 2), _whole(x[end] - gap / 2)
            by_style.setdefault(style, []).append((left, right, _whole((y[i] + y[i + 1]) / 2)))
        for style, cells in by_style.items():
            self._flush()
            self._add(style, _lines(cells))

    def draw_image(self, gc: Any, x: Any, y: Any, im: Any, transform: Any = None) -> None:
        raise NotImplementedError("the pictures of a report have no images.")

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float,
        ismath: Any = False, mtext: Any = None,  # noqa: ARG002
    ) -> None:  # fmt: skip
        anchor = ""
        if mtext is not None and angle == 0 and "\n" not in mtext.get_text():
            # the page's font has other widths: the end that matters is given, not the left one
            anchor = _ANCHORS.get(mtext.get_horizontalalignment(), "")
            x = float(mtext.get_transform().transform(mtext.get_unitless_position())[0])
        place = f'x="{_whole(x)}" y="{_whole(y)}"'
        if angle:
            turn = f"rotate({-angle:g})"
            place = f'transform="translate({_whole(x)} {_whole(y)}){turn}"'
        if anchor:
            place += f' text-anchor="{anchor}"'
        if (size := prop.get_size_in_points()) != SIZE:
            place += f' font-size="{size * _UNIT:g}"'
        if prop.get_weight() == "bold":
            place += ' font-weight="bold"'
        # any other colour is that of matplotlib's settings, which are not those of the page
        if (colour := to_hex(gc.get_rgb())) in (MUTED, INK):
            place += f' fill="{_css(colour)}"'
        self._texts.append(f"<text {place}>{escape(s)}</text>")

    def draw_tex(self, gc: Any, x: Any, y: Any, s: str, prop: Any, angle: Any, **more: Any) -> None:
        self.draw_text(gc, x, y, s, prop, angle, mtext=more.get("mtext"))

    # paths

    def _data_of(self, path: Any) -> str:
        vertices = np.array(path.vertices, dtype=float)
        vertices[:, 1] = self._size[1] - vertices[:, 1]
        return _path_data(np.rint(vertices * _UNIT).astype(int).tolist(), path.codes)

    def _discs(self, points: Floats) -> str:
        """Lines without length, from left to right so that the steps are short."""
        whole = np.rint(points * (_UNIT, -_UNIT) + (0, _UNIT * self._size[1])).astype(int)
        whole = whole[np.argsort(whole[:, 0], kind="stable")]
        first = f"M{whole[0, 0]} {whole[0, 1]}h0"
        return first + "".join(f"m{x}{_joined(y)}h0" for x, y in np.diff(whole, axis=0).tolist())

    def _add(self, style: _Style, data: str) -> None:
        # half transparent artists that overlap are not one; the parts of one artist are
        opaque = style.fill_opacity == style.stroke_opacity == 1
        if style != self._style or not (opaque or self._merging):
            self._flush()
        self._style = style
        self._data.append(data)

    def _flush(self) -> None:
        if self._style is not None and any(self._data):
            self._parts.append(f'<path {self._style.attributes()} d="{"".join(self._data)}"/>')
        self._style, self._data = None, []


def _style(gc: Any, face: Any) -> _Style | None:
    """Style of a path, or None if nothing of it can be seen."""
    alpha = gc.get_alpha() if gc.get_forced_alpha() else 1.0
    fill = fill_opacity = None
    if face is not None:
        opacity = alpha if gc.get_forced_alpha() or len(face) < 4 else face[3]
        if opacity > 0:
            fill, fill_opacity = to_hex(face[:3]), float(opacity)
    rgb, width = gc.get_rgb(), gc.get_linewidth()
    opacity = alpha if gc.get_forced_alpha() or len(rgb) < 4 else rgb[3]
    if width == 0 or opacity == 0:
        return None if fill is None else _Style(fill=fill, fill_opacity=fill_opacity or 1.0)
    _, dashes = gc.get_dashes()
    return _Style(
        fill=fill,
        stroke=to_hex(rgb[:3]),
        width=round(width * _UNIT),
        fill_opacity=fill_opacity or 1.0,
        stroke_opacity=float(opacity),
        dashes=" ".join(f"{each * _UNIT:.0f}" for each in dashes) if dashes is not None else "",
        cap="round" if gc.get_capstyle() == "round" else "",
    )


def _disc(colour: str, size: int, opacity: float) -> _Style:
    return _Style(stroke=colour, width=size, stroke_opacity=opacity, cap="round")


def _outline(path: Any, *, filled: bool) -> Any:
    """Path without undefined points, and without points close to the line through others."""
    found = path.cleaned(remove_nans=True, simplify=False)
    # matplotlib ends a clean path with a mark that is not a point
    kept = found.codes != Path.STOP
    vertices, codes = found.vertices[kept], found.codes[kept]
    if len(codes) > 2 and set(np.unique(codes).tolist()) <= {Path.MOVETO, Path.LINETO} | (
        {Path.CLOSEPOLY} if filled else set()
    ):
        starts = [*np.flatnonzero(codes == Path.MOVETO), len(codes)]
        needed = np.concatenate([_needed(vertices[a:b]) for a, b in pairwise(starts)])
        needed |= codes == Path.CLOSEPOLY
        vertices, codes = vertices[needed], codes[needed]
    return Path(vertices, codes)


def _needed(points: Floats) -> NDArray[np.bool_]:
    """Points of a line that keep it within the tolerance (Douglas and Peucker, 1973)."""
    needed = np.zeros(len(points), dtype=bool)
    needed[[0, -1]] = True
    parts = [(0, len(points) - 1)]
    while parts:
        a, b = parts.pop()
        if b - a < 2:
            continue
        chord = points[b] - points[a]
        offset = points[a + 1 : b] - points[a]
        length = float(np.hypot(*chord))
        if length == 0:
            distance = np.hypot(offset[:, 0], offset[:, 1])
        else:
            distance = np.abs(chord[0] * offset[:, 1] - chord[1] * offset[:, 0]) / length
        furthest = int(distance.argmax())
        if distance[furthest] > _TOLERANCE:
            middle = a + 1 + furthest
            needed[middle] = True
            parts += [(a, middle), (middle, b)]
    return needed


def _path_data(points: list[list[int]], codes: Any) -> str:
    """Commands of a path, in relative coordinates."""
    kinds = codes.tolist() if codes is not None else [Path.MOVETO] + [Path.LINETO] * len(points)
    parts: list[str] = []
    here: list[int] = []
    started: list[int] = []
    k = 0
    while k < len(points):
        kind = kinds[k]
        if kind == Path.MOVETO:
            x, y = points[k]
            parts.append(
                f"m{x - here[0]}{_joined(y - here[1])}" if started else f"M{x}{_joined(y)}"
            )
            here, started = points[k], points[k]
        elif kind == Path.LINETO:
            parts.append(_line(points[k][0] - here[0], points[k][1] - here[1]))
            here = points[k]
        elif kind == Path.CLOSEPOLY:
            parts.append("z")
            here = started
        else:
            count = 2 if kind == Path.CURVE3 else 3
            steps = [
                f"{_joined(x - here[0])}{_joined(y - here[1])}" for x, y in points[k : k + count]
            ]
            parts.append(("q" if count == 2 else "c") + "".join(steps).lstrip())
            k += count - 1
            here = points[k]
        k += 1
    return "".join(parts)


def _line(dx: int, dy: int) -> str:
    if dx == dy == 0:
        return ""
    if dy == 0:
        return f"h{dx}"
    return f"v{dy}" if dx == 0 else f"l{dx}{_joined(dy)}"


def _joined(value: int) -> str:
    """A number after another one: its minus sign separates them too."""
    return str(value) if value < 0 else f" {value}"


def _leaves(path: Any, clip: Any) -> bool:
    """Whether a path leaves a rectangle by more than a line is thick."""
    x0, y0, x1, y1 = clip.extents
    vertices = path.vertices[path.codes != Path.CLOSEPOLY]
    low, high = vertices.min(axis=0, initial=np.inf), vertices.max(axis=0, initial=-np.inf)
    return bool(low[0] < x0 - 1 or low[1] < y0 - 1 or high[0] > x1 + 1 or high[1] > y1 + 1)


def _is_circle(marker: Any) -> bool:
    return marker.codes is not None and bool((marker.codes == Path.CURVE4).any())


def _runs(colours: Floats, *, merge: bool) -> Iterator[tuple[int, int, int]]:
    """Row, first and last column of neighbouring cells of one colour."""
    height, width = colours.shape[:2]
    for i in range(height):
        start = 0
        for j in range(1, width + 1):
            if j == width or not merge or not np.array_equal(colours[i, j], colours[i, start]):
                yield i, start, j
                start = j


def _lines(cells: list[tuple[int, int, int]]) -> str:
    """Horizontal lines, each given by its ends and height."""
    parts = []
    here: tuple[int, int] | None = None
    for left, right, y in cells:
        move = f"M{left} {y}" if here is None else f"m{left - here[0]}{_joined(y - here[1])}"
        parts.append(f"{move}h{right - left}")
        here = right, y
    return "".join(parts)


def _whole(points: float) -> int:
    return round(points * _UNIT)


def _decimal(value: float) -> str:
    return f"{value:.2f}".lstrip("0").rstrip("0")


def _css(colour: str) -> str:
    """A colour of the palette as a CSS variable; others stay as they are."""
    role = _ROLES.get(colour)
    return f"var(--psm-{role},{colour})" if role else colour
