"""The exercises of the chapter on attention as a weighted average."""

import warnings

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@exercise("attention-1")
def output_by_hand(answer) -> None:
    """The output of one query that scores 0, log 2 and log 3 after scaling, on the values (6, 0), (0, 6) and (6, 6)."""
    output = numbers(answer, (2,), "the two components of the output")
    value = np.array([[6, 0], [0, 6], [6, 6]])
    if near(output, [4, 5], 0.02):
        return
    for weights, hint in (
        ([1 / 14, 4 / 14, 9 / 14], "These are the weights of the raw dot products. Divide those by √d_k first."),
        (_softmax(np.log([1, 2, 3]) / 2), "You divided by d_k itself, or twice by its root: by √d_k, once."),
        ([1, 2, 3], "These are sums, not averages: the weights do not sum to 1 yet."),
        ([1 / 3, 1 / 3, 1 / 3], "That is the plain average of the values; the scores are not equal."),
        ([0, 0, 1], "That is the value of the best key alone. The other keys have weight too."),
        (np.log([1, 2, 3]) / np.log(6), "You weighted by the scores themselves. Which function makes them positive?"),
        ([3 / 6, 2 / 6, 1 / 6], "The weights stand in the reverse order: the largest score has the largest weight."),
    ):
        if near(output, np.asarray(weights) @ value, 0.02):
            raise Hint(hint)
    if near(output, [5, 4], 0.02):
        raise Hint("The numbers are right, in the wrong order: the first component averages 6, 0 and 6.")
    if output.min() < 0 or output.max() > 6:
        raise Hint("An average lies between the values: no component can be below 0 or above 6.")
    raise Hint("Three steps: dot products over the square root of d_k, softmax, average. exp(log a) is a.")


@exercise("attention-2")
def share_by_hand(answer) -> None:
    """The antisymmetric share of the form whose W_Q is the row (1, 2, 0) and whose W_K is the row (0, 1, 1)."""
    share = float(numbers(answer, (), "one number"))
    if abs(share - 3 / 10) <= 1e-3:
        return
    for wrong, hint in (
        (7 / 10, "That is the symmetric share; the two shares sum to 1."),
        (np.sqrt(3 / 10), "That is a ratio of norms; the share is a ratio of squared norms."),
        (3, "That is the squared norm of the antisymmetric part. Which number does the share divide it by?"),
        (12 / 10, "You left out the half in (M - M^T)/2: a share cannot exceed 1."),
        (6 / 10, "You left out the factor one half in front of 1 - tr(M²)/‖M‖²."),
        (4 / 10, "That is tr(M²)/‖M‖², one step short of the share; or you took the trace of M where M² was asked."),
        ((1 - 4 / 7) / 2, "‖M‖² is a product of the two squared norms here, not their sum."),
    ):
        if abs(share - wrong) <= 1e-3:
            raise Hint(hint)
    if not 0 <= share <= 1:
        raise Hint("A share lies between 0 and 1.")
    raise Hint("You need three dot products: of each row with itself and of one with the other.")


def _is_function(answer, expected: str) -> None:
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")


@exercise("attention-3")
def detailed_balance(answer) -> None:
    """A function of a symmetric T and of c that gives π with π_i A_ij = π_j A_ji for A = softmax(T_ij + c_j)."""
    _is_function(answer, "a function of T and c that returns the numbers π")

    def flow(symmetric, popularity, pi):
        return pi[:, None] * _softmax(symmetric + popularity)

    def balanced(symmetric, popularity, pi):
        forth = flow(symmetric, popularity, pi)
        return near(forth, forth.T, 1e-9 * np.abs(forth).max())

    generator = np.random.default_rng(0)
    for n in (2, 3, 6):
        root = generator.normal(size=(n, n))
        symmetric, popularity, flat = (root + root.T) / 2, generator.normal(size=n), np.zeros(n)
        pi = numbers(answer(symmetric.copy(), popularity.copy()), (n,), f"{n} numbers for a T of {n} rows")
        if pi.min() <= 0:
            raise Hint("Every π must be positive.")
        if balanced(symmetric, popularity, pi):
            continue
        if balanced(symmetric, popularity, 1 / pi):
            raise Hint("That is 1/π. By what must you multiply A_ij to be rid of its denominator?")
        totals = np.exp(symmetric + popularity).sum(axis=1)
        if near(pi / pi.sum(), totals / totals.sum(), 1e-9):
            raise Hint("The denominators are gone, but exp(c_j) stands on one side and exp(c_i) on the other.")
        if near(pi / pi.sum(), np.exp(popularity) / np.exp(popularity).sum(), 1e-9):
            raise Hint("The popularity is dealt with; the denominators of the two rows still differ.")
        if balanced(symmetric, flat, np.asarray(answer(symmetric.copy(), flat), dtype=float)):
            raise Hint("That is right for c = 0. With c, both the denominator of A_ij and its top have changed.")
        if np.ptp(pi) <= 1e-9 * pi.max():
            raise Hint("A constant π would make A itself symmetric, and it is not.")
        if near(pi @ _softmax(symmetric + popularity), pi, 1e-3 * pi.max()):
            raise Hint("That is stationary only nearly; solve for π exactly instead of by iteration.")
        raise Hint("π_i A_ij and π_j A_ji differ. Write both out; what do the two denominators depend on?")


def _masked_attention(query, key, value, mask) -> np.ndarray:
    """Each query on its own, over the keys that it may see: no mask is needed when the rest is not there."""
    outputs = np.zeros((len(query), value.shape[1]))
    for i, allowed in enumerate(mask):
        if allowed.any():
            outputs[i] = _softmax(key[allowed] @ query[i] / np.sqrt(query.shape[1])) @ value[allowed]
    return outputs


@exercise("attention-4")
def masked_attention(answer) -> None:
    """A function of Q, K, V and a boolean mask that gives the outputs of masked attention."""
    _is_function(answer, "a function of Q, K, V and mask that returns the outputs")
    generator = np.random.default_rng(0)

    def case(n, m, d_k, d_v, spread=1.0):
        query, key, value = (generator.normal(size=shape) for shape in ((n, d_k), (m, d_k), (m, d_v)))
        return spread * query, key, value

    def run(query, key, value, mask):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outputs = np.asarray(answer(query.copy(), key.copy(), value.copy(), mask.copy()), dtype=float)
        if outputs.shape != (len(query), value.shape[1]):
            raise Hint(f"{len(query)} queries and values of width {value.shape[1]} gave the shape {outputs.shape}.")
        return outputs

    query, key, value = case(4, 5, 3, 2)
    everything = np.ones((4, 5), dtype=bool)
    right, outputs = _masked_attention(query, key, value, everything), run(query, key, value, everything)
    if not near(outputs, right, 1e-9):
        raw = query @ key.T
        columns = np.exp(raw / np.sqrt(3))
        for wrong, hint in (
            (_softmax(raw) @ value, "With nothing masked the outputs are off: did you forget to divide by √d_k?"),
            (_softmax(raw / 3) @ value, "With nothing masked the outputs are off: divide by √d_k, not by d_k."),
            (columns / columns.sum(0) @ value, "The weights sum to 1 along the wrong axis: each query shares out 1."),
            (columns @ value, "With nothing masked the outputs are off: the weights of a query do not sum to 1."),
            (np.zeros_like(right), "You turned the mask round: True means that the query may look."),
        ):
            if near(outputs, wrong, 1e-9):
                raise Hint(hint)
        if np.isnan(outputs).any():
            raise Hint("With nothing masked, at least one output is not a number. Is the mask the right way round?")
        raise Hint("With nothing masked the outputs are not those of attention: scores, scaling, softmax, average.")

    mask = everything.copy()
    mask[:, 3] = mask[1, 0] = mask[2, 1:] = False
    right, outputs = _masked_attention(query, key, value, mask), run(query, key, value, mask)
    if not near(outputs, right, 1e-9):
        late = _softmax(query @ key.T / np.sqrt(3)) * mask @ value
        zeroed = _softmax(np.where(mask, query @ key.T / np.sqrt(3), 0)) @ value
        for wrong, hint in (
            (late, "You mask after the softmax: what is left of the weights of a query no longer sums to 1."),
            (zeroed, "A score of zero is not no weight: exp(0) is 1. Which score gives the weight zero?"),
            (_masked_attention(query, key, value, everything), "The mask changes nothing in your outputs."),
        ):
            if near(outputs, wrong, 1e-9):
                raise Hint(hint)
        raise Hint("With a mask the outputs are off: a masked key must count as if it were not there.")

    big, key, value = case(3, 4, 8, 2, spread=2000.0)
    big[1], key = -2000, np.abs(key)  # all scores of the second query lie far below zero
    mask = np.ones((3, 4), dtype=bool)
    best = int(np.argmax(key @ big[0]))
    key[best] *= 3  # so far ahead that subtracting its score leaves the others at exp(...) = 0, in float64 too
    mask[0, best] = mask[1, 0] = False
    right, outputs = _masked_attention(big, key, value, mask), run(big, key, value, mask)
    if not np.isfinite(outputs).all():
        raise Hint("Scores in the thousands break it: subtract the largest score of a row that is not masked first.")
    if not near(outputs, right, 1e-9):
        raise Hint("Large scores break it: a masked key with a huge score must not take the others' weight.")

    mask = np.ones((3, 4), dtype=bool)
    mask[1] = False
    right, outputs = _masked_attention(big / 2000, key, value, mask), run(big / 2000, key, value, mask)
    if np.isnan(outputs[1]).any():
        raise Hint("A query that may look at nothing gives NaN: the softmax of no scores is 0/0. Make its output zero.")
    if not near(outputs[1], 0, 0):
        raise Hint("A query that may look at nothing must give zero, not the average of keys that it may not see.")
    if not near(outputs, right, 1e-9):
        raise Hint("A query that may look at nothing spoils the outputs of the others.")


@exercise("attention-5")
def late_mask(answer) -> None:
    """Scores and a mask for which masking after the softmax and dividing by what is left goes wrong in float32."""
    expected = "a pair: a list of scores and a list of as many True or False"
    try:
        scores, mask = answer
        mask = list(mask)
        scores = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    if scores.ndim != 1 or not len(scores) or len(mask) != len(scores):
        raise Hint(f"Hand in {expected}.")
    if not all(isinstance(entry, bool | np.bool_ | int) and entry in (0, 1) for entry in mask):
        raise Hint(f"The mask must hold True and False alone. Hand in {expected}.")
    mask = np.array(mask, dtype=bool)
    if not np.isfinite(scores).all() or np.abs(scores).max() > 1000:
        raise Hint("The scores must be finite and between -1000 and 1000: nothing that no model could produce.")
    if not mask.any():
        raise Hint("With everything masked both ways fail. Leave at least one key unmasked.")
    scores = scores.astype(np.float32)
    right = np.zeros(len(scores))
    right[mask] = _softmax(scores[mask].astype(float))
    kept = _softmax(scores) * mask
    with np.errstate(invalid="ignore", divide="ignore"):
        late = kept / kept.sum()
    if np.isnan(late).any() or np.abs(late - right).max() > 1 / 10:
        return
    if mask.all():
        raise Hint("Nothing is masked, so there is nothing to divide by but 1.")
    if scores[~mask].max() <= scores[mask].max():
        raise Hint("Both ways agree. The softmax is most precise about the largest score; is that one masked?")
    raise Hint("Both ways agree. The masked score leads, but the weights that are left still fit into float32.")
