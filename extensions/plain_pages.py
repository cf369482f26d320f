"""Takes off every page what the theme adds and a static, offline book does not want, and mends what it gets wrong.

Off: Thebe (fetches from another host), the script of Font Awesome (half the page's weight; its icons also ship as
fonts, which stay), the advertisement slot, source maps. Mended: landmarks and keyboard access to what scrolls.
"""

import re
import shutil
from pathlib import Path

from bs4 import BeautifulSoup

UNWANTED_SCRIPTS = re.compile(r"THEBE|thebe|kernelName|fontawesome")
UNWANTED_FILES = (
    "scripts/*.map",
    "styles/*.map",
    "scripts/fontawesome.js*",
    "sphinx-thebe.*",
    "vendor/fontawesome/webfonts/*.ttf",
    "locales",
)


def take_off(page: BeautifulSoup) -> None:
    seen = set()
    for script in page.find_all("script"):
        text = str(script)
        if UNWANTED_SCRIPTS.search(text) or text in seen:
            script.decompose()
        seen.add(text)
    for tag in page.select(
        'link[href*="sphinx-thebe"], #ethical-ad-placement, meta[name=viewport] ~ meta[name=viewport]'
    ):
        tag.decompose()


def mend(page: BeautifulSoup) -> None:
    sidebar = page.find(id="pst-primary-sidebar")
    if sidebar:
        sidebar.attrs.update({"role": "navigation", "aria-label": "Book"})
    for block in page.select(".highlight pre, .output.text_plain pre, .output.stream pre, .output.text_html table"):
        block["tabindex"] = "0"
    for entry in page.select(".citation-list, .citation"):
        entry.attrs.pop("role", None)  # roles that do not fit together


FRONT_DOOR = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={first}">
<link rel="icon" href="data:,">
</head>
<body><p><a href="{first}">{title}</a></p></body>
</html>
"""


def write_plain(app, exception) -> None:
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    pages = [path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts]
    for path in pages:
        page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        take_off(page)
        mend(page)
        path.write_text(str(page), encoding="utf-8")
    for pattern in UNWANTED_FILES:
        for path in site.glob(f"_static/{pattern}"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    front_door = FRONT_DOOR.format(title=app.config.html_title, first=f"{app.config.root_doc}.html")
    Path(app.outdir, "index.html").write_text(front_door, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_plain, priority=900)
    return {"parallel_read_safe": True}
