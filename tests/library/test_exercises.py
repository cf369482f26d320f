"""The frame around the exercises: names, empty answers, answers that raise."""

import numpy as np
import pytest

from bertlib.exercises import CHAPTERS, Hint, answers, check, names


def test_every_chapter_has_five():
    for chapter in CHAPTERS:
        assert names(chapter) == [f"{chapter}-{number}" for number in range(1, 6)]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_answer_is_neither_right_nor_wrong(chapter):
    for name in names(chapter):
        result = check(name, ...)
        assert result.right is None
        assert repr(result).startswith(f"{name}: no answer yet.")


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("nonsense", [None, "forty-two", [], {}, object(), float("nan"), lambda *a, **k: 1 / 0])
def test_nonsense_gets_a_hint_and_never_an_exception(chapter, nonsense):
    for name in names(chapter):
        result = check(name, nonsense)
        assert result.right is False
        assert len(result.message) > 10


def test_unknown_names_are_told_from_known_ones():
    with pytest.raises(ValueError, match="no exercise 'softmax-9'"):
        check("softmax-9", 1)
    with pytest.raises(ValueError, match="no exercise 'alchemy-1'"):
        check("alchemy-1", 1)
    with pytest.raises(ValueError, match="no chapter 'alchemy'"):
        names("alchemy")


def test_an_imaginary_part_is_not_dropped():
    assert answers.numbers(np.array([1 + 0j, 2]), (2,), "two numbers").tolist() == [1, 2]
    with pytest.raises(Hint, match="imaginary"):
        answers.numbers(np.array([1 + 1j, 2]), (2,), "two numbers")
