"""What numbers given as arguments must be: the checks that several files need. No torch: the tokenizer imports this."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real


def check_integer(name: str, value: object) -> int:
    """A whole number, Python's or numpy's.

    Raises:
        TypeError: when it is none; a truth value is none either.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    return int(value)


def check_positive(name: str, value: object) -> int:
    """A whole number from 1 up.

    Raises:
        TypeError: when it is no integer.
        ValueError: when it is not positive.
    """
    if check_integer(name, value) < 1:
        raise ValueError(f"{name} must be positive, not {value}")
    return int(value)


def check_number(name: str, value: object) -> float:
    """A real number, Python's or numpy's.

    Raises:
        TypeError: when it is none; a truth value is none either.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    return float(value)


def check_lengths(lengths: object, tokens: int, least: int = 0) -> list[int]:
    """The lengths of packed sequences: a list, an array or a tensor of integers that add up to the tokens.

    Raises:
        TypeError: when they are no integers.
        ValueError: when one is below `least`, or they do not add up.
    """
    given = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise TypeError(f"lengths must be a list of integers, not {lengths!r}")
    sizes = [check_integer(f"lengths[{i}]", length) for i, length in enumerate(given)]
    if any(size < least for size in sizes):
        raise ValueError(f"lengths must be from {least} up, not {sizes}")
    if sum(sizes) != tokens:
        raise ValueError(f"lengths must add up to the tokens, {tokens}, not to {sum(sizes)}")
    return sizes
