"""A headless Chromium for the tests that look at pages: how it is started, and a visit that remembers everything."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SIZES = {"desktop": 1280, "phone": 390}
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    # the driver leaves its pipes to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@contextmanager
def started():
    """A browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def until(page, words):
    """Wait until something is true in the page, whose policy lets no string become a function there."""
    for _ in range(300):
        if page.evaluate(words):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {words}")


class Visit:
    """A page, what it asked for, and what it complained about."""

    def __init__(self, browser, where, width, scheme="light"):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.page, self.asked, self.said = self.context.new_page(), [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.goto(where.as_uri() if isinstance(where, Path) else where)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()
