"""Reading what a student hands in: numbers of a shape, and whether two of them are near."""

from __future__ import annotations

import numpy as np

from bertlib.exercises import Hint


def numbers(answer, shape: tuple[int, ...], expected: str) -> np.ndarray:
    """The answer as an array of finite numbers of this shape; `expected` says what to hand in.

    Raises:
        Hint: when it is not.
    """
    try:
        array = np.real(np.asarray(answer)).astype(float)
    except (TypeError, ValueError):
        raise Hint(f"That does not read as numbers. Hand in {expected}.") from None
    if np.iscomplexobj(answer) and np.any(np.imag(answer)):
        raise Hint(f"Some of these numbers have an imaginary part. Hand in {expected}.")
    if array.shape != shape:
        came, wanted = ("one number" if not s else f"an array of shape {s}" for s in (array.shape, shape))
        raise Hint(f"That is {came}, not {wanted}. Hand in {expected}.")
    if not np.isfinite(array).all():
        raise Hint(f"Some of these numbers are infinite or not a number. Hand in {expected}.")
    return array


def near(a, b, tolerance: float) -> bool:
    """Whether no entry of a and b differs by more than the tolerance."""
    return bool(np.abs(np.asarray(a) - np.asarray(b)).max() <= tolerance)
