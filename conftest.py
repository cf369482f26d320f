"""Strict nbval, tolerant on digits.

Two outputs are equal when they agree outside their numbers, character for character, and each number agrees to REL_TOL
or ABS_TOL. Three significant digits are the same on every machine; the last bit is not.
"""

import json
import math
import re

REL_TOL, ABS_TOL = 1e-3, 2e-4
NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:\.\d*)?(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE)


class TolerantText(str):
    """A text that equals another when both read the same and their numbers agree to within the tolerance."""

    __hash__ = str.__hash__

    def __eq__(self, other):
        if str.__eq__(self, other):
            return True
        if not isinstance(other, str) or NUMBER.sub("#", self) != NUMBER.sub("#", other):
            return False
        pairs = zip(NUMBER.findall(self), NUMBER.findall(other), strict=True)
        return all(math.isclose(_value(a), _value(b), rel_tol=REL_TOL, abs_tol=ABS_TOL) for a, b in pairs)

    def __ne__(self, other):
        return not self == other


def _value(number: str) -> float:
    return float(number.replace("−", "-"))


def pytest_configure(config):
    if not getattr(config.option, "nbval", False):
        return
    from nbval.plugin import IPyNbCell

    def sanitize(self, output):
        text = output if isinstance(output, str) else json.dumps(output, sort_keys=True, ensure_ascii=False)
        return TolerantText(text)

    IPyNbCell.sanitize = sanitize
