"""Download the files of a data set from its publisher."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

from psmvae._version import __version__
from psmvae.table.paths import atomic_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from psmvae_paper.datasets.catalogue import Source

TIMEOUT = 60.0


class DownloadError(OSError):
    """Raised when data cannot be downloaded; the message says why, and how to save them manually.

    Examples
    --------
    >>> issubclass(DownloadError, OSError)
    True
    """


def download(
    name: str,
    sources: Sequence[Source],
    folder: Path,
    check: Callable[[Sequence[Path]], object],
) -> None:
    """Download the files of a data set into a folder, all of them or none.

    Parameters
    ----------
    name : str
        The data set, for messages.
    sources : sequence of Source
        The address of each file and its name in the folder.
    folder : Path
        The folder; it is created if needed.
    check : callable
        Called with the paths of the downloaded files; if it raises, none is kept.

    Raises
    ------
    DownloadError
        If a file cannot be downloaded.
    OSError
        If the folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psmvae_paper.datasets.catalogue import Source
    >>> page = Path(tempfile.mkdtemp())
    >>> _ = (page / "a.csv").write_text("x")
    >>> download("a", [Source((page / "a.csv").as_uri(), "b.csv")], page, lambda paths: None)
    >>> (page / "b.csv").read_text()
    'x'
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        arrived = []
        for source in sources:
            content = _fetch(name, source, sources, folder)
            temporary = stack.enter_context(atomic_path(folder / source.file))
            temporary.write_bytes(content)
            arrived.append(temporary)
        # inside the stack: files get their names only if no error is raised
        check(arrived)


def manual_steps(sources: Sequence[Source], folder: Path) -> str:
    """Return how to get the files without this module.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    folder : Path
        The folder.

    Returns
    -------
    str
        A sentence without its end.

    Examples
    --------
    >>> from pathlib import Path
    >>> from psmvae_paper.datasets.catalogue import Source
    >>> manual_steps([Source("https://example.org/a.data", "a.data")], Path("tables"))
    'save https://example.org/a.data as tables/a.data'
    """
    return " and ".join(f"save {source.url} as {folder / source.file}" for source in sources)


def _fetch(name: str, source: Source, sources: Sequence[Source], folder: Path) -> bytes:
    agent = {"User-Agent": f"psmvae-paper/{__version__}"}
    # S310: all addresses are constants of the catalogue
    request = urllib.request.Request(source.url, headers=agent)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            # the error is also the response and keeps its socket open
            error.close()
        message = (
            f"{name}: cannot download {source.url}: {str(error).strip('<>')}. Try again with a "
            f"network, or {manual_steps(sources, folder)}"
        )
        raise DownloadError(message) from error
    return content
