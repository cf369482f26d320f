"""The exercises of the chapter on cross-entropy and the masked word."""

import numpy as np

from bertlib.exercises import Hint, exercise
from bertlib.exercises.answers import near, numbers


@exercise("cross-entropy-1")
def nats_bits_perplexity(answer) -> None:
    """Three numbers: the mean cost of the bets 1/2, 1/8, 1/16 in bits, in nats, and the perplexity."""
    bits, nats, perplexity = numbers(answer, (3,), "three numbers: bits, nats, perplexity")
    mean = 8 / 3
    if not near(bits, mean, 5e-3):
        for wrong, hint in (
            (8, "That is the sum of the three costs; the loss is their mean."),
            (-mean, "A cost is positive: minus the logarithm of a number below 1."),
            (
                -np.log2((1 / 2 + 1 / 8 + 1 / 16) / 3),
                "You averaged the bets first. The costs are averaged, not the bets.",
            ),
            (mean * np.log(2), "That is the loss in nats; bits come first."),
            (mean * np.log10(2), "Bits take the logarithm to base 2, not to base 10."),
        ):
            if near(bits, wrong, 5e-3):
                raise Hint(hint)
        raise Hint("The mean in bits is off. What does a bet of 1/2 cost, what one of 1/8?")
    if not near(nats, mean * np.log(2), 5e-3):
        if near(nats, mean / np.log(2), 5e-3):
            raise Hint(
                "The bits are right. A nat is more than a bit, so there are fewer of them: you divided by log 2."
            )
        raise Hint("The bits are right, the nats are not: one bit is the natural logarithm of 2.")
    if not near(perplexity, 2**mean, 2e-2):
        if near(perplexity, np.exp(mean), 2e-2):
            raise Hint(
                "The losses are right. You raised e to the number of bits; take the nats, or raise 2 to the bits."
            )
        if near(perplexity, 2 ** (mean * np.log(2)), 2e-2):
            raise Hint(
                "The losses are right. You raised 2 to the number of nats; take the bits, or raise e to the nats."
            )
        if near(perplexity, (2 + 8 + 16) / 3, 2e-2):
            raise Hint(
                "The losses are right. Perplexity is the exponential of the mean, not the mean of the exponentials."
            )
        raise Hint("The losses are right, the perplexity is not: it is the exponential of the mean loss in nats.")


@exercise("cross-entropy-2")
def two_slopes(answer) -> None:
    """Two rows: the slopes of cross-entropy and of squared error at p = (1/2, 1/4, 1/4), the second token right."""
    log, squared = numbers(answer, (2, 3), "two rows of three numbers")
    p, y = np.array([1 / 2, 1 / 4, 1 / 4]), np.array([0, 1, 0])
    error = p - y
    if not near(log, error, 6e-3):
        if near(log, -error, 6e-3):
            raise Hint("First row: the sign is turned round. Raising the right logit must lower the loss.")
        if near(log, p - [1, 0, 0], 6e-3):
            raise Hint("First row: the second token is the right one, not the first.")
        if near(log, [0, -4, 0], 6e-3):
            raise Hint("First row: that is the slope in the probabilities. Softmax comes in between.")
        if near(squared, error, 6e-3):
            raise Hint("The rows stand in the other order: cross-entropy first.")
        raise Hint("First row: prediction minus truth.")
    jacobian = np.diag(p) - np.outer(p, p)
    right = 2 * jacobian @ error
    if near(squared, right, 6e-3):
        return
    for wrong, hint in (
        (2 * error, "Second row: that is the slope in the probabilities. Softmax comes in between."),
        (right / 2, "Second row: the square has a factor 2."),
        (right / 3, "Second row: the squares are added up here, not averaged."),
        (-right, "Second row: the sign is turned round."),
        (2 * p * error, "Second row: you left out the part that makes the entries sum to zero."),
        (
            2 * p * (1 - p) * error,
            "Second row: that is the diagonal of softmax's Jacobian alone; every p depends on every logit.",
        ),
    ):
        if near(squared, wrong, 6e-3):
            raise Hint(hint)
    if not near(squared.sum(), 0, 2e-2):
        raise Hint("Second row: the entries must sum to zero, for softmax ignores a number added to all logits.")
    raise Hint("Second row: it sums to zero, but the entries are off. Work out c first, and mind its sign.")


@exercise("cross-entropy-3")
def hessian_of_the_loss(answer) -> None:
    """A function of a vector of logits that returns the second derivatives of its cross-entropy, a matrix."""
    if not callable(answer):
        raise Hint("Hand in a function of a vector of logits, without calling it.")
    rng = np.random.default_rng(21)
    points = [2 * rng.normal(size=n) for n in (2, 3, 6)] + [np.array([800.0, 799.0, 0.0])]
    for z in points:
        answered = answer(z.copy())
        if z.max() > 700 and not np.isfinite(np.asarray(answered, dtype=float)).all():
            raise Hint(
                "Right for small logits; for large ones the exponential overflows. Subtract the largest logit first."
            )
        given = numbers(answered, (len(z), len(z)), "a function that returns a square matrix")
        p = np.exp(z - z.max())
        p /= p.sum()
        right = np.diag(p) - np.outer(p, p)
        if near(given, right, 1e-5):
            continue
        for wrong, hint in (
            (-right, "The sign is turned round: the slope is p - y, and its derivative that of p."),
            (np.diag(p), "The diagonal part is there; but each probability depends on all logits."),
            (np.diag(p) + np.outer(p, p), "The rows must sum to zero: a number added to all logits changes no slope."),
            (
                np.diag(p * (1 - p)),
                "The diagonal is right. What does one logit do to the probability of another token?",
            ),
            (np.diag(1 / p), "That is a second derivative in the probabilities, not in the logits."),
            (np.outer(p, p), "That is only half of it: how does a token's probability answer its own logit?"),
        ):
            if near(given, wrong, 1e-5):
                raise Hint(hint)
        if not near(given, given.T, 1e-5):
            raise Hint("A matrix of second derivatives is symmetric; yours is not.")
        raise Hint("The slope is p - y, and y is fixed: differentiate softmax.")


@exercise("cross-entropy-4")
def whole_words(answer) -> None:
    """A function of (begins, rate, rng) that returns which pieces are chosen, whole words at a time."""
    if not callable(answer):
        raise Hint("Hand in the function itself, without calling it.")
    begins = np.array([True, True, False, False, True, False, True, True])
    before, length = begins.copy(), np.diff([0, 1, 4, 6, 7, 8])
    word = np.repeat(np.arange(5), length)
    rng = np.random.default_rng(22)
    draws = []
    for _ in range(4000):
        chosen = np.asarray(answer(begins, 0.3, rng))
        if chosen.shape != begins.shape or chosen.dtype != bool:
            raise Hint("Return a boolean array with one entry for each piece.")
        draws.append(chosen)
    if not np.array_equal(begins, before):
        raise Hint("Your function changes the array that it was given.")
    draws = np.array(draws)
    firsts = draws[:, begins]
    if (draws != firsts[:, word]).any():
        raise Hint("Some words are chosen in part. All pieces of a word share one draw.")
    if len({tuple(row) for row in draws.tolist()}) == 1:
        raise Hint("Every call gives the same choice: draw from the generator that is handed in.")
    twice = [np.asarray(answer(begins, 0.5, np.random.default_rng(seed))) for seed in (*range(20), *range(20))]
    if not np.array_equal(twice[:20], twice[20:]):
        raise Hint("Two generators with the same seed give different choices: draw from the one that is handed in.")
    share = firsts.mean(axis=0)
    if (np.abs(share - 0.3) > 0.035).any():  # nearly five standard deviations of a right one
        if np.abs(share[[0, 3, 4]] - 0.3).max() < 0.035:
            raise Hint(
                "Words of one piece are chosen at the right rate, longer ones are not: one draw a word, not a piece."
            )
        raise Hint(f"Words are chosen at rates of {share.min():.2f} to {share.max():.2f} when the rate is 0.30.")
    together = np.corrcoef(firsts.T) - np.eye(5)
    if np.abs(together).max() > 0.08:
        raise Hint("Words are not chosen independently of each other.")
    for rate, wanted in ((0.0, False), (1.0, True)):
        if (np.asarray(answer(begins, rate, rng)) != wanted).any():
            raise Hint(f"With rate {rate:.0f} {'every' if wanted else 'no'} piece must be chosen.")
    if np.asarray(answer(np.array([True]), 1.0, rng)).shape != (1,):
        raise Hint("A text of one piece must work too.")


@exercise("cross-entropy-5")
def a_dishonest_grade(answer) -> None:
    """A pair: a belief p, no entry above 1/2, and a bet that costs at least 1/10 less under 1 - q²."""
    expected = "a pair, the belief and the bet, three numbers each"
    try:
        belief, bet = answer
    except (TypeError, ValueError):
        raise Hint(f"Hand in {expected}.") from None
    belief, bet = numbers(belief, (3,), expected), numbers(bet, (3,), expected)
    for name, shares in (("belief", belief), ("bet", bet)):
        if shares.min() < 0 or not near(shares.sum(), 1, 1e-6):
            raise Hint(f"The {name} must be three numbers from 0 up with sum 1.")
    if belief.max() > 1 / 2 + 1e-9:
        raise Hint("An entry of the belief is above 1/2.")
    gain = belief @ (bet**2 - belief**2)
    if gain < 0.1 - 1e-9:
        if gain <= 0:
            raise Hint("Under your belief this bet costs as much as the honest one, or more.")
        raise Hint(f"The bet is cheaper, but by {gain:.3f} only. Is the average cost curved up or down in the bet?")
