"""`Report`: what it returns and writes."""

import json
import webbrowser

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from psmvae.reporting.report import Report
from psmvae.table.errors import TableError
from report.fake import HOSTILE, fake


@pytest.fixture(scope="module")
def report():
    return Report(fake(hostile=True))


def test_json_is_a_copy_of_the_data(report):
    data = report.json()
    assert data == fake(hostile=True)
    data["table"]["shown"].clear()
    assert report.json() == fake(hostile=True)


def test_repr_has_the_title_and_the_sentences():
    text = repr(Report(fake()))
    assert text.startswith("Report on patients.csv\n- 18.2 % of the 111,105 cells")
    assert text.count("\n- ") == 5
    assert max(map(len, text.splitlines())) <= 100


def test_files_are_written(report, tmp_path):
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    report.write_html(page)
    report.write_json(str(data))
    assert page.read_text(encoding="utf-8") == report.html()
    assert json.loads(data.read_text(encoding="utf-8")) == report.json()
    report.write_html(page)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]


@pytest.mark.parametrize("write", ["write_html", "write_json"])
def test_a_folder_is_not_replaced(report, tmp_path, write):
    with pytest.raises(TableError, match="this is a folder"):
        getattr(report, write)(tmp_path)
    with pytest.raises(TableError, match="create it first"):
        getattr(report, write)(tmp_path / "nowhere" / "report")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_page_that_cannot_be_made(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("before")
    with pytest.raises(KeyError):
        Report({"title": "nothing else"}).write_html(page)
    assert page.read_text() == "before"
    assert list(tmp_path.iterdir()) == [page]


def test_open_shows_a_file_in_the_browser(report, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    seen = []
    monkeypatch.setattr(webbrowser, "open", seen.append)
    path = report.open()
    assert seen == [path.as_uri()]
    assert path.parent == tmp_path
    assert path.read_text(encoding="utf-8") == report.html()


def test_notebooks_show_the_snippet(report):
    html = report._repr_html_()
    assert html.startswith('<div id="psm-')
    assert HOSTILE[0] not in html


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'needs matplotlib: pip install "psmvae\[report\]"'):
        Report(fake()).html()
