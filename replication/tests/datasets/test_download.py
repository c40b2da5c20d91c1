"""Downloads from a server on this machine, by real sockets."""

from dataclasses import replace

import pytest

pytest.importorskip("pandas")

from psmvae_paper.datasets import DownloadError
from psmvae_paper.datasets.catalogue import CATALOGUE, Source
from psmvae_paper.datasets.loading import load_entry

LETTER = "T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\nI,5,12,3,7,2,10,5,5,4,13,3,9,2,8,4,10\n"
WINE = "a;b;c;d;e;f;g;h;i;j;k;quality\n7;0;0;0;0;0;0;0;0;0;0;6\n"


def letter(url, n_rows=2):
    source = Source(url, "letter-recognition.data")
    return replace(CATALOGUE["letter"], sources=(source,), n_rows=n_rows)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_table_is_downloaded_once(web, tmp_path):
    entry = letter(web.put("letter.data", LETTER))
    folder = tmp_path / "new" / "cache"
    first = load_entry(entry, folder, fetch=True)
    assert first.X.shape == (2, 16)
    assert first.y.tolist() == ["T", "I"]
    assert files(folder) == ["letter-recognition.data"]
    assert (folder / "letter-recognition.data").read_text() == LETTER

    for fetch in (True, False):
        assert load_entry(entry, folder, fetch=fetch).X.equals(first.X)
    assert web.asked == ["/letter.data"]


def test_no_download_by_default(web, tmp_path):
    with pytest.raises(FileNotFoundError, match="download=True"):
        load_entry(letter(web.put("letter.data", LETTER)), tmp_path / "cache")
    assert web.asked == []
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (LETTER[: len(LETTER) // 3], "cannot be read"),
        (LETTER[:-10], "expected 0 missing cells, found 4"),
        ("<html>come back later</html>", "cannot be read"),
        (LETTER * 2, "expected 2 rows and 16 columns, found 4 rows and 16 columns"),
    ],
)
def test_invalid_download_is_not_kept(web, tmp_path, content, reason):
    with pytest.raises(ValueError, match=reason):
        load_entry(letter(web.put("letter.data", content)), tmp_path / "cache", fetch=True)
    assert files(tmp_path / "cache") == []


def test_two_files_are_kept_together_or_not_at_all(web, tmp_path):
    red, white = web.put("red.csv", WINE), web.address("white.csv")
    sources = (Source(red, "red.csv"), Source(white, "white.csv"))
    entry = replace(CATALOGUE["wine"], sources=sources, n_rows=2)
    folder = tmp_path / "cache"
    with pytest.raises(DownloadError, match=r"white\.csv: HTTP Error 404"):
        load_entry(entry, folder, fetch=True)
    assert files(folder) == []
    web.put("white.csv", WINE)
    assert load_entry(entry, folder, fetch=True).X["colour"].tolist() == [2, 1]
    assert files(folder) == ["red.csv", "white.csv"]


def test_interrupted_download_is_not_kept(web, tmp_path):
    with pytest.raises(DownloadError, match="IncompleteRead"):
        load_entry(letter(web.address("broken")), tmp_path / "cache", fetch=True)
    assert files(tmp_path / "cache") == []


def test_download_error_names_reason_and_manual_steps(web, tmp_path):
    url = web.address("letter.data")
    web.stop()
    with pytest.raises(DownloadError, match="cannot download") as caught:
        load_entry(letter(url), tmp_path / "cache", fetch=True)
    text = str(caught.value)
    assert "refused" in text
    assert f"save {url} as {tmp_path / 'cache' / 'letter-recognition.data'}" in text


def test_unwritable_folder_is_not_a_download_error(web, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file") as caught:
        load_entry(letter(web.put("a", LETTER)), tmp_path / "file" / "cache", fetch=True)
    assert not isinstance(caught.value, DownloadError)
    assert web.asked == []
