"""Fetching what a data set needs from its publisher, whole or not at all."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

from psmvae._version import __version__
from psmvae.table import atomic_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from psmvae_paper.datasets.catalogue import Source

TIMEOUT = 60.0


class DownloadError(OSError):
    """Data could not be fetched; the message says why, and how to get them by hand.

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
    """Fetch the files of a data set into a folder, which is made if it is not there.

    Parameters
    ----------
    name : str
        The data set, for messages.
    sources : sequence of Source
        Where each file comes from, and what it is called in the folder.
    folder : Path
        Where they go.
    check : callable
        Called with the paths of what arrived; if it raises, none of it is kept.

    Raises
    ------
    DownloadError
        If a file cannot be fetched.
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
        # inside: a file takes its name only when the stack is left without an error
        check(arrived)


def by_hand(sources: Sequence[Source], folder: Path) -> str:
    """Say how to get the files without this module.

    Examples
    --------
    >>> from pathlib import Path
    >>> from psmvae_paper.datasets.catalogue import Source
    >>> by_hand([Source("https://example.org/a.data", "a.data")], Path("tables"))
    'save https://example.org/a.data as tables/a.data'
    """
    return " and ".join(f"save {source.url} as {folder / source.file}" for source in sources)


def _fetch(name: str, source: Source, sources: Sequence[Source], folder: Path) -> bytes:
    agent = {"User-Agent": f"psmvae/{__version__}"}
    # S310: every address is the catalogue's, none is a user's
    request = urllib.request.Request(source.url, headers=agent)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError):
            # it is the server's answer too, and holds its socket
            error.close()
        message = (
            f"{name}: cannot download {source.url}: {str(error).strip('<>')}. Try again with a "
            f"network, or by hand: {by_hand(sources, folder)}"
        )
        raise DownloadError(message) from error
    return content
