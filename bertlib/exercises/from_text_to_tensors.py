"""The exercises of the chapter from text to tensors."""

import math
from functools import cache

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers

CLS, SEP, PAD = 101, 102, 0


@exercise("from-text-to-tensors-1")
def two_gains(answer) -> None:
    """n (PMI - 1) of a pair seen 10 times, its parts 20 and 50 of 1000, and of one whose three counts are 2."""
    gains = numbers(answer, (2,), "two numbers, the gain of ab and that of cd")
    n, chance = np.array([10, 2]), np.array([20 * 50 / 1000, 2 * 2 / 1000])
    pmi = np.log(n / chance)
    if near(gains, n * (pmi - 1), 0.01):
        return
    if near(gains, n * (pmi - 1), 0.1):
        raise Hint("Right but for the rounding: keep two decimals.")
    for wrong, hint in (
        ((n * (pmi - 1))[::-1], "The numbers are right, in the wrong order: ab first."),
        (n * pmi, "That is n times the PMI: the term -1 is missing, the price of the parts' own counts."),
        (pmi - 1, "That is what one join gains. How many joins are there?"),
        (pmi, "That is the PMI alone; the gain is n (PMI - 1)."),
        (n * (pmi + 1), "That is the upper bound of the theorem; the lower one was asked for."),
        (n / chance, "That is how many times more often than by chance. Take its logarithm first."),
        (n * (n / chance - 1), "You left out the logarithm in the PMI."),
        (n * (pmi / math.log(2) - 1), "Nats were asked for: take natural logarithms, not those to base 2."),
        (n * (pmi / math.log(10) - 1), "Nats were asked for: take natural logarithms, not those to base 10."),
        (n * (np.log(n / (chance * 1000)) - 1), "N is missing: the counts are to be compared with chance."),
    ):
        if near(gains, wrong, 0.01):
            raise Hint(hint)
    right = [abs(gain - value) <= 0.01 for gain, value in zip(gains, n * (pmi - 1), strict=True)]
    if any(right):
        raise Hint(f"The gain of {'ab' if right[0] else 'cd'} is right, the other one is not.")
    raise Hint("Three steps: the quotient n N / (c_a c_b), its natural logarithm less 1, times n.")


@exercise("from-text-to-tensors-2")
def longest_first(answer) -> None:
    """Tokens kept of texts with 20 and 5, and with 30 and 6, when each pair is cut to 16 with the special tokens."""
    kept = numbers(answer, (4,), "four numbers: two for the first pair, two for the second")
    if near(kept, [8, 5, 7, 6], 0):
        return
    for wrong, hint in (
        ([11, 5, 10, 6], "The special tokens take places of their own."),
        ([9, 5, 8, 6], "A pair has three special tokens: [CLS], and a [SEP] after each text."),
        ([10, 5, 9, 6], "A pair has three special tokens: [CLS], and a [SEP] after each text."),
        ([7, 6, 7, 6], "The second text of the first pair has only 5 tokens; it cannot be given 6."),
        ([5, 8, 6, 7], "The right numbers in the wrong order: the first text is the longer one."),
        ([13, 0, 13, 0], "You cut the shorter text. Each token is taken from the longer one."),
        ([12, 5, 24, 6], "That is how many tokens are taken away or left? Hand in how many of each text stay."),
        ([12, 0, 23, 0], "Those are the tokens that are cut off; how many stay was asked."),
    ):
        if near(kept, wrong, 0):
            raise Hint(hint)
    if not near(kept, np.round(kept), 0) or kept.min() < 0:
        raise Hint("Tokens are whole: hand in four whole numbers, none below 0.")
    if kept[0] + kept[1] != kept[2] + kept[3]:
        raise Hint("Both pairs fill the same number of places. How many are there for tokens of the texts?")
    raise Hint("How many places are left by [CLS] and the [SEP]s? The longer text gives up tokens until both fit.")


@exercise("from-text-to-tensors-3")
def inseparable(answer) -> None:
    """A function of n and N: what the log-likelihood gains by joining two pieces that occur n times each, together."""
    if not callable(answer):
        raise Hint("Hand in a function of n and N that returns the gain.")
    points = [(2, 10), (3, 7), (5, 10), (50, 1000), (1, 10**6)]
    found, right = [], []
    for n, total in points:
        value = answer(n, total)
        if isinstance(value, complex):
            raise Hint("The gain is a real number.")
        found.append(float(numbers(value, (), "a function that returns one number")))
        rest = [1] * (total - 2 * n) if total < 10**4 else None  # the other pieces stand each for themselves
        others = 0.0 if rest is None else sum(count * math.log(count) for count in rest)
        before = others + 2 * n * math.log(n) - total * math.log(total)
        after = others + n * math.log(n) - (total - n) * math.log(total - n)
        right.append(after - before)
    found, right = np.array(found), np.array(right)

    def equal(values):
        return bool(np.allclose(found, values, rtol=1e-7, atol=1e-9))

    if equal(right):
        return
    n, total = np.array(points, dtype=float).T
    p = n / total
    pmi = -np.log(p)
    for wrong, hint in (
        (-right, "The sign is the other way round: the log-likelihood rises."),
        (right / math.log(2), "That is in bits; nats were asked for."),
        (right / total, "That is the gain for one piece of the text: h(n/N). There are N of them."),
        (right / n, "That is the gain of one join. There are n of them."),
        (n * pmi, "That is n PMI. It is one of two terms: what becomes of N?"),
        (n * (pmi - 1), "That is the theorem's lower bound. Here the gain can be had exactly, from its first form."),
        (n * (pmi + 1), "That is the theorem's upper bound. Here the gain can be had exactly, from its first form."),
        (n * np.log(n) + right, "One of the terms f(n) is still there: two pieces go and one comes."),
        (right - n * np.log(n), "Two pieces with f(n) each go, and one with f(n) comes: count the terms again."),
        (-n * np.log(p) + (total - n) * np.log(1 - p), "The second term of the entropy has a minus sign too."),
    ):
        if equal(wrong):
            raise Hint(hint)
    if (found <= 0).any():
        raise Hint("At one n and N the gain is not positive; such a join always pays.")
    if np.isclose(found, right, rtol=1e-7).any():
        raise Hint("Right for some n and N, not for all. Is it exact, or right only for small n/N?")
    raise Hint("Put c_a = c_b = n into the exact gain, with f(0) = 0. Which three terms are left?")


def _batch(pairs) -> dict[str, list[list[int]]]:
    """The tensors of pairs, place by place: what stands at each place follows from the lengths alone."""
    width = max(len(a) + 2 + (0 if b is None else len(b) + 1) for a, b in pairs)
    ids, mask, types = [], [], []
    for a, b in pairs:
        first = len(a) + 2
        length = first if b is None else first + len(b) + 1
        row = [PAD] * width
        row[0], row[1 : first - 1], row[first - 1] = CLS, list(a), SEP
        if b is not None:
            row[first : length - 1], row[length - 1] = list(b), SEP
        ids.append(row)
        mask.append([int(place < length) for place in range(width)])
        types.append([int(first <= place < length) for place in range(width)])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _rows(value, name: str) -> list[list[int]]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    try:
        rows = [[int(entry) for entry in (row.tolist() if hasattr(row, "tolist") else row)] for row in value]
    except (TypeError, ValueError):
        raise Hint(f"{name} must be a list of lists of whole numbers.") from None
    if len({len(row) for row in rows}) > 1:
        raise Hint(f"The rows of {name} differ in length: fill the shorter ones up.")
    return rows


@exercise("from-text-to-tensors-4")
def batch_by_hand(answer) -> None:
    """A function from pairs of lists of ids to `input_ids`, `attention_mask` and `token_type_ids`."""
    if not callable(answer):
        raise Hint("Hand in a function of a list of pairs that returns a dictionary.")
    cases = [
        ([([7, 8], [9])], "a single pair"),
        ([([7, 8], None)], "a single text"),
        ([([7, 8, 9], [10, 11]), ([12], [13])], "two pairs of unequal length"),
        ([([7], None), ([8, 9], [10])], "a single text beside a pair"),
        ([([7, 8], [])], "an empty second text"),
        ([([], None), ([7], [])], "an empty first text"),
    ]
    for pairs, what in cases:
        right = _batch(pairs)
        found = answer([(list(a), None if b is None else list(b)) for a, b in pairs])
        if not isinstance(found, dict):
            raise Hint(f"Return a dictionary; that was a {type(found).__name__}.")
        if missing := [name for name in right if name not in found]:
            raise Hint(f"The dictionary lacks {', '.join(missing)}.")
        found = {name: _rows(found[name], name) for name in right}
        for name in right:
            if len(found[name]) != len(pairs):
                rows = "1 row" if len(found[name]) == 1 else f"{len(found[name])} rows"
                raise Hint(f"{len(pairs)} pairs gave {rows} of {name}.")
        if found == right:
            continue
        ids, mask, types = (found[name] for name in right)
        if ids != right["input_ids"]:
            _explain_ids(ids, right["input_ids"], pairs, what)
        if mask != right["attention_mask"]:
            if mask == [[1 - entry for entry in row] for row in right["attention_mask"]]:
                raise Hint("The mask is turned round: 1 is for a token and 0 for padding.")
            if all(entry == 1 for row in mask for entry in row):
                raise Hint("The mask is 1 everywhere; padding gets 0.")
            raise Hint(f"With {what} the mask is off: 1 for every token, the special ones too, and 0 for padding.")
        _explain_types(types, right, pairs, what)


def _explain_ids(ids, right, pairs, what) -> None:
    width = len(right[0])
    for found, wanted, (_, b) in zip(ids, right, pairs, strict=True):
        if found == wanted:
            continue
        if CLS not in found:
            raise Hint("[CLS], 101, stands before the first text.")
        if b is not None and found.count(SEP) < 2:
            raise Hint(f"With {what} a [SEP] is missing: one stands after each text, an empty second one too.")
        if b is None and found.count(SEP) > 1:
            raise Hint("Where there is no second text there is one [SEP] only.")
        if found.count(CLS) > 1:
            raise Hint("[CLS] stands once, at the beginning; the second text gets none.")
        if sorted(found) == sorted(wanted) and found[0] == PAD:
            raise Hint("The padding goes to the end of a row, not to its beginning.")
        if len(found) > width and all(entry == PAD for entry in found[width:]):
            raise Hint("The rows are longer than the longest of the batch.")
    raise Hint(f"With {what} the ids are off: [CLS] first [SEP] second [SEP], then padding.")


def _explain_types(types, right, pairs, what) -> None:
    kept = right["attention_mask"]
    for found, wanted, mask, (a, b) in zip(types, right["token_type_ids"], kept, pairs, strict=True):
        if found == wanted:
            continue
        if any(entry for entry, real in zip(found, mask, strict=True) if not real):
            raise Hint("Padding is of type 0.")
        if b is None:
            raise Hint("A single text is of type 0 from [CLS] to [SEP].")
        first = len(a) + 2
        if found[first - 1] == 1:
            raise Hint("The first [SEP] belongs to the first text: type 0.")
        if not any(found):
            raise Hint(f"With {what} all types are 0; the second text and its [SEP] are of type 1.")
        if found[first + len(b)] == 0:
            raise Hint("The last [SEP] belongs to the second text: type 1.")
    raise Hint(f"With {what} the types are off: 0 up to the first [SEP], 1 from there to the second, 0 in the padding.")


def _pieces(answer) -> tuple[list[str], str]:
    expected = "a pair: a list of pieces and a word"
    if isinstance(answer, str):
        raise Hint(f"Hand in {expected}.")
    try:
        pieces, word = answer
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    if isinstance(pieces, str) or not isinstance(word, str):
        raise Hint(f"Hand in {expected}.")
    try:
        pieces = list(pieces)
    except TypeError:
        raise Hint(f"Hand in {expected}.") from None
    if not pieces or not all(isinstance(piece, str) and piece.removeprefix("##") for piece in pieces):
        raise Hint("Every piece must be a string with at least one character besides ##.")
    if len(set(pieces)) > 6:
        raise Hint("At most six pieces.")
    if not word or len(word) > 100 or any(character.isspace() for character in word):
        raise Hint(
            "The word must have between 1 and 100 characters and no space: a longer one is [UNK] by another rule."
        )
    return pieces, word


@exercise("from-text-to-tensors-5")
def dead_end(answer) -> None:
    """A small vocabulary and a word that can be cut into its pieces, where the longest match finds no cut."""
    pieces, word = _pieces(answer)
    vocab = set(pieces)
    first = {piece for piece in vocab if not piece.startswith("##")}
    later = {piece[2:] for piece in vocab if piece.startswith("##")}

    @cache
    def possible(start: int) -> bool:
        known = later if start else first
        return start == len(word) or any(
            word.startswith(piece, start) and possible(start + len(piece)) for piece in known
        )

    start = 0
    while start < len(word):
        fits = [piece for piece in (later if start else first) if word.startswith(piece, start)]
        if not fits:
            break
        start += max(map(len, fits))
    if start < len(word) and possible(0):
        return
    if start >= len(word):
        raise Hint("The longest match finds a cut of this word. It must take a character that the rest needs.")
    if any(word.startswith(piece) for piece in first) and not later:
        raise Hint("No piece goes on in a word: those begin with ##.")
    raise Hint("This word cannot be cut into these pieces in any way; it must be possible, and the longest match fail.")
