"""The page of verdicts, made at build time from the outputs of the executed notebooks.

The directive `{verdicts}` writes a table, each row with a claim, its verdict, the figure and a link to the cell that
settled it; `{verdict-count}` writes the totals in a sentence.
"""

import sys
from collections import Counter
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bertlib.claims import VERDICTS, Claim, Settled, claims, read_ledger

HEAD = """<div class="verdicts" tabindex="0" role="region" aria-label="All claims and their verdicts">
<table class="table"><thead><tr><th scope="col">Claim</th><th scope="col">What is said</th><th scope="col">Verdict</th>
<th scope="col">Measured</th></tr></thead><tbody>"""
FOOT = "</tbody></table></div>"


def row(claim: Claim, chapter: str = "", entry: Settled | None = None) -> str:
    """A line of the table: an entry of the ledger, or a claim that is still open."""
    kind, verdict, measured, name = "open", "open", "", claim.id
    if entry is not None:
        kind, verdict = entry.verdict.split(",")[0], entry.verdict
        spread = f" ± {entry.uncertainty}" if entry.uncertainty else ""
        measured = f"{escape(entry.measured + spread)}<br><small>{escape(entry.quantity)}</small>"
        name = f'<a href="../chapters/{chapter}.html#claim-{claim.id}">{claim.id}</a>'
    unsaid = " <small>(unsaid in the article)</small>" if claim.unsaid else ""
    return (
        f'<tr class="verdict-{kind}"><th scope="row">{name}</th><td>{escape(claim.statement)}{unsaid}</td>'
        f"<td>{escape(verdict)}</td><td>{measured}</td></tr>"
    )


class Ledger(SphinxDirective):
    def notebooks(self) -> list[Path]:
        found = [Path(self.env.doc2path(name)) for name in self.env.found_docs if name.startswith("chapters/")]
        for path in found:
            self.env.note_dependency(str(path))
        return sorted(found)


class Verdicts(Ledger):
    def run(self):
        settled = {entry.id: (path.stem, entry) for path, entry in read_ledger(self.notebooks())}
        rows = [row(claim, *settled.get(claim.id, ())) for claim in claims().values()]
        return [nodes.raw("", HEAD + "".join(rows) + FOOT, format="html")]


class VerdictCount(Ledger):
    def run(self):
        entries = [entry for _, entry in read_ledger(self.notebooks())]
        count = Counter(entry.verdict for entry in entries)
        parts = ", ".join(f"{count[verdict]} “{verdict}”" for verdict in VERDICTS if count[verdict])
        text = f"{len(entries)} of {len(claims())} claims are settled so far: {parts}."
        return [nodes.paragraph(text, text)]


def setup(app):
    app.add_directive("verdicts", Verdicts)
    app.add_directive("verdict-count", VerdictCount)
    return {"parallel_read_safe": True}
