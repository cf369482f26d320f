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

from bertlib.claims import VERDICTS, Claim, claims, read_ledger


def cells(*texts: str, kind: str) -> str:
    """A line of a table, its first cell the heading."""
    name, *others = texts
    return (
        f'<tr class="verdict-{kind}"><th scope="row">{name}</th>{"".join(f"<td>{text}</td>" for text in others)}</tr>'
    )


def table(label: str, heads: list[str], rows: list[str]) -> nodes.raw:
    columns = "".join(f'<th scope="col">{head}</th>' for head in heads)
    html = (
        f'<div class="verdicts" tabindex="0" role="region" aria-label="{label}"><table class="table">'
        f"<thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
    return nodes.raw("", html, format="html")


def statement(claim: Claim) -> str:
    return escape(claim.statement) + (" <small>(unsaid in the article)</small>" if claim.unsaid else "")


class Ledger(SphinxDirective):
    def notebooks(self) -> list[Path]:
        found = [Path(self.env.doc2path(name)) for name in self.env.found_docs if name.startswith("chapters/")]
        for path in found:
            self.env.note_dependency(str(path))
        return sorted(found)


class Verdicts(Ledger):
    def run(self):
        known = claims()
        settled = {entry.id: (path.stem, entry) for path, entry in read_ledger(self.notebooks())}
        rows = []
        for claim in known.values():
            if claim.id in settled:
                chapter, entry = settled[claim.id]
                link = f'<a href="../chapters/{chapter}.html#claim-{claim.id}">{claim.id}</a>'
                spread = f" ± {entry.uncertainty}" if entry.uncertainty else ""
                details = [entry.quantity]
                details += (
                    [f"{'the article' if entry.quoted else 'tested as'}: {entry.claimed}"] if entry.claimed else []
                )
                details += [f"only if {entry.condition}; otherwise {entry.otherwise}"] if entry.condition else []
                details += [f"left out: {entry.missing}"] if entry.missing else []
                details += [entry.note] if entry.note else []
                figure = escape(entry.measured + spread)
                figure += "".join(f"<br><small>{escape(detail)}</small>" for detail in details)
                kind = entry.verdict.split(",")[0]
                rows.append(cells(link, statement(claim), escape(entry.verdict), figure, kind=kind))
        found = [table("Claims with a verdict", ["Claim", "What is said", "Verdict", "Measured"], rows)]
        still = [cells(claim.id, statement(claim), kind="open") for claim in known.values() if claim.id not in settled]
        if still:
            text = "Still open, each waiting for its chapter:"
            found += [nodes.paragraph(text, text), table("Open claims", ["Claim", "What is said"], still)]
        return found


class VerdictCount(Ledger):
    def run(self):
        entries = [entry for _, entry in read_ledger(self.notebooks())]
        count = Counter(entry.verdict for entry in entries)
        parts = ", ".join(f"{count[verdict]} “{verdict}”" for verdict in VERDICTS if count[verdict])
        unsaid = sum(claims()[entry.id].unsaid for entry in entries)
        text = (
            f"{len(entries)} of {len(claims())} claims are settled so far: {parts}. "
            f"Of the settled ones {unsaid} are not made in the article, which leaves them unsaid."
        )
        return [nodes.paragraph(text, text)]


def setup(app):
    app.add_directive("verdicts", Verdicts)
    app.add_directive("verdict-count", VerdictCount)
    return {"parallel_read_safe": True}
