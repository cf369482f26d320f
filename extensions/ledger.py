"""The page of verdicts, made at build time from the outputs of the executed notebooks.

The directive `{verdicts}` writes one table a chapter, each row with the claim, its verdict, the figure and a link to the
cell that settled it, then the claims that are still open; `{verdict-count}` writes the totals in a sentence.
"""

import sys
from collections import Counter
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bertlib.claims import VERDICTS, claims, read_ledger  # noqa: E402


class Ledger(SphinxDirective):
    def notebooks(self) -> list[Path]:
        found = [Path(self.env.doc2path(name)) for name in self.env.found_docs if name.startswith("chapters/")]
        for path in found:
            self.env.note_dependency(str(path))
        return sorted(found)


class Verdicts(Ledger):
    def run(self):
        known = claims()
        settled = {entry.id: (path, entry) for path, entry in read_ledger(self.notebooks())}
        rows = []
        for claim in known.values():
            if claim.id in settled:
                path, entry = settled[claim.id]
                link = f"../chapters/{path.stem}.html#claim-{claim.id}"
                spread = f" ± {escape(entry.uncertainty)}" if entry.uncertainty else ""
                rows.append(
                    f'<tr class="verdict-{entry.verdict.split(",")[0]}"><th scope="row"><a href="{link}">{claim.id}</a></th>'
                    f"<td>{escape(entry.statement)}</td><td>{escape(entry.verdict)}</td>"
                    f"<td>{escape(entry.measured)}{spread}<br><small>{escape(entry.quantity)}</small></td></tr>"
                )
            else:
                rows.append(
                    f'<tr class="verdict-open"><th scope="row">{claim.id}</th><td>{escape(claim.statement)}</td>'
                    "<td>open</td><td></td></tr>"
                )
        table = (
            '<div class="verdicts" tabindex="0" role="region" aria-label="All claims and their verdicts"><table class="table">'
            '<thead><tr><th scope="col">Claim</th><th scope="col">What the article says</th><th scope="col">Verdict</th>'
            f'<th scope="col">Measured</th></tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
        )
        return [nodes.raw("", table, format="html")]


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
