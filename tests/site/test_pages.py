"""Every page of the site, in light and dark, at the width of a desk and of a phone, in a real browser."""

import gzip
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
FILES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
PAGES = [name for name in FILES if name != "index.html"]  # which only sends on to the first page
LOOKS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 390)]
PAGE_LIMIT_KIB = 750

RAW_FORMULAS = r"""() => {
    const text = document.querySelector('main')?.cloneNode(true);
    text?.querySelectorAll('.katex, pre, code, script').forEach(element => element.remove());
    return text?.textContent.match(/\$[^$]*\$|\\(frac|sqrt|sum|begin)\b/g) ?? [];
}"""

# axe spends nearly all its time on the contrast of thousands of alike spans. Formulas inherit the colour of their text
# and are hidden from a screen reader in this form (their MathML stays); all code is coloured by one style.
KEEP_A_SAMPLE = """() => {
    document.querySelectorAll('.katex-html').forEach(element => element.replaceChildren());
    [...document.querySelectorAll('.highlight pre')].slice(8).forEach(element => element.replaceChildren('code'));
}"""

# A colour in the middle of its transition, from the first paint's scheme to the reader's, is no colour of the page.
AT_REST = "*, *::before, *::after { transition: none !important; animation: none !important; }"

assert PAGES, "the site is not built: run `make book`"


def violations(page):
    """What axe finds wrong, an element a line."""
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {node['target']} {node['html'][:200]}" for v in found for node in v["nodes"][:3]]


@pytest.mark.parametrize("scheme, width", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_sound(visit, server, name, scheme, width):
    visited = visit(server + name, scheme, width)
    page = visited.page
    foreign = [url for url in visited.requests if not url.startswith((server, "data:"))]
    assert foreign == [], "a page asks no other host for anything"
    assert visited.problems == []
    assert page.locator(".katex-error, .merror, mjx-merror").count() == 0
    assert page.evaluate(RAW_FORMULAS) == [], "a formula stands in the page as its source"
    broken = page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    assert broken == []
    overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    assert overflow <= 0, f"the page is {overflow} px wider than the window"
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
    page.evaluate(KEEP_A_SAMPLE)
    page.add_style_tag(content=AT_REST)
    told = violations(page)
    if told:  # the theme's scripts may still be at work on a slow machine; what is wrong stays wrong
        page.wait_for_timeout(2000)
        told = violations(page)
    assert told == []


@pytest.mark.parametrize("name", PAGES)
def test_page_works_from_a_folder(visit, name):
    visited = visit((SITE / name).as_uri())
    assert visited.problems == []
    assert all(url.startswith(("file:", "data:")) for url in visited.requests)


@pytest.mark.parametrize("name", PAGES)
def test_page_is_light(visit, server, name):
    visited = visit(server + name)
    paths = {unquote(urlsplit(url).path) for url in visited.requests if not url.startswith("data:")}
    prefix = urlsplit(server).path
    weight = sum(len(gzip.compress((SITE / path.removeprefix(prefix)).read_bytes())) for path in paths)
    assert weight / 1024 <= PAGE_LIMIT_KIB, f"{weight / 1024:.0f} KiB gzipped"


def test_every_link_leads_somewhere(chromium, server):
    """Links and anchors between pages, those in raw HTML included, which Sphinx does not check."""
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    ids, links = {}, []
    for name in PAGES:
        page.goto(server + name, wait_until="domcontentloaded")
        ids[server + name] = set(page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)"))
        links += [(name, href) for href in page.evaluate("[...document.links].map(a => a.getAttribute('href'))")]
    context.close()
    dangling = []
    for name, href in links:
        address, _, anchor = urljoin(server + name, href).partition("#")
        if not address.startswith(server):
            continue
        path = SITE / unquote(address.removeprefix(server))
        wrong_anchor = anchor and address in ids and unquote(anchor) not in ids[address]
        if not path.is_file() or wrong_anchor:
            dangling.append(f"{name}: {href}")
    assert dangling == []


@pytest.mark.parametrize("where", ["server", "folder"])
def test_the_front_door_leads_to_the_first_page(visit, server, where):
    page = visit(server if where == "server" else (SITE / "index.html").as_uri()).page
    page.wait_for_url("**/intro.html")
    assert page.locator("article h1").inner_text().startswith("The Geometry of BERT")


def test_theme_switch_and_solutions_work(visit, server):
    page = visit(server + "chapters/softmax.html").page
    page.locator("button.theme-switch-button:visible").first.click()
    assert page.evaluate("document.documentElement.dataset.mode") in ("light", "dark", "auto")
    solution = page.locator("details.hide, .cell.tag_hide-cell details").first
    assert solution.get_attribute("open") is None, "a solution is shut until it is opened"
    solution.locator("summary").click()
    assert solution.get_attribute("open") is not None


def test_search_finds_a_word(visit, server):
    page = visit(server + "search.html?q=entropy").page
    page.wait_for_selector("#search-results li a", timeout=10_000)
    assert page.locator("#search-results li a").count() > 0
