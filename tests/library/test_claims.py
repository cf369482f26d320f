"""A verdict stands only when its own figures bear it out, and every claim of the book has its place."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlib.claims import VERDICTS, ClaimError, claims, read_ledger, settle

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def settled(verdict, claimed, measured, **more):
    return settle("D1", verdict, quantity="variance", claimed=claimed, measured=measured, **more)


def test_holds_when_the_figure_rounds_to_the_claim():
    assert settled("holds", "0.82", 0.8249).measured == "0.825"
    assert settled("holds", "64", 63.7, uncertainty=0.4).uncertainty == "0.4"
    assert settled("holds", ["0.5", "2"], [0.46, 2.4]).measured == "0.46, 2.4"
    assert settled("holds", "> 0", 1e-300).verdict == "holds"
    assert settled("holds", "-24 .. 24", 23.0, uncertainty=1.0).verdict == "holds"
    assert settled("holds", "1.5e-3", 1.54e-3).verdict == "holds"


@pytest.mark.parametrize(
    "claimed, measured, uncertainty",
    [
        ("0.82", 0.8137, 0),
        ("0.82", 0.8251, 0),
        ("> 0", 0.0, 0),
        ("> 0", 0.1, 0.2),  # undecided
        ("<= 1", 1.5, 0.1),
        ("64", 60.0, 20.0),  # far too uncertain to confirm an equality
        (["1", "2"], [1.0, 3.0], 0),
        ("-24 .. 24", 25.0, 0.5),
    ],
)
def test_holds_fails_when_the_measurement_does_not_bear_it_out(claimed, measured, uncertainty):
    with pytest.raises(ClaimError, match="not borne out"):
        settled("holds", claimed, measured, uncertainty=uncertainty)


def test_corrected_needs_a_contradiction():
    assert settled("corrected", "64", 6.04).verdict == "corrected"
    with pytest.raises(ClaimError, match="agrees"):
        settled("corrected", "64", 64.2)
    with pytest.raises(ClaimError, match="undecided"):
        settled("corrected", "> 0.5", 0.5, uncertainty=0.1)


def test_rounded_is_near_but_not_equal():
    article = ["0.82", "0.50", "0.51", "0.19"]
    assert settled("rounded", article, [0.8137, 0.4935, 0.5065, 0.1863], digits=4).verdict == "rounded"
    for measured in (0.82, 0.7):
        with pytest.raises(ClaimError, match="not borne out"):
            settled("rounded", "0.82", measured)
    with pytest.raises(ClaimError, match="not borne out"):
        settled("rounded", "> 1", 0.99)


def test_a_condition_is_shown_from_both_sides():
    both = dict(condition="independent components", otherwise=420.0)
    assert settled("holds, with a condition", "64", 64.1, **both).otherwise == "420"
    with pytest.raises(ClaimError, match="stands without its condition"):
        settled("holds, with a condition", "64", 64.1, condition="independence", otherwise=64.0)
    for verdict, more in [
        ("holds, with a condition", {}),
        ("holds, with a condition", {"condition": "independence"}),
        ("holds", both),
    ]:
        with pytest.raises(ClaimError, match="condition and otherwise"):
            settled(verdict, "64", 64.1, **more)


def test_incomplete_says_what_is_missing():
    assert settled("incomplete", "64", 64.0, missing="a term").missing == "a term"
    with pytest.raises(ClaimError, match="left out"):
        settled("incomplete", "64", 64.0)
    with pytest.raises(ClaimError, match="left out"):
        settled("holds", "64", 64.0, missing="a term")


@pytest.mark.parametrize("measured", [None, math.nan, math.inf, "much", [], [1.0, 2.0]])
def test_no_verdict_without_a_figure(measured):
    with pytest.raises(ClaimError, match="measured"):
        settled("holds", "64", measured)


def test_wrong_words_are_named():
    with pytest.raises(ClaimError, match="no claim 'Z9'"):
        settle("Z9", "holds", quantity="q", claimed="1", measured=1)
    with pytest.raises(ClaimError, match=r"'holds, with a condition'.*not 'true'"):
        settled("true", "1", 1)
    with pytest.raises(ClaimError, match="quantity"):
        settle("D1", "holds", quantity=" ", claimed="1", measured=1)
    with pytest.raises(ClaimError, match=r"claimed must be a figure.*'about 3'"):
        settled("holds", "about 3", 3)
    with pytest.raises(ClaimError, match="D1: claimed must have at least one"):
        settled("holds", [], [])
    assert settled("holds", 3, 3.2).claimed == "3"
    with pytest.raises(ClaimError, match="negative"):
        settled("holds", "1", 1, uncertainty=-0.1)


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_a_figure_holds_against_its_own_rounding(figure, decimals):
    assert settled("holds", f"{figure:.{decimals}f}", figure).verdict == "holds"


@settings(deadline=None)
@given(st.floats(-1e3, 1e3), st.floats(0.1, 50))
def test_no_figure_is_both_confirmed_and_corrected(claimed, uncertainty):
    outcomes = []
    for verdict in ("holds", "corrected"):
        try:
            settled(verdict, f"{claimed:.1f}", claimed + 3, uncertainty=uncertainty)
            outcomes.append(verdict)
        except ClaimError:
            pass
    assert len(outcomes) <= 1


def test_record_survives_in_a_notebook(tmp_path):
    entry = settled("holds", "64", 63.9, uncertainty=0.4, note="a < b & c")
    data, metadata = entry._repr_mimebundle_()
    assert "a &lt; b &amp; c" in data["text/html"] and 'id="claim-D1"' in data["text/html"]
    output = {"output_type": "execute_result", "data": data, "metadata": metadata}
    path = tmp_path / "chapter.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [output]}]}))
    assert read_ledger([path]) == [(path, entry)]


def test_every_claim_is_settled_once_in_its_chapter_or_listed_as_open():
    ledger = read_ledger(sorted(CHAPTERS.glob("*.ipynb")))
    ids = [entry.id for _, entry in ledger]
    assert len(ids) == len(set(ids)), "a claim is settled twice"
    known = claims()
    assert {entry for entry in ids} == {claim.id for claim in known.values() if not claim.open}
    for path, entry in ledger:
        assert known[entry.id].chapter == path.stem
        assert known[entry.id].statement == entry.statement, f"{entry.id}: run `make execute NB={path.stem}` again"
        assert entry.verdict in VERDICTS
