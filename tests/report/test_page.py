"""The page of a report, without a browser: structure, escaping, policy, size."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from psmvae.reporting.figures import Figure, figures
from psmvae.reporting.page import MAX_BYTES, SECTIONS, printable, to_html, to_snippet
from report.fake import HOSTILE, fake

VOID = {"meta", "br", "img", "input", "hr", "link", "path", "rect", "circle"}


class Document(HTMLParser):
    """Elements with attributes, text by element, and whether all elements are closed in order."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.text = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))

    def all(self, tag, **attributes):
        return [
            found
            for name, found in self.elements
            if name == tag and all(found.get(key) == value for key, value in attributes.items())
        ]

    def content(self, *tags):
        return "".join(text for tag, text in self.text if tag in tags)


@pytest.fixture(scope="module")
def pages():
    """HTML by what it shows."""
    data = {
        "all": fake(),
        "table alone": fake(optional=False),
        "hostile": fake(hostile=True),
        "complete": _complete(),
    }
    return {name: to_html(one, figures(one)) for name, one in data.items()}


def _complete():
    data = fake(names=["age"], optional=False)
    data["missing"]["patterns"]["rows"] = []
    return data


def test_pages_are_well_formed_and_have_seven_sections(pages):
    for html in pages.values():
        document = Document(html)
        ids = [found["id"] for found in document.all("section")]
        assert ids == [f"psm-{section.id}" for section in SECTIONS]
        links = [found["href"] for found in document.all("a") if found.get("class") != "psm-skip"]
        assert links[:7] == [f"#{one}" for one in ids]
        assert len(document.all("main")) == len(document.all("h1")) == 1
        every = [found["id"] for _, found in document.elements if "id" in found]
        assert len(every) == len(set(every))


def test_nothing_is_loaded(pages):
    for html in pages.values():
        document = Document(html)
        for tag, found in document.elements:
            assert tag not in {"link", "iframe", "object", "embed", "img", "form", "base"}
            assert "src" not in found
            assert not any(name.startswith("on") for name in found), found
            assert found.get("href", "#").startswith("#")
            assert "style" not in found, "the policy allows no style attributes"


def test_policy_allows_the_inline_style_and_script_and_nothing_else(pages):
    document = Document(pages["hostile"])
    [policy] = document.all("meta", **{"http-equiv": "Content-Security-Policy"})
    rules = dict(rule.split(" ", 1) for rule in policy["content"].split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    for tag in ("style", "script"):
        digest = hashlib.sha256(document.content(tag).encode()).digest()
        assert rules[f"{tag}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert len(document.all("style")) == len(document.all("script")) == 1


def test_script_is_small(pages):
    assert len(Document(pages["all"]).content("script").encode()) < 15_000


def test_tables_have_captions_and_scopes(pages):
    document = Document(pages["all"])
    assert len(document.all("caption")) == len(document.all("table")) > 10
    assert all(found.get("scope") in {"row", "col"} for found in document.all("th"))
    assert all(found.get("aria-label") for found in document.all("svg", role="img"))
    regions = document.all("div", role="region")
    assert regions
    assert all(found["tabindex"] == "0" and found["aria-label"] for found in regions)


def test_hostile_names_are_text(pages):
    document = Document(pages["hostile"])
    shown = document.content("bdi", "span", "text", "p", "td", "th")
    for name in HOSTILE:
        assert printable(name) in shown
    assert "(empty name)" in shown
    assert "{{ 7 * 7 }}" in shown
    for element in ("script", "style"):
        assert "hacked" not in document.content(element)
    assert not document.all("b")
    assert not document.all("i")


def test_characters_that_html_cannot_hold_are_shown_by_code_point(pages):
    assert printable("a\x00b\u202ec\ud800\n") == "a[U+0000]b[U+202E]c[U+D800]\n"
    assert printable("عمر 👩‍⚕️ é") == "عمر 👩‍⚕️ é"
    pages["hostile"].encode("utf-8")


def test_every_value_reaches_the_page(pages):
    text = Document(pages["all"]).content("p", "td", "th", "dd", "li", "strong", "code", "bdi")
    data = fake()
    for sentence in (*data["summary"]["sentences"], *data["summary"]["warnings"]):
        assert sentence in text
    assert data["methods"]["paragraph"] in text
    assert data["methods"]["command"] in text
    for each in data["methods"]["questions"]:
        assert each["question"] in text
        assert each["answer"] in text
    for word in ("12.05 to 12.55", "&lt; 0.001".replace("&lt;", "<"), "89.0 %", "1.120", "20.0 %"):
        assert word in text
    assert "scatter plots use a random sample of at most 10,000 of the 12,345 rows" in text
    assert "levels was 20.0 % by PSMVAEImputer and 40.0 % by mean." in text


def test_a_part_that_was_not_given_says_how_to_get_it(pages):
    text = Document(pages["table alone"]).content("p", "code")
    assert "No imputations were given:" in text
    assert "psmvae.report(X, imputer=imputer)" in text
    assert "No analysis was given:" in text


def test_without_javascript_nothing_is_hidden_and_there_are_no_controls(pages):
    document = Document(pages["all"])
    assert not any("hidden" in found for _, found in document.elements)
    assert not document.all("button")
    assert not document.all("input")


def test_many_columns_are_folded_and_listed():
    data = fake(names=[f"column {k}" for k in range(100)])
    html = to_html(data, {})
    assert "48 more columns: what was imputed" in html
    assert "The 60 columns with the highest missing rates are shown. All 100 are in" in html
    document = Document(html)
    rows = {found["data-column"] for found in document.all("tr") if "data-column" in found}
    assert rows == {f"column {k}" for k in range(100)}


def test_a_page_that_would_be_too_large_leaves_pictures_out():
    data = fake(names=[f"column {k}" for k in range(61)])
    padding = "<svg><desc>" + "x" * 12_000 + "</desc></svg>"
    drawn = {
        f"{kind}-{k}": Figure(f"{kind}-{k}", padding, "")
        for kind in ("density", "strip", "odds")
        for k in range(60)
    }
    html = to_html(data, drawn)
    assert len(html.encode()) <= MAX_BYTES
    assert re.search(r"\d+ pictures of columns with lower missing rates are left out", html)
    assert html.count(padding) > 60


def test_snippet_has_the_same_body_in_a_shadow_root():
    data = fake()
    drawn = figures(data)
    one, other = to_snippet(data, drawn), to_snippet(data, drawn)
    hosts = [Document(html).all("div", **{"class": "psm-host"})[0]["id"] for html in (one, other)]
    assert hosts[0] != hosts[1]
    assert one.replace(hosts[0], hosts[1]) == other
    document = Document(one)
    assert document.all("template") == [{"shadowrootmode": "open"}]
    assert not document.all("main")
    assert len(document.all("section")) == 7
    assert document.all("svg") == Document(to_html(data, drawn)).all("svg")
    # what is seen without a shadow root
    after = Document(one.partition("</template>")[2].partition("</div>")[0])
    assert data["summary"]["sentences"][0] in after.content("li")
