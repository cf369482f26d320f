"""A claim is settled in a notebook cell by a measured figure and one of five verdicts; the ledger collects the cells.

    settle("D1", "holds", quantity="Var(q·k) at dₖ = 64", claimed="64", measured=63.9, uncertainty=0.4)

`settle` refuses a verdict that its own figures contradict, shows the claim as a small box, and stores it in the cell's
output, from which `read_ledger` reads it back without running anything. Standard library alone.
"""

import html
import json
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

VERDICTS = {
    "holds": "true as stated",
    "holds, with a condition": "true under an assumption that goes unsaid",
    "rounded": "right in kind; the figure is off by rounding",
    "incomplete": "true, but leaves out what a reader who builds BERT needs",
    "corrected": "false as stated",
}
RECORD = "bertlib-claim"  # the key in an output's metadata under which the record lies
ROUNDING_LIMIT = 0.05  # a figure further off than this, relative to the largest, is not off by rounding
PRECISION_LIMIT = 0.1  # an interval wider than this, relative to the figure, cannot confirm an equality


class ClaimError(ValueError):
    """A verdict that cannot stand: no such claim, no such verdict, no figure, or a figure that contradicts it."""


@dataclass(frozen=True)
class Claim:
    """One claim in the book's own words, with its chapter; `unsaid` by the article, or still `open`."""

    id: str
    statement: str
    chapter: str
    unsaid: bool = False
    open: bool = False


@dataclass(frozen=True)
class Settled:
    """A claim with its verdict and the figure behind it, as text at the precision that the page shows."""

    id: str
    statement: str
    verdict: str
    quantity: str
    claimed: str
    measured: str
    uncertainty: str = ""
    condition: str = ""
    otherwise: str = ""
    missing: str = ""
    note: str = ""
    quoted: bool = True

    def rows(self) -> list[tuple[str, str]]:
        """The lines of the box, label and text, empty ones left out."""
        spread = f" ± {self.uncertainty}" if self.uncertainty else ""
        rows = [
            ("The article" if self.quoted else "Tested as", self.claimed),
            ("Measured", f"{self.measured}{spread} ({self.quantity})"),
            ("Condition", self.condition),
            ("Without it", self.otherwise),
            ("Left out", self.missing),
            ("Note", self.note),
        ]
        return [(label, text) for label, text in rows if text]

    def __str__(self) -> str:
        lines = [f"{self.id}: {self.verdict}", self.statement, *(f"{label}: {text}" for label, text in self.rows())]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        style = self.verdict.split(",")[0]
        rows = "".join(f"<dt>{label}</dt><dd>{html.escape(text)}</dd>" for label, text in self.rows())
        return (
            f'<section class="claim claim-{style}" id="claim-{self.id}" aria-label="Claim {self.id}">'
            f'<p class="claim-head"><strong>{self.id}</strong> <span class="claim-verdict">{self.verdict}</span></p>'
            f'<p class="claim-statement">{html.escape(self.statement)}</p><dl>{rows}</dl></section>'
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}, {RECORD: asdict(self)}


def claims() -> dict[str, Claim]:
    """Every claim of the book by id, from `claims.toml` beside this file."""
    table = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
    return {name: Claim(id=name, **entry) for name, entry in table.items()}


def settle(
    claim_id: str,
    verdict: str,
    *,
    quantity: str,
    claimed: str | Sequence[str],
    measured: float | Sequence[float],
    uncertainty: float = 0.0,
    condition: str = "",
    otherwise: float | Sequence[float] | None = None,
    missing: str = "",
    note: str = "",
    digits: int = 3,
) -> Settled:
    """Settle a claim; the cell that calls this last shows the box and carries the record.

    Args:
        claim_id: an id of `claims.toml`, such as "D4".
        verdict: one of `VERDICTS`.
        quantity: what was measured, with its unit.
        claimed: the article's figure as it prints it ("0.82": its last digit says how precisely it is meant), or, where
            it prints none, what its words are tested as: a bound ("> 0", "<= 0.001") or a range ("-24 .. 24"). Several
            as a sequence of these.
        measured: the book's figure, or as many as `claimed` has.
        uncertainty: half the width of the 95 % interval around each figure; 0 for an exact value.
        condition: what has to be assumed, for "holds, with a condition".
        otherwise: what is measured when the condition fails, for the same.
        missing: what the article leaves out, for "incomplete".
        note: one more sentence for the reader.
        digits: significant digits shown.

    Raises:
        ClaimError: when the id or the verdict is unknown, a figure is missing or not finite, or the figures do not bear
            the verdict out: a "holds" or "incomplete" that the measurement contradicts or leaves undecided, a
            "corrected" that it confirms, a "rounded" that is exact or off by more than 5 %, a "holds, with a condition"
            whose claim also stands without the condition.
    """
    claim = _claim(claim_id)
    if verdict not in VERDICTS:
        raise ClaimError(f"{claim_id}: verdict must be one of {', '.join(map(repr, VERDICTS))}, not {verdict!r}")
    if not quantity.strip():
        raise ClaimError(f"{claim_id}: quantity must say what was measured")
    claimed = [str(printed) for printed in _several(claimed)]
    if not claimed:
        raise ClaimError(f"{claim_id}: claimed must have at least one figure, bound or range")
    measured = _figures(claim_id, "measured", measured, len(claimed))
    uncertainty = _figures(claim_id, "uncertainty", uncertainty, 1)[0]
    if uncertainty < 0:
        raise ClaimError(f"{claim_id}: uncertainty must not be negative, it is {uncertainty}")
    if (verdict == "holds, with a condition") != bool(condition) or bool(condition) != (otherwise is not None):
        raise ClaimError(
            f"{claim_id}: 'holds, with a condition' takes condition and otherwise, both, and no other verdict does"
        )
    if (verdict == "incomplete") != bool(missing):
        raise ClaimError(f"{claim_id}: 'incomplete' says in missing what is left out, and no other verdict does")

    try:
        found = _agreement(claimed, measured, uncertainty)
    except ValueError as error:
        raise ClaimError(f"{claim_id}: {error}") from error
    borne_out = {
        "holds": found == "agrees",
        "holds, with a condition": found == "agrees",
        "incomplete": found == "agrees",
        "corrected": found == "contradicts",
        "rounded": found == "contradicts" and _off_by_rounding(claimed, measured),
    }[verdict]
    figures = f"claimed {', '.join(claimed)}; measured {_join(measured, 6)} ± {uncertainty:.3g}"
    if not borne_out:
        raise ClaimError(f"{claim_id}: the verdict {verdict!r} is not borne out, the measurement {found}: {figures}")
    if otherwise is not None:
        otherwise = _figures(claim_id, "otherwise", otherwise, len(claimed))
        if _agreement(claimed, otherwise, uncertainty) != "contradicts":
            raise ClaimError(f"{claim_id}: the claim stands without its condition too: {_join(otherwise, 6)}")

    return Settled(
        id=claim_id,
        statement=claim.statement,
        verdict=verdict,
        quantity=quantity,
        claimed=_join(claimed, digits),
        measured=_join(measured, digits),
        uncertainty=f"{uncertainty:.2g}" if uncertainty else "",
        condition=condition,
        otherwise="" if otherwise is None else _join(otherwise, digits),
        missing=missing,
        note=note,
        quoted=not claim.unsaid and all(_interval(printed)[2] for printed in claimed),
    )


def read_ledger(notebooks: Sequence[Path]) -> list[tuple[Path, Settled]]:
    """Every settled claim in the outputs of these notebooks, in order, with the notebook it stands in."""
    found = []
    for path in notebooks:
        for cell in json.loads(Path(path).read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                record = output.get("metadata", {}).get(RECORD)
                if record is not None:
                    found.append((Path(path), Settled(**record)))
    return found


def _claim(claim_id: str) -> Claim:
    known = claims()
    if claim_id not in known:
        raise ClaimError(f"there is no claim {claim_id!r}; the book's claims are {', '.join(known)}")
    return known[claim_id]


def _several(value) -> list:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return [value]
    return list(value)


def _figures(claim_id: str, name: str, value, count: int) -> list[float]:
    try:
        figures = [float(figure) for figure in _several(value)]
    except (TypeError, ValueError) as error:
        raise ClaimError(f"{claim_id}: {name} must be a number or several, not {value!r}") from error
    if len(figures) != count:
        raise ClaimError(f"{claim_id}: {name} must have {count} figure(s), one for each claimed; it has {len(figures)}")
    if not all(map(math.isfinite, figures)):
        raise ClaimError(f"{claim_id}: {name} must be finite, not {value!r}")
    return figures


_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


def _interval(claimed: str) -> tuple[float, float, bool]:
    """The values that a printed claim admits, as (low, high), and whether it is a figure (else a bound or a range)."""
    text = str(claimed).strip().replace("−", "-")
    if match := re.fullmatch(rf"({_NUMBER})", text):
        value = float(text)
        mantissa, _, exponent = text.partition("e")
        decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
        half_unit = 0.5 * 10.0**-decimals
        return value - half_unit, value + half_unit, True
    if match := re.fullmatch(rf"(<=|<|>=|>)\s*({_NUMBER})", text):
        bound = float(match[2])
        if "=" not in match[1]:
            bound = math.nextafter(bound, -math.inf if match[1] == "<" else math.inf)
        return (-math.inf, bound, False) if match[1][0] == "<" else (bound, math.inf, False)
    if match := re.fullmatch(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})", text):
        return float(match[1]), float(match[2]), False
    raise ValueError(f"claimed must be a figure, a bound such as '> 0' or a range such as '-24 .. 24', not {claimed!r}")


def _agreement(claimed: list[str], measured: list[float], uncertainty: float) -> str:
    """Whether the measurement 'agrees' with the claim, 'contradicts' it, or 'leaves it undecided'."""
    verdicts = []
    for printed, figure in zip(claimed, measured, strict=True):
        low, high, is_figure = _interval(printed)
        slack = 1e-9 * max(abs(figure), 1e-300)  # a figure on the edge of its rounding is inside
        if figure + uncertainty < low - slack or figure - uncertainty > high + slack:
            verdicts.append("contradicts")
        elif is_figure and uncertainty > PRECISION_LIMIT * max(abs(low), abs(high)):
            verdicts.append("leaves it undecided")
        elif is_figure or (low <= figure - uncertainty and figure + uncertainty <= high):
            verdicts.append("agrees")
        else:
            verdicts.append("leaves it undecided")
    for verdict in ("contradicts", "leaves it undecided"):
        if verdict in verdicts:
            return verdict
    return "agrees"


def _off_by_rounding(claimed: list[str], measured: list[float]) -> bool:
    intervals = [_interval(printed) for printed in claimed]
    if not all(is_figure for _, _, is_figure in intervals):
        return False
    largest = max(map(abs, measured))
    return all(
        abs(figure - (low + high) / 2) <= ROUNDING_LIMIT * largest
        for figure, (low, high, _) in zip(measured, intervals, strict=True)
    )


def _join(values: list, digits: int) -> str:
    return ", ".join(value if isinstance(value, str) else f"{value:.{digits}g}" for value in values)
