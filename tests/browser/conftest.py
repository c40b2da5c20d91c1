"""A real browser: Chromium, driven by playwright."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        # in a container there may be no user namespaces for the sandbox
        started = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


class Visit:
    """A page that was opened, what it asked for and what it said on the console."""

    def __init__(self, context, url):
        self.requests, self.messages = [], []
        self.page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.goto(url)


@pytest.fixture
def visit(browser):
    """Open a file in a new context; closed after the test."""
    contexts = []

    def open_file(path, *, width=1440, **settings):
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        return Visit(context, path.as_uri())

    yield open_file
    for context in contexts:
        context.close()
