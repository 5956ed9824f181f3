"""The documentation site in a real browser: it builds without a warning, can be searched, and every link opens."""

import functools
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.browser import browser

pytestmark = [pytest.mark.heavy, pytest.mark.e2e, pytest.mark.xdist_group("browser")]

REPOSITORY = Path(__file__).parents[2]
SITE = REPOSITORY / "build" / "site"
PICTURES = REPOSITORY / "build" / "site-pictures"
FIRST_LEVEL = (
    "[...document.querySelectorAll('.md-tabs__link, .md-nav--primary .md-nav__link[href]')].map((a) => a.href)"
)
SHOWN = ("", "guide/getting-started/", "reference/stages/", "reference/rule-sets/", "reference/commands/")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *_args):
        pass


@pytest.fixture(scope="module")
def address():
    """The site, built as `make docs-site` builds it, behind a server on this machine."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "tools")}
    command = [sys.executable, "-m", "docs_site.build"]
    built = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "WARNING" not in built.stderr
    handler = functools.partial(QuietHandler, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def go(page, url):
    page.open(url)
    page.until("document.readyState === 'complete' && document.querySelector('article h1')")


def test_every_link_of_the_first_level_opens_a_page(page, address):
    go(page, address)
    tabs = page.run("[...document.querySelectorAll('.md-tabs__link')].map((link) => link.href)")
    links = dict.fromkeys(page.run(FIRST_LEVEL))
    for tab in tabs:
        go(page, tab)
        links |= dict.fromkeys(page.run(FIRST_LEVEL))
    inside = [link.partition("#")[0] for link in links if link.startswith(address)]

    assert len(tabs) >= 5
    assert len(set(inside)) >= 40
    for link in dict.fromkeys(inside):
        go(page, link)
        assert "404" not in page.run("document.title + document.querySelector('article h1').textContent"), link
    assert page.failures == []
    assert [url for url in page.requests if not url.startswith((address, "data:", "about:", "blob:"))] == []


@pytest.mark.parametrize(("words", "found"), [("ScoreFilter", "Stages"), ("quarantine", "quarantine")])
def test_what_is_searched_for_is_found(page, address, words, found):
    go(page, address)
    field = "document.querySelector('input.md-search__input')"
    page.run(f"{field}.focus()")
    page.run(f"{field}.value = {json.dumps(words)}; {field}.dispatchEvent(new Event('keyup', {{bubbles: true}}))")
    page.run(f"{field}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    results = page.until(
        "document.querySelectorAll('.md-search-result__link').length > 0 && "
        "document.querySelector('.md-search-result__list').innerText"
    )

    assert found.lower() in results.lower()


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_pages_are_drawn_in_light_and_dark(tmp_path, address, scheme, name):
    with browser(tmp_path) as page:  # of its own: the theme keeps what it was seen in last, and writes it when it likes
        page.prefer(scheme)
        for place in SHOWN:
            go(page, address + place)
            page.until(f"document.body.dataset.mdColorScheme === '{name}'")
            file = PICTURES / f"{place.strip('/').replace('/', '-') or 'home'}-{scheme}.png"
            pixels = page.picture(file)
            ground = pixels[600, 40:200].mean()

            assert (ground > 200) if scheme == "light" else (ground < 80), place
            assert pixels.std() > 10, f"{place}: nothing is drawn"
