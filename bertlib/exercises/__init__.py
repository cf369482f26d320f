"""The checks behind the exercises: they tell what is wrong without giving the answer away.

    from bertlib.exercises import check
    check("softmax-1", my_answer)

Each module of this package holds one chapter's exercises. An exercise is a function of the answer that returns nothing
when the answer is right and raises `Hint` when it is not.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

CHAPTERS = {
    "attention": "bertlib.exercises.attention",
    "softmax": "bertlib.exercises.softmax",
    "scaling": "bertlib.exercises.scaling",
    "worked-example": "bertlib.exercises.worked_example",
    "words-as-points": "bertlib.exercises.words_as_points",
    "position": "bertlib.exercises.position",
    "queries-and-keys": "bertlib.exercises.queries_and_keys",
    "many-heads": "bertlib.exercises.many_heads",
    "normalisation-and-feed-forward": "bertlib.exercises.normalisation_and_feed_forward",
    "the-block-and-the-stack": "bertlib.exercises.the_block_and_the_stack",
    "from-text-to-tensors": "bertlib.exercises.from_text_to_tensors",
    "a-trained-bert": "bertlib.exercises.a_trained_bert",
    "cross-entropy": "bertlib.exercises.cross_entropy",
}

_CHECKS: dict[str, Callable] = {}


class Hint(Exception):
    """What is wrong with an answer, in words that help and do not tell."""


@dataclass(frozen=True)
class Result:
    """The outcome of a check: `right` is None while there is no answer yet."""

    exercise: str
    right: bool | None
    message: str

    def __repr__(self) -> str:
        mark = {True: "right", False: "not yet", None: "no answer yet"}[self.right]
        return f"{self.exercise}: {mark}. {self.message}".rstrip()


def exercise(name: str) -> Callable:
    """Register the decorated check under the name of its exercise, such as "softmax-1"."""

    def register(function: Callable) -> Callable:
        _CHECKS[name] = function
        return function

    return register


def names(chapter: str) -> list[str]:
    """The exercises of a chapter, in order.

    Raises:
        ValueError: when there is no such chapter.
    """
    if chapter not in CHAPTERS:
        raise ValueError(f"there is no chapter {chapter!r}; the chapters with exercises are {', '.join(CHAPTERS)}")
    import_module(CHAPTERS[chapter])
    return sorted(name for name in _CHECKS if name.rpartition("-")[0] == chapter)


def check(name: str, answer) -> Result:
    """Judge an answer. `...` (the ellipsis that stands in the empty exercise) counts as none.

    An error inside a function that was handed in as the answer is reported as a hint, not raised.

    Raises:
        ValueError: when there is no such exercise.
    """
    chapter = name.rpartition("-")[0]
    if chapter not in CHAPTERS or name not in names(chapter):
        raise ValueError(f"there is no exercise {name!r}; an exercise is named like 'softmax-1'")
    if answer is ...:
        return Result(name, None, "Replace the dots and run the cell again.")
    try:
        _CHECKS[name](answer)
    except Hint as hint:
        return Result(name, False, str(hint))
    except Exception as error:
        return Result(name, False, f"Your answer raised {type(error).__name__}: {error}")
    return Result(name, True, "")
