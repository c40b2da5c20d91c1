"""The page of a report in a browser."""

import re

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from psmvae.reporting.page import printable
from psmvae.reporting.report import Report
from report.fake import HOSTILE, NAMES, fake

pytestmark = pytest.mark.browser

WIDTHS = (390, 1440)
COLUMNS = "#psm-missing table:has(caption:has-text('Missing cells of each column'))"


@pytest.fixture(scope="module")
def reports():
    """Reports by what they show."""
    many = [f"column {k}" for k in range(80)]
    return {
        "usual": Report(fake()),
        "hostile": Report(fake(hostile=True)),
        "many": Report(fake(names=many)),
        "table alone": Report(fake(optional=False)),
    }


@pytest.fixture(scope="module")
def files(reports, tmp_path_factory):
    """Paths of the pages."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in reports}
    for name, report in reports.items():
        report.write_html(paths[name])
    return paths


@pytest.fixture(scope="module")
def notebook(reports, tmp_path_factory):
    """A page with two reports, one read by the parser, one inserted as Jupyter does."""
    first, second = (reports[name].html_snippet() for name in ("usual", "hostile"))
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    inserted = second.replace("</", "<\\/").replace("\\", "\\\\").replace("`", "\\`")
    inserted = inserted.replace("\\\\/", "\\/").replace("${", "\\${")
    path.write_text(
        f"""<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Notebook</title>
<style>h2 {{ color: rgb(1, 2, 3); }} table {{ display: none; }}</style>
<main><h1>Notebook</h1><h2 id="psm-missing">Own heading</h2>
<div class="psm-card" id="own">own</div>
<div id="first">{first}</div><div id="second"></div></main>
<script>
const place = document.getElementById("second");
place.innerHTML = `{inserted}`;
// Jupyter runs the scripts of an output anew
for (const old of place.querySelectorAll(":scope > script")) {{
  const made = document.createElement("script");
  made.textContent = old.textContent;
  old.replaceWith(made);
}}
</script></html>""",
        encoding="utf-8",
    )
    return path


def names_of(page):
    return page.locator(f"{COLUMNS} tbody tr:visible th").all_inner_texts()


@pytest.mark.parametrize("name", ["usual", "hostile", "many", "table alone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_without_a_message_or_a_request(visit, files, name, scheme):
    opened = visit(files[name], color_scheme=scheme)
    assert opened.messages == []
    assert opened.requests == [files[name].as_uri()]
    assert opened.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("name", ["usual", "hostile", "many", "table alone"])
@pytest.mark.parametrize("width", WIDTHS)
def test_page_does_not_scroll_sideways(visit, files, name, width):
    page = visit(files[name], width=width).page
    for tab in range(5):
        for group in page.locator("[role=tablist]").all():
            tabs = group.locator("[role=tab]")
            if tab < tabs.count():
                tabs.nth(tab).click()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        # clipped is not the same as fitting
        outside = page.evaluate(
            """() => [...document.querySelectorAll(".psm-main *")].filter((one) =>
                 !one.closest(".psm-scroll, svg, .psm-hidden") && one.offsetParent !== null
                 && one.getBoundingClientRect().right > innerWidth + 1
               ).map((one) => one.outerHTML.slice(0, 200))"""
        )
        assert outside == []


def test_search_keeps_the_columns_that_match(visit, files):
    page = visit(files["usual"]).page
    assert names_of(page) == list(NAMES)
    page.get_by_label("Search columns").fill("SMOK")
    assert names_of(page) == ["smoker"]
    assert page.locator("#psm-why .psm-card:visible h4 .psm-name").all_inner_texts() == ["smoker"]
    assert page.locator("[role=status]").first.inner_text() == f"1 of {len(NAMES)} columns"
    page.get_by_label("Search columns").fill("")
    assert names_of(page) == list(NAMES)


def test_search_opens_folded_columns(visit, files):
    page = visit(files["many"]).page
    card = page.locator("#psm-why .psm-card[data-column='column 22']")
    assert not card.is_visible()
    page.get_by_label("Search columns").fill("column 22")
    assert card.is_visible()
    page.get_by_label("Search columns").fill("")
    assert not card.is_visible()


def test_sorting(visit, files):
    page = visit(files["usual"]).page
    head = page.locator(f"{COLUMNS} thead th")
    button = head.nth(2).get_by_role("button")
    button.click()
    assert head.nth(2).get_attribute("aria-sort") == "ascending"
    button.press("Enter")
    assert head.nth(2).get_attribute("aria-sort") == "descending"
    assert names_of(page) == list(NAMES)[::-1]
    # a number that is not defined stays last
    for order in ("ascending", "descending"):
        head.nth(5).get_by_role("button").click()
        assert head.nth(5).get_attribute("aria-sort") == order
        assert names_of(page)[-1] == "age"
    assert head.nth(2).get_attribute("aria-sort") is None
    head.nth(0).get_by_role("button").click()
    assert names_of(page) == sorted(NAMES)


def test_tabs_follow_clicks_and_arrow_keys(visit, files):
    page = visit(files["usual"]).page
    group = page.locator("#psm-missing .psm-tabs")
    tabs = group.get_by_role("tab")
    panels = group.get_by_role("tabpanel", include_hidden=True)
    assert tabs.all_inner_texts() == [
        "Columns", "Patterns", "Correlations", "Influx and outflux", "Rows",
    ]  # fmt: skip

    def selected():
        chosen = [tab.get_attribute("aria-selected") == "true" for tab in tabs.all()]
        assert [panel.is_visible() for panel in panels.all()] == chosen
        assert [tab.get_attribute("tabindex") == "0" for tab in tabs.all()] == chosen
        return chosen.index(True)

    assert selected() == 0
    tabs.nth(1).click()
    assert selected() == 1
    for key, place in (
        ("ArrowRight", 2),
        ("End", 4),
        ("ArrowRight", 0),
        ("ArrowLeft", 4),
        ("Home", 0),
    ):
        page.keyboard.press(key)
        assert selected() == place
        assert tabs.nth(place).evaluate("one => one === document.activeElement")


def test_a_pair_of_columns_is_chosen(visit, files):
    page = visit(files["usual"]).page
    page.locator("#psm-imputed").get_by_role("tab", name="Two columns").click()
    figures = page.locator(".psm-choice")
    assert [one.is_visible() for one in figures.all()] == [True, False, False, False]
    page.get_by_label("Pair of columns").select_option(index=2)
    assert [one.is_visible() for one in figures.all()] == [False, False, True, False]


def test_dark_mode(visit, files):
    background = "getComputedStyle(document.querySelector('.psm-report')).backgroundColor"
    for scheme in ("light", "dark"):
        page = visit(files["usual"], color_scheme=scheme).page
        button = page.get_by_role("button", name="Dark mode")
        first = page.evaluate(background)
        assert (first == "rgb(255, 255, 255)") == (scheme == "light")
        assert button.get_attribute("aria-pressed") == str(scheme == "dark").lower()
        button.click()
        assert page.evaluate(background) != first
        assert button.get_attribute("aria-pressed") == str(scheme == "light").lower()
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        button.click()
        assert page.evaluate(background) == first


@pytest.mark.parametrize("allowed", [True, False])
def test_methods_are_copied(visit, files, allowed):
    opened = visit(files["usual"], permissions=["clipboard-read", "clipboard-write"])
    page = opened.page
    if not allowed:
        page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    page.get_by_role("button", name="Copy the paragraph").click()
    page.get_by_text("Copied.").wait_for()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.strip() == fake()["methods"]["paragraph"]
    assert opened.messages == []


def test_without_javascript_everything_is_there(visit, files):
    page = visit(files["usual"], java_script_enabled=False).page
    assert page.locator(".psm-panel").count() == page.locator(".psm-panel:visible").count() > 8
    assert page.locator(".psm-choice:visible").count() == 4
    assert page.locator("button, input, select").count() == 0
    page.get_by_text("What predicts missing cells").first.click()
    assert page.get_by_text("Area under the ROC curve").first.is_visible()
    page.get_by_role("link", name="Why").click()
    assert page.url.endswith("#psm-why")


def test_keyboard_reaches_the_report_by_the_skip_link(visit, files):
    page = visit(files["usual"]).page
    page.keyboard.press("Tab")
    assert page.get_by_text("Skip to the report").evaluate("one => one === document.activeElement")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "psm-short"


@pytest.mark.parametrize("name", ["usual", "hostile", "table alone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit, files, name, scheme):
    page = visit(files[name], color_scheme=scheme, bypass_csp=True).page
    # all panels at once: a run of axe takes seconds
    page.evaluate(
        """() => {
          document.querySelectorAll("details").forEach((one) => { one.open = true; });
          document.querySelectorAll("[role=tabpanel]").forEach((one) => { one.hidden = false; });
        }"""
    )
    assert serious_faults(page) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_no_serious_fault_at_both_widths(visit, files, width):
    page = visit(files["usual"], width=width, bypass_csp=True).page
    assert serious_faults(page) == []


def serious_faults(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    return [
        (fault["id"], [node["html"][:200] for node in fault["nodes"][:3]])
        for fault in found
        if fault["impact"] in {"serious", "critical"}
    ]


def test_hostile_names_are_shown_and_execute_nothing(visit, files):
    opened = visit(files["hostile"])
    page = opened.page
    shown = page.locator(f"{COLUMNS} tbody th").all_text_contents()
    expected = [printable(name) if name else "(empty name)" for name in (*NAMES, *HOSTILE)]
    assert [text.strip() for text in shown] == expected
    page.get_by_label("Search columns").fill("<script>")
    for tab in page.get_by_role("tab").all():
        tab.click()
    page.get_by_role("tab", name="Two columns").click()
    page.get_by_label("Pair of columns").select_option(index=1)
    assert page.evaluate("window.hacked") is None
    assert opened.messages == []


def test_two_reports_in_a_notebook_do_not_disturb_each_other(visit, notebook):
    opened = visit(notebook)
    page = opened.page
    # Chromium notes that a script inserts a template with a shadow root, which the parser ignores
    assert [text for text in opened.messages if "shadowrootmode" not in text] == []
    assert opened.requests == [notebook.as_uri()]
    opened.messages.clear()
    first, second = page.locator("#first"), page.locator("#second")
    for one in (first, second):
        assert one.locator(".psm-section").count() == 7
        assert one.get_by_role("tablist").count() == 3
        assert one.locator(f"{COLUMNS}").is_visible(), "the style of the notebook does not apply"
    # actions in one are not seen in the other
    first.get_by_label("Search columns").fill("smoker")
    first.get_by_role("tab", name="Patterns").click()
    first.get_by_role("button", name="Dark mode").click()
    assert first.locator(".psm-report").get_attribute("data-theme") == "dark"
    assert second.locator(".psm-report").get_attribute("data-theme") == "light"
    second.locator(f"{COLUMNS} tbody tr").first.wait_for()
    assert second.get_by_role("tab", name="Columns").first.get_attribute("aria-selected") == "true"
    assert second.locator("#psm-why .psm-card:visible").count() == 12
    # nor in the notebook
    colour = "getComputedStyle(document.querySelector('#psm-missing')).color"
    assert page.evaluate(colour) == "rgb(1, 2, 3)"
    assert page.locator("#own").evaluate("one => getComputedStyle(one).borderTopStyle") == "none"
    second.get_by_role("link", name="What follows").click()
    assert second.locator("#psm-follows").evaluate("one => one.getBoundingClientRect().top < 100")
    assert page.url == notebook.as_uri()
    assert page.evaluate("window.hacked") is None
    assert opened.messages == []


def test_a_report_is_dark_in_a_dark_notebook(visit, reports, tmp_path):
    path = tmp_path / "dark.html"
    snippet = reports["usual"].html_snippet()
    path.write_text(f"<body style='background:#111;color:#eee'>{snippet}", encoding="utf-8")
    page = visit(path).page
    assert page.locator(".psm-report").get_attribute("data-theme") == "dark"


def test_a_snippet_is_readable_without_javascript(visit, notebook):
    page = visit(notebook, java_script_enabled=False).page
    assert page.locator("#first .psm-section:visible").count() == 7


@pytest.mark.parametrize("name", ["usual", "many"])
@pytest.mark.parametrize("script", [True, False])
def test_page_prints(visit, files, name, script):
    page = visit(files[name], color_scheme="dark", java_script_enabled=script).page
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    [size] = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+ [\d.]+)\]", pdf))
    assert [round(float(side)) for side in size.split()] == [595, 842]
    page.emulate_media(media="print")
    assert page.locator(".psm-panel").count() == page.locator(".psm-panel:visible").count()
    assert page.locator("button:visible, input:visible, select:visible").count() == len(
        page.locator(".psm-sort:visible").all()
    )
    if script:
        background = "getComputedStyle(document.querySelector('.psm-report')).backgroundColor"
        assert page.evaluate(background) == "rgb(255, 255, 255)"
