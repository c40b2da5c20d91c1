"""The SVG pictures of a report."""

import re
import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib import style  # noqa: E402
from matplotlib.figure import Figure as Canvas  # noqa: E402

from psmvae.graphics import labels  # noqa: E402
from psmvae.graphics.palette import LIGHT  # noqa: E402
from psmvae.reporting.figures import figures  # noqa: E402
from psmvae.reporting.svg import to_svg  # noqa: E402
from report.dictionary import HOSTILE, report_data, tipping_map  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def data():
    return report_data()


@pytest.fixture(scope="module")
def made(data):
    return figures(data)


@pytest.fixture(scope="module")
def hostile():
    return figures(report_data(HOSTILE))


def drawn(svg):
    """A figure with one axes, as the element of its SVG."""
    return ET.fromstring(svg)


def words(figure):
    return [element.text for element in ET.fromstring(figure.svg).iter(f"{SVG}text")]


def canvas():
    figure = Canvas(figsize=(2, 1), dpi=72)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set(xlim=(0, 144), ylim=(0, 72))
    return figure, ax


def paths(figure):
    return [dict(each.attrib) for each in ET.fromstring(to_svg(figure, "alt")).iter(f"{SVG}path")]


def test_every_part_has_a_picture(made):
    single = {"rates", "patterns", "correlation", "flux", "row-map", "sets", "pit", "errors",
              "errors-levels", "training", "r-hat", "estimates", "tipping"}  # fmt: skip
    assert single <= set(made)
    counts = {name.rpartition("-")[0] for name in set(made) - single}
    assert counts == {"odds", "predictors", "density", "strip", "bars", "scatter",
                      "overimputation", "trace", "assumptions"}  # fmt: skip


def test_sections_without_data_have_no_pictures(data):
    found = figures({**data, "imputed": None, "validation": None, "results": None})
    assert {"rates", "odds-0"} <= set(found)
    assert not {"density-0", "pit", "estimates"} & set(found)


def test_a_complete_table_has_no_pictures(data):
    columns = [{**row, "n_missing": 0, "fraction": 0.0} for row in data["missing"]["columns"]]
    empty = {
        **data, "missing": {**data["missing"], "columns": columns},
        "mechanism": {**data["mechanism"], "columns": [], "sets": []},
        "imputed": None, "validation": None, "results": None,
    }  # fmt: skip
    assert figures(empty) == {}


def test_only_shown_columns_are_drawn(data):
    table = {**data["table"], "shown": ["bmi", "age"]}
    found = figures({**data, "table": table, "imputed": None, "validation": None, "results": None})
    for name in ("rates", "patterns", "correlation", "row-map"):
        assert not {"chol", "income"} & set(words(found[name]))
        assert {"bmi", "age"} <= set(words(found[name]))


def test_elements_are_accessible_and_self_contained(made):
    for figure in made.values():
        root = ET.fromstring(figure.svg)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert root.get("aria-label") == figure.alt
        assert not figure.svg.startswith("<?xml")
        elements = list(root.iter())
        assert {each.tag.removeprefix(SVG) for each in elements} <= {"svg", "g", "path", "text"}
        attributes = {name for each in elements for name in each.attrib}
        # no identifiers that clash, no references, and no style that a policy forbids
        assert not attributes & {"id", "href", "class", "style", "clip-path"}
        assert "url(" not in figure.svg


def test_colours_are_variables_with_a_fallback(made):
    for figure in made.values():
        for element in ET.fromstring(figure.svg).iter():
            for name in ("fill", "stroke"):
                value = element.get(name, "none")
                if value == "none":
                    continue
                role, fallback = re.fullmatch(r"var\(--psm-(\w+),(#[0-9a-f]{6})\)", value).groups()
                assert LIGHT[role] == fallback


@pytest.mark.parametrize(
    ("name", "alt"),
    [
        ("rates", r"Missing rate by column: age 55 %, bmi 49 %, .*, glucose \d+ %\."),
        ("patterns", r"Patterns of missing cells, 132 in all: 3,934 rows complete; .* 19 more\."),
        ("pit", r"Counts of the probability integral transform by tenths: .*; expected 100\."),
        ("odds-0", r"Probability that age goes missing, by value: 2 % at 2\d.* to 5\d % at .*"),
        ("bars-3", r"Levels of smoker, observed and imputed: level 0 \d+ % and \d+ %.*"),
        ("overimputation-0", r"Held-out values of age .*: \d+ of the 100 .* 412 cells: 89 %\."),
        ("tipping", r"Estimate of bmi .*: 0 to 4.00; .* at 15 of 21 .* between 4.00 and 5.00\."),
        ("training", r"Validation error over 298 epochs: from 1.00 to its minimum 0.\d+ in .*"),
    ],
)  # fmt: skip
def test_alternative_texts_have_numbers(made, name, alt):
    assert re.fullmatch(alt, made[name].alt), made[name].alt


def test_every_alternative_text_is_a_sentence(made, hostile):
    for figure in [*made.values(), *hostile.values()]:
        assert figure.alt[0].isupper()
        assert figure.alt.endswith(".")
        assert len(figure.alt) < 1500


def test_hostile_names_are_text(hostile):
    found = words(hostile["rates"])
    for text in ("<script>alert(1)</s…", "</svg><p>", "\"quotes\" & 'single'", "$x^2$ and $",
                 "two lines and a tab", "x" * 19 + "…", "שלום עולם", "evil"):  # fmt: skip
        assert text in found
    for figure in hostile.values():
        ET.fromstring(figure.svg)
        assert "<script" not in figure.svg
        assert figure.svg.count("<svg") == figure.svg.count("</svg>")


def test_settings_of_matplotlib_neither_matter_nor_change(data, made):
    small = {**data, "mechanism": {**data["mechanism"], "columns": []}, "validation": None}
    small["imputed"] = {**data["imputed"], "columns": data["imputed"]["columns"][:1]}
    expected = {name: figure.svg for name, figure in figures(small).items()}
    with matplotlib.rc_context():
        style.use("dark_background")
        matplotlib.rcParams.update(
            {"text.usetex": True, "font.size": 30, "axes.grid": True, "lines.linewidth": 9,
             "figure.constrained_layout.use": True, "lines.markersize": 30, "xtick.top": True,
             "axes.titlesize": 40, "font.family": "serif", "xtick.minor.visible": True}
        )  # fmt: skip
        before = dict(matplotlib.rcParams)
        again = {name: figure.svg for name, figure in figures(small).items()}
        assert dict(matplotlib.rcParams) == before
    assert again == expected
    assert {name: made[name].svg for name in expected} == expected


def test_pyplot_is_not_used(python):
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from report.dictionary import report_data\n"
        "from psmvae.reporting.figures import figures\n"
        "data = report_data(['a', 'b'])\n"
        "figures(data)\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert python(code).strip() == "False"


def test_two_threads_draw_the_same(data, made):
    small = {**data, "imputed": None, "validation": None, "results": None}
    found = []
    threads = [threading.Thread(target=lambda: found.append(figures(small))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for each in found:
        assert {name: figure.svg for name, figure in each.items()} == {
            name: made[name].svg for name in each
        }


def test_pictures_are_small(made):
    by_kind = {}
    for name, figure in made.items():
        by_kind.setdefault(name.rstrip("-0123456789"), []).append(len(figure.svg.encode()))
    a_column = sum(
        max(by_kind[k]) for k in ("odds", "predictors", "density", "strip", "overimputation")
    )
    # 60 columns, and 100 kB for what all columns share
    assert 60 * a_column < 850_000


def test_map_over_two_groups(data):
    shared = {**data, "imputed": None, "validation": None}
    flat = figures({**shared, "results": {**data["results"], "tipping": tipping_map(data)}})
    assert "conclusion turns at the line" in words(flat["tipping"])


# the renderer


def test_a_path_has_whole_tenths_of_points():
    figure, ax = canvas()
    ax.plot([10, 20, 20], [72, 62, 52], color="#0072b2", lw=1.5)
    (path,) = paths(figure)
    assert path["d"] == "M100 0l100 100v100"
    assert path["stroke"] == "var(--psm-observed,#0072b2)"
    assert path["stroke-width"] == "15"


def test_neighbours_of_one_style_are_one_path():
    figure, ax = canvas()
    for x in (10, 20, 30):
        ax.plot([x, x], [10, 20], color="#123456", lw=1)
    ax.plot([1, 2], [10, 10], color="#654321", lw=1)
    assert [path["stroke"] for path in paths(figure)] == ["#123456", "#654321"]


def test_half_transparent_artists_are_separate_and_their_parts_are_not():
    figure, ax = canvas()
    ax.bar([10, 20], 30, color="#123456", alpha=0.5)
    ax.vlines([50, 60], 10, 20, color="#123456", alpha=0.5)
    found = paths(figure)
    assert [path.get("fill-opacity") for path in found] == [".5", ".5", None]
    assert found[-1]["stroke-opacity"] == ".5"


def test_discs_are_lines_without_length():
    figure, ax = canvas()
    ax.plot([30, 10], [62, 72], "o", color="#d55e00", ms=4, mew=0)
    (path,) = paths(figure)
    assert path["d"] == "M100 0h0m200 100h0"
    assert path["stroke-linecap"] == "round"
    assert path["stroke-width"] == "40"


def test_rings_have_the_background_inside():
    figure, ax = canvas()
    ax.plot([30], [62], "o", mec="#d55e00", mfc="none", ms=4, mew=1)
    outer, inner = paths(figure)
    assert (outer["stroke-width"], inner["stroke-width"]) == ("50", "30")
    assert inner["stroke"] == "var(--psm-bg,#ffffff)"


def test_other_markers_are_paths():
    figure, ax = canvas()
    ax.plot([30, 50], [62, 62], "s", color="#d55e00", ms=4, mew=0, ls="none")
    (path,) = paths(figure)
    assert path["d"].count("z") == 2


def test_cells_of_a_mesh_are_grouped_by_colour():
    figure, ax = canvas()
    colours = matplotlib.colors.ListedColormap([(0, 0, 0, 0), "#d55e00"])
    ax.pcolormesh([0, 10, 20, 30], [0, 10, 20], [[1, 1, 0], [0, 1, 1]], cmap=colours)
    (path,) = paths(figure)
    # two runs of two cells; what is transparent is left out
    assert path["d"] == "M0 670h200m-100-100h200"
    assert path["stroke-width"] == "100"


def test_what_leaves_the_axes_is_clipped():
    figure, ax = canvas()
    ax.plot([10, 500], [10, 10], color="#123456")
    root = ET.fromstring(to_svg(figure, "alt"))
    (inner,) = root.findall(f"{SVG}svg")
    assert inner.get("viewBox") == root.get("viewBox")


def test_a_curve_is_simplified_within_the_tolerance():
    figure, ax = canvas()
    x = np.linspace(0, 144, 1000)
    y = 36 + 30 * np.sin(x / 20)
    ax.plot(x, y, color="#123456", lw=1)
    (path,) = paths(figure)
    points = np.cumsum([[0, 720 - y[0] * 10], *_steps(path["d"])[1:]], axis=0) / 10
    assert 10 < len(points) < 100
    again = 72 - np.interp(x, points[:, 0], points[:, 1])
    # 0.3 points, and rounding to a tenth
    assert np.abs(again - y).max() < 0.3 * np.hypot(1, 1.5) + 0.1


def _steps(data):
    found = []
    for command, numbers in re.findall(r"([Mlhv])([^a-zA-Z]*)", data):
        values = [int(each) for each in re.findall(r"-?\d+", numbers)]
        found.append({"h": [*values, 0], "v": [0, *values]}.get(command, values))
    return found


def test_undefined_points_make_gaps():
    figure, ax = canvas()
    ax.plot([10, 20, np.nan, 40, 50], [72] * 5, color="#123456")
    (path,) = paths(figure)
    assert path["d"] == "M100 0h100m200 0h100"


def test_text_is_anchored_where_it_is_aligned():
    figure, ax = canvas()
    for alignment in ("left", "center", "right"):
        ax.text(72, 36, alignment, ha=alignment, color="#123456")
    ax.text(72, 36, "turned", rotation=90)
    root = ET.fromstring(to_svg(figure, "alt"))
    found = {text.text: text for text in root.iter(f"{SVG}text")}
    anchors = {name: found[name].get("text-anchor") for name in ("left", "center", "right")}
    assert anchors == {"left": None, "center": "middle", "right": "end"}
    assert found["right"].get("x") == "720"
    assert "rotate(-90)" in found["turned"].get("transform")
    # a colour of the user's settings is not one of the page
    assert "fill" not in found["left"].attrib


def test_images_are_not_drawn():
    figure, ax = canvas()
    ax.imshow(np.zeros((2, 2)))
    with pytest.raises(NotImplementedError, match="no images"):
        to_svg(figure, "alt")


def test_alternative_text_is_escaped():
    figure, _ = canvas()
    alt = "a \"b\" <c> & 'd'"
    assert ET.fromstring(to_svg(figure, alt)).get("aria-label") == alt


def right_ends(svg):
    """Right ends of the texts that begin at a place, as far as letters tell."""
    root = ET.fromstring(svg)
    for text in root.iter(f"{SVG}text"):
        if text.get("x") and text.get("text-anchor") is None:
            size = float(text.get("font-size", 10 * 10))
            yield float(text.get("x")) + labels.width(text.text or "", size)


def test_names_on_the_diagonal_are_within_the_picture(data):
    names = [f"column {k}" for k in range(40)]
    names[-3] = "a name with many letters"
    values = np.eye(40).tolist()
    columns = [data["missing"]["columns"][1] | {"name": name} for name in names]
    wide = {
        **data,
        "table": {**data["table"], "shown": names},
        "missing": {
            **data["missing"],
            "columns": columns,
            "correlation": {"columns": names, "values": values},
        },
    }
    svg = figures(wide)["correlation"].svg
    width = float(ET.fromstring(svg).get("viewBox").split()[2])
    assert max(right_ends(svg)) <= width


def test_small_numbers_of_an_axis_are_within_the_picture(data):
    tipping = data["results"]["tipping"]
    small = {
        part: (np.array(tipping[part], dtype=float) * 1e-5 - 0.00025).tolist()
        for part in ("estimate", "conf_low", "conf_high", "margin")
    }
    changed = {**data, "results": {**data["results"], "tipping": {**tipping, **small}}}
    root = ET.fromstring(figures(changed)["tipping"].svg)
    ends = [text for text in root.iter(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert any("0.000" in text.text for text in ends)
    for text in ends:
        size = float(text.get("font-size", 10 * 10))
        # the name of the axis is on their left
        assert float(text.get("x")) - labels.width(text.text, size) >= 10 * 10


def test_last_number_of_an_axis_is_within_the_picture(data):
    row = data["results"]["estimates"][0]
    small = {"estimate": 0.00002, "conf_low": -0.0002, "conf_high": 0.00041}
    rows = [row | {"term": "dose", "complete_cases": None} | small]
    changed = {**data, "results": {**data["results"], "estimates": rows}}
    root = ET.fromstring(figures(changed)["estimates"].svg)
    width = float(root.get("viewBox").split()[2])
    (last,) = [text for text in root.iter(f"{SVG}text") if text.text == "0.0004"]
    assert last.get("text-anchor") == "middle"
    assert float(last.get("x")) + labels.width("0.0004", 10 * 10) / 2 <= width + 1
