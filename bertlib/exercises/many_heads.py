"""The exercises of the chapter on many heads."""

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


@exercise("many-heads-1")
def parameters_left(answer) -> None:
    """The parameters of a layer's attention, d = 384 with twelve heads of 32, after five heads were cut out."""
    count = float(numbers(answer, (), "one whole number"))
    d, width = 384, 7 * 32
    right = 3 * (width * d + width) + d * width + d
    if count == right:
        return
    full = 4 * (d * d + d)
    gone = 5 * 32
    for wrong, hint in (
        (full, "That is the whole layer, before anything is cut out."),
        (full - right, "That is what is cut out. What is left?"),
        (3 * (gone * d + gone) + d * gone + d, "That counts the five heads that go. Seven stay."),
        (4 * width * d, "These are the matrices alone: all four maps have biases."),
        (right - d, "The bias of W_O is missing. Which head does it belong to?"),
        (4 * (width * d + width), "The bias of W_O is a vector of the output. Does that get shorter?"),
        (
            3 * (width * d + d) + d * width + d,
            "The biases of the projections are as long as what the projections give.",
        ),
        (4 * (width * d + d), "The biases of the projections are as long as what the projections give."),
        (3 * (width * d + width), "That is the projections. W_O has parameters too."),
        (3 * (width * d + width) + d * d + d, "W_O loses columns: a head that is gone has nothing to be mapped."),
        (4 * (width * width + width), "The projections still read all 384 components, and W_O still writes all."),
    ):
        if count == wrong:
            raise Hint(hint)
    if count != round(count) or count <= 0:
        raise Hint("A number of parameters is a positive whole number.")
    if count > full:
        raise Hint("That is more than the layer had before.")
    raise Hint("Four maps: say for each how many rows and columns it has left, and how long its bias is.")


@exercise("many-heads-2")
def two_heads_by_hand(answer) -> None:
    """The output at token 1 of two heads of width 1 whose outputs are 4 and 5, under W_O with rows (1, 2), (1, -1)."""
    output = numbers(answer, (2,), "the two components of the output")
    W_O = np.array([[1, 2], [1, -1]])
    if near(output, W_O @ [4, 5], 0.02):
        return
    for wrong, hint in (
        ([4, 5], "These are the outputs of the two heads. W_O has not been applied yet."),
        ([5, 4], "These are the outputs of the two heads, in the wrong order and without W_O."),
        (W_O.T @ [4, 5], "You multiplied by the transpose of W_O: head 1 writes along its first column, not row."),
        (W_O @ [5, 4], "The two heads have changed places."),
        (W_O @ [0, 5], "Head 1 is missing. A query of zero does not give zero: which weights does it give?"),
        (W_O @ [1, 5], "A query of zero does not make token 1 look at itself: all scores are equal."),
        (W_O @ [4, 0], "Head 2 is missing."),
        (W_O @ [4, 4], "Head 2 has a query, so its weights are not equal."),
        (W_O @ [4, 7], "Head 2 is an average over three tokens, not the value of the best key."),
        (W_O @ [4, 30], "The weights of head 2 do not sum to 1 yet."),
        (W_O @ [12, 5], "The weights of head 1 do not sum to 1 yet."),
        (W_O @ [4, 3], "The weights of head 2 stand in the reverse order: the largest score has the largest weight."),
        ((W_O @ [4, 5]) / 2, "The heads are added, not averaged."),
    ):
        if near(output, wrong, 0.02):
            raise Hint(hint)
    if near(output, (W_O @ [4, 5])[::-1], 0.02):
        raise Hint("The numbers are right, in the wrong order.")
    raise Hint("First one number a head, each an average of 1, 4 and 7; then add what each writes: a column of W_O.")


def _is_function(answer, expected: str) -> None:
    if not callable(answer):
        raise Hint(f"Hand in {expected}.")


@exercise("many-heads-3")
def corners(answer) -> None:
    """A function of keys k1 < k2 < k3 that gives the exponents with A_2 = A_1^λ1 A_3^λ3 for every query."""
    _is_function(answer, "a function of k_1, k_2 and k_3 that returns the two exponents")
    generator = np.random.default_rng(0)
    cases = [(0.0, 1.0, 2.0), (-1.0, 0.0, 3.0)] + [tuple(np.sort(generator.normal(size=3))) for _ in range(5)]

    def agrees(first, third, keys):
        for query in (-2.0, -0.3, 0.0, 0.7, 3.0):
            weights = _softmax(query * np.array(keys))
            if not near(weights[0] ** first * weights[2] ** third, weights[1], 1e-9):
                return False
        return True

    for keys in cases:
        given = answer(*keys)
        first, third = numbers(given, (2,), "a pair of exponents, the one of token 1 and the one of token 3")
        if agrees(first, third, keys):
            continue
        if agrees(third, first, keys):
            raise Hint("The two exponents have changed places: the nearer end has the larger one.")
        mean = np.dot([first, third], [keys[0], keys[2]])
        if abs(mean - keys[1]) <= 1e-9 and abs(first + third - 1) > 1e-9:
            raise Hint("The average gives k_2, but the exponents do not sum to 1, and the denominator does not cancel.")
        if abs(first + third - 1) > 1e-9:
            raise Hint("The exponents must sum to 1: how many times does the denominator stand on either side?")
        if near([first, third], [0.5, 0.5], 1e-9):
            raise Hint("One half each is right when k_2 lies in the middle, and only then.")
        raise Hint("The exponents sum to 1, but the average of k_1 and k_3 with these weights is not k_2.")


def _attention_layer(X, W_Q, W_K, W_V, W_O, keep, scale=None) -> np.ndarray:
    """Concatenate the heads, those left out as zeros, and apply W_O: not the way of the solution."""
    h, width = len(keep), len(W_Q) // len(keep)
    outputs = []
    for r in range(h):
        rows = range(r * width, (r + 1) * width)
        scores = (X @ W_Q[rows].T) @ (X @ W_K[rows].T).T * (width**-0.5 if scale is None else scale)
        outputs.append(_softmax(scores) @ (X @ W_V[rows].T) * bool(keep[r]))
    return np.concatenate(outputs, axis=1) @ W_O.T


@exercise("many-heads-4")
def pruned_layer(answer) -> None:
    """A function of X, four matrices and `keep` that gives multi-head attention over the heads that are kept."""
    _is_function(answer, "a function of X, W_Q, W_K, W_V, W_O and keep that returns Y")
    generator = np.random.default_rng(0)

    def case(n, d, h, width):
        shapes = [(n, d)] + [(h * width, d)] * 3 + [(d, h * width)]
        return [generator.normal(size=shape) for shape in shapes]

    def run(arrays, keep):
        Y = answer(*(array.copy() for array in arrays), list(keep))
        try:
            Y = np.asarray(Y, dtype=float)
        except (TypeError, ValueError):
            raise Hint("Your function must return an array of numbers.") from None
        if Y.shape != arrays[0].shape:
            raise Hint(f"An X of shape {arrays[0].shape} gave a Y of shape {Y.shape}; they should be the same.")
        return Y

    # square: everything could be multiplied the wrong way round without an error of shape
    arrays, keep = case(6, 6, 3, 2), [True, True, True]
    X, W_Q, W_K, W_V, W_O = arrays
    Y, right = run(arrays, keep), _attention_layer(*arrays, keep)
    if not near(Y, right, 1e-9):
        tangled = [(X @ W.T).reshape(3, 6, 2) for W in (W_Q, W_K, W_V)]
        mixed = _softmax(tangled[0] @ tangled[1].transpose(0, 2, 1) / np.sqrt(2)) @ tangled[2]
        one = _softmax((X @ W_Q.T) @ (X @ W_K.T).T / np.sqrt(6)) @ (X @ W_V.T) @ W_O.T
        joined = _attention_layer(X, W_Q, W_K, W_V, np.eye(6), keep)
        blocks = [slice(2 * r, 2 * r + 2) for r in range(3)]
        sliced = [_softmax(X[:, b] @ X[:, b].T / np.sqrt(2)) @ X[:, b] for b in blocks]
        for wrong, hint in (
            (_attention_layer(*arrays, keep, scale=1.0), "The scores are not divided by √d_k."),
            (_attention_layer(*arrays, keep, scale=1 / np.sqrt(6)), "Divide by the root of a head's width, not of d."),
            (_attention_layer(*arrays, keep, scale=1 / 2), "Divide the scores by √d_k, not by d_k."),
            (_attention_layer(X, W_Q, W_K, W_V, W_O.T, keep), "W_O is used as its transpose."),
            (_attention_layer(X, W_Q.T, W_K.T, W_V.T, W_O, keep), "The projections are used as their transposes."),
            (joined, "The heads are joined, but W_O is not applied."),
            (right / 3, "The heads are added, not averaged."),
            (one, "That is one head of full width: the softmax must be taken head by head."),
            (mixed.transpose(1, 0, 2).reshape(6, 6) @ W_O.T, "Your reshape mixes tokens and heads."),
            (mixed.reshape(6, 6) @ W_O.T, "Your reshape mixes tokens and heads."),
            (np.concatenate(sliced, axis=1) @ W_O.T, "Each head got a slice of X. It should project all of X."),
        ):
            if near(Y, wrong, 1e-9):
                raise Hint(hint)
        if np.isnan(Y).any():
            raise Hint("With all heads kept, at least one output is not a number.")
        raise Hint("With all heads kept the output is off: head r has rows r d_k to (r + 1) d_k of each projection.")

    keep = [True, False, True]
    Y, right = run(arrays, keep), _attention_layer(*arrays, keep)
    if not near(Y, right, 1e-9):
        for wrong, hint in (
            (_attention_layer(*arrays, [True] * 3), "With one head left out nothing changes."),
            (_attention_layer(*arrays, [False, True, False]), "You leave out the heads that should be kept."),
            (right * 3 / 2, "The heads that are kept are not scaled up: the sum just has fewer terms."),
            (right / 2, "The heads that are kept are added, not averaged."),
        ):
            if near(Y, wrong, 1e-9):
                raise Hint(hint)
        raise Hint("With one head left out the output is off. Do the others keep their own columns of W_O?")

    if not near(run(arrays, [False] * 3), 0, 0):
        raise Hint("With no head kept the output must be zero.")

    for n, d, h, width in ((4, 5, 3, 2), (1, 3, 2, 4), (5, 4, 1, 4)):
        arrays = case(n, d, h, width)
        for keep in ([True] * h, [r > 0 for r in range(h)]):
            if not near(run(arrays, keep), _attention_layer(*arrays, keep), 1e-9):
                raise Hint("It goes wrong when h d_k is not d: the width of a head is the rows of W_Q over h.")


@exercise("many-heads-5")
def way_round(answer) -> None:
    """Two matrices (4, 2) for which the average of E_a u and E_b w determines u and w."""
    expected = "a pair of matrices, each with four rows and two columns"
    try:
        pair = tuple(answer)
    except TypeError:
        raise Hint(f"Hand in {expected}.") from None
    if len(pair) != 2:
        raise Hint(f"Hand in {expected}.")
    left, right = (numbers(matrix, (4, 2), expected) for matrix in pair)
    both = np.concatenate([left, right], axis=1)
    sizes = np.linalg.svd(both, compute_uv=False)
    if sizes[0] > 0 and sizes[-1] > 1e-6 * sizes[0]:
        return
    if not left.any() or not right.any():
        raise Hint("One of the matrices is zero: that neighbour does not enter at all.")
    if near(left, right, 1e-12 * sizes[0]):
        raise Hint("The two matrices are equal, and the theorem applies: u + δ and w - δ give the same output.")
    for name, matrix in (("E_a", left), ("E_b", right)):
        if np.linalg.matrix_rank(matrix, tol=1e-6 * sizes[0]) < 2:
            raise Hint(f"{name} alone already maps two contents to one vector: its columns are dependent.")
    u, w = np.linalg.svd(both)[2][-1].reshape(2, 2).round(2) + 0.0
    raise Hint(f"There is a collision: u = {u.tolist()}, w = {w.tolist()} gives nearly the output of zeros.")
