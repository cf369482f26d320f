"""What the tests of the exercises say of an answer: that it is judged right, or wrong and with which hint."""

from bertlib.exercises import check


def right(name, answer):
    result = check(name, answer)
    assert result.right is True, result.message
    assert repr(result) == f"{name}: right."


def wrong(name, answer, hint):
    result = check(name, answer)
    assert result.right is False, result.message
    assert hint in result.message, result.message
