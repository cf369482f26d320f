"""The built site, served from a sub-path, and a real browser to open it in."""

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
SUB_PATH = "some/where/book"

sys.path.insert(0, str(ROOT / "scripts"))
import browser as installed_browser  # noqa: E402


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The address of the site below a sub-path of a local server."""
    root = tmp_path_factory.mktemp("root")
    place = root / SUB_PATH
    place.parent.mkdir(parents=True)
    place.symlink_to(SITE, target_is_directory=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root)) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/{SUB_PATH}/"
        running.shutdown()


@pytest.fixture(scope="session")
def chromium():
    path = installed_browser.find()
    assert path, "no browser: run `python scripts/browser.py`"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update"],
        )
        yield running
        running.close()


class Visit:
    """A page in one colour scheme and width that notes every request and everything the console says."""

    def __init__(self, browser, scheme="light", width=1280):
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        self.page = self.context.new_page()
        self.requests, self.problems = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("requestfailed", lambda request: self.problems.append(f"failed: {request.url}"))
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", self._console)
        self.page.on("response", self._response)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _response(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def open(self, address):
        self.page.goto(address, wait_until="load")
        self.page.wait_for_function("document.fonts.status === 'loaded'")
        return self.page


@pytest.fixture
def visit(chromium):
    """Opens an address in a colour scheme at a width: visit(address, scheme, width) gives the `Visit`."""
    opened = []

    def open_page(address, scheme="light", width=1280):
        opened.append(Visit(chromium, scheme, width))
        opened[-1].open(address)
        return opened[-1]

    yield open_page
    for one in opened:
        one.context.close()
