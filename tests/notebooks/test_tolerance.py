"""The comparison that nbval uses: strict on text, tolerant on digits."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("tolerance", Path(__file__).resolve().parents[2] / "conftest.py")
tolerance = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tolerance)
TolerantText = tolerance.TolerantText


@pytest.mark.parametrize(
    "one, other",
    [
        ("loss 0.6931", "loss 0.6931"),
        ("loss 0.69310", "loss 0.69312"),
        ("1000.0 and -3.5e-07", "1000.9 and -3.6e-07"),
        ("gap 1.2e-16", "gap 8.9e-17"),
        ("p = 0.0001", "p = 0.0002"),
        ("−24.00 to 24.00", "−24.01 to 24.00"),
        ("[0.506, 0.186]", "[0.5061, 0.186]"),
    ],
)
def test_equal(one, other):
    assert TolerantText(one) == TolerantText(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("loss 0.693", "loss 0.695"),
        ("loss 0.693", "cost 0.693"),
        ("3 tokens", "4 tokens"),
        ("1.0 2.0", "1.0"),
        ("shape (2, 3)", "shape (3, 2)"),
        ("0.5", "-0.5"),
        ("v2", "v3"),
        ("nan", "0.0"),
        ("1000", "1002"),
    ],
)
def test_different(one, other):
    assert TolerantText(one) != TolerantText(other)
