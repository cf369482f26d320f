"""The 80/10/10 corruption: shares and rates within exact binomial intervals, what must stay untouched under hypothesis,
whole words, the fixed count of the released code, and a loop that follows the definition token by token.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlib.masking import IGNORE_INDEX, mask_tokens

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = (PAD, UNK, CLS, SEP, MASK)
VOCAB_SIZE = 30
LEVEL = 0.999  # of every interval; about 90 stand in this file, with fixed seeds


def corrupt(input_ids, seed=0, **options):
    defaults = {"mask_id": MASK, "vocab_size": VOCAB_SIZE, "special_ids": SPECIAL}
    return mask_tokens(input_ids, **(defaults | {"generator": np.random.default_rng(seed)} | options))


def draw_ids(*shape, seed=0, vocab_size=VOCAB_SIZE):
    """Ordinary ids only."""
    return torch.from_numpy(np.random.default_rng(seed).integers(len(SPECIAL), vocab_size, size=shape))


def draw_starts(*shape, seed=0, share=0.6):
    return torch.from_numpy(np.random.default_rng(seed).random(shape) < share)


def binomial_interval(n, p, level=LEVEL):
    """The exact central interval of a binomial count: no more than (1 - level) / 2 lies below it, nor above it."""
    k = np.arange(n)
    logs = np.append(0.0, np.cumsum(np.log((n - k) / (k + 1)) + np.log(p / (1 - p))))
    masses = np.exp(logs - logs.max())
    below = np.cumsum(masses / masses.sum())
    return int(np.searchsorted(below, (1 - level) / 2)), int(np.searchsorted(below, (1 + level) / 2))


def assert_share(count, n, p, level=LEVEL):
    low, high = binomial_interval(n, p, level)
    assert low <= int(count) <= high, f"{int(count)} of {n} at p = {p}: outside [{low}, {high}]"


def test_binomial_interval_by_hand():
    """Ten fair tosses: 2 heads or fewer have probability 56/1024 = 0.0547, 1 or fewer 0.0107."""
    assert binomial_interval(10, 0.5, level=0.9) == (2, 8)
    assert binomial_interval(10, 0.5, level=0.88) == (3, 7)
    assert binomial_interval(1, 0.25, level=0.4) == (0, 0)


# Rates and shares


@pytest.mark.parametrize("seed", range(5))
def test_rate_and_shares(seed):
    """400,000 tokens, about 60,000 chosen: 81/10/9, or special replacements, would be far outside."""
    vocab_size = 20_000
    ids = draw_ids(2000, 200, seed=100 + seed, vocab_size=vocab_size)
    corrupted, labels = corrupt(ids, seed, vocab_size=vocab_size)
    chosen = labels != IGNORE_INDEX
    n = int(chosen.sum())
    assert_share(n, ids.numel(), 0.15)
    ordinary = vocab_size - len(SPECIAL)  # a random token is the original one once in so many draws
    new, old = corrupted[chosen], ids[chosen]
    assert_share((new == MASK).sum(), n, 0.8)
    assert_share(((new != MASK) & (new != old)).sum(), n, 0.1 * (1 - 1 / ordinary))
    assert_share((new == old).sum(), n, 0.1 + 0.1 / ordinary)


def test_other_rate_and_shares():
    ids = draw_ids(100_000, vocab_size=20_000)
    corrupted, labels = corrupt(ids, vocab_size=20_000, probability=0.4, mask_share=0.5, random_share=0.3)
    chosen = labels != IGNORE_INDEX
    n = int(chosen.sum())
    assert_share(n, ids.numel(), 0.4)
    assert_share((corrupted == MASK).sum(), n, 0.5)
    assert_share((corrupted == ids)[chosen].sum(), n, 0.2 + 0.3 / 19_995)


@pytest.mark.parametrize("options", [{}, {"max_predictions": 20}], ids=["independent", "fixed"])
def test_every_position_is_chosen_equally_often(options):
    ids = draw_ids(4000, 20)
    labels = corrupt(ids, **options)[1]
    for count in (labels != IGNORE_INDEX).sum(dim=0):
        assert_share(count, 4000, 0.15)  # with the fixed number it is round(0.15 x 20) = 3 of 20


def test_fate_does_not_depend_on_the_position():
    ids = draw_ids(8000, 8)
    corrupted, labels = corrupt(ids, probability=1)
    assert (labels == ids).all()
    for column in corrupted.T:
        assert_share((column == MASK).sum(), 8000, 0.8)


def test_random_tokens_are_uniform_over_the_ordinary_ids():
    """Special ids are scattered, the first and last of the vocabulary among them; ids 1 and 10 are ordinary."""
    special = {0, 3, 4, 7, 11}
    ids = torch.full((100_000,), 5)
    corrupted, _ = corrupt(
        ids, vocab_size=12, special_ids=special, mask_id=3, probability=1, mask_share=0, random_share=1
    )
    counts = np.bincount(corrupted.numpy(), minlength=12)
    for index, count in enumerate(counts):
        if index in special:
            assert count == 0
        else:
            assert_share(count, 100_000, 1 / 7)


def test_neighbours_are_chosen_independently():
    chosen = corrupt(draw_ids(200_000))[1] != IGNORE_INDEX
    assert_share((chosen[0::2] & chosen[1::2]).sum(), 100_000, 0.15**2)


# Boundaries


def test_probability_zero_chooses_nothing():
    ids = draw_ids(20, 30)
    for options in ({}, {"max_predictions": 5}, {"word_starts": draw_starts(20, 30)}):
        corrupted, labels = corrupt(ids, probability=0, **options)
        assert torch.equal(corrupted, ids)
        assert (labels == IGNORE_INDEX).all()


def test_probability_one_and_shares_of_zero_and_one():
    ids = draw_ids(50, 40)
    ids[:, 0] = CLS
    body = ids[:, 1:]
    everything = {"probability": 1, "mask_share": 1, "random_share": 0}
    corrupted, labels = corrupt(ids, **everything)
    assert (corrupted[:, 1:] == MASK).all() and torch.equal(labels[:, 1:], body)
    corrupted, labels = corrupt(ids, **everything | {"mask_share": 0})
    assert torch.equal(corrupted, ids) and torch.equal(labels[:, 1:], body)
    corrupted, labels = corrupt(ids, **everything | {"mask_share": 0, "random_share": 1})
    assert torch.equal(labels[:, 1:], body)
    assert corrupted[:, 1:].min() > MASK
    assert_share((corrupted[:, 1:] == body).sum(), body.numel(), 1 / 25)  # of 25 ordinary ids one is the original
    corrupted, _ = corrupt(ids, probability=1, mask_share=0.9, random_share=0.1)  # nothing is left to be kept
    assert_share((corrupted[:, 1:] == body).sum(), body.numel(), 0.1 / 25)
    for shares in ((0.7, 0.3), (0.8, 0.2), (0.3, 0.7)):
        corrupt(ids, mask_share=shares[0], random_share=shares[1])


def test_one_ordinary_id():
    ids = torch.tensor([[0, 1, 1, 1, 2]])
    options = {"mask_id": 2, "vocab_size": 3, "special_ids": [0], "probability": 1, "mask_share": 0, "random_share": 1}
    corrupted, labels = corrupt(ids, **options)
    assert torch.equal(corrupted, ids)  # the only id that can be drawn
    assert labels.tolist() == [[-100, 1, 1, 1, -100]]


@pytest.mark.parametrize("shape", [(0,), (0, 7), (3, 0)])
@pytest.mark.parametrize("options", [{}, {"max_predictions": 3}])
def test_no_tokens(shape, options):
    ids = torch.zeros(shape, dtype=torch.long)
    corrupted, labels = corrupt(ids, word_starts=torch.ones(shape, dtype=torch.bool), **options)
    assert corrupted.shape == labels.shape == shape


def test_only_special_tokens():
    ids = torch.tensor([[CLS, SEP, PAD]])
    corrupted, labels = corrupt(ids, probability=1)
    assert torch.equal(corrupted, ids)
    assert labels.tolist() == [[-100] * 3]


# What must stay untouched


@st.composite
def inputs(draw):
    """Ids with special ones anywhere, padding at the right, and any of the options."""
    batch, n = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ids = torch.from_numpy(generator.integers(0, VOCAB_SIZE, size=(batch, n)))
    real = torch.from_numpy(np.arange(n) < generator.integers(1, n + 1, size=(batch, 1)))
    options = {
        "special_ids": draw(st.sets(st.integers(0, VOCAB_SIZE - 1), max_size=VOCAB_SIZE - 2)),
        "mask_id": draw(st.integers(0, VOCAB_SIZE - 1)),
        "probability": draw(st.sampled_from([0.0, 0.15, 0.5, 1.0])),
        "word_starts": draw(st.sampled_from([None, draw_starts(batch, n, seed=batch * n)])),
        "max_predictions": draw(st.sampled_from([None, 1, 3])),
    }
    options["mask_share"] = draw(st.floats(0, 1))
    options["random_share"] = draw(st.floats(0, 1 - options["mask_share"]))
    return ids, real, options, draw(st.integers(0, 2**32 - 1))


@settings(deadline=None, max_examples=200)
@given(inputs())
def test_invariants(case):
    ids, real, options, seed = case
    before = ids.clone()
    corrupted, labels = corrupt(ids, seed, attention_mask=real.long(), **options)
    assert torch.equal(ids, before)
    assert corrupted.data_ptr() != ids.data_ptr()
    assert corrupted.dtype == labels.dtype == torch.int64
    assert corrupted.shape == labels.shape == ids.shape
    special = torch.zeros(VOCAB_SIZE, dtype=torch.bool)
    special[[*options["special_ids"], options["mask_id"]]] = True
    chosen = labels != IGNORE_INDEX
    assert not (chosen & (special[ids] | ~real)).any()
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(corrupted[~chosen], ids[~chosen])
    assert not (special[corrupted] & chosen & (corrupted != options["mask_id"])).any()


def test_padding_of_an_ordinary_id_is_left_alone():
    """Without the mask it would be chosen: the id of padding need not be among the special ones."""
    ids = torch.full((2, 5), 9)
    real = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    for kind in (torch.int64, torch.float32, torch.bool):
        _, labels = corrupt(ids, probability=1, attention_mask=real.to(kind))
        assert torch.equal(labels != IGNORE_INDEX, real.bool())


def test_mask_id_is_special_unasked():
    ids = torch.tensor([MASK, 7, MASK] * 50)
    corrupted, labels = corrupt(ids, special_ids=[], probability=1, mask_share=0, random_share=1)
    assert (labels[ids == MASK] == IGNORE_INDEX).all() and (corrupted[ids == MASK] == MASK).all()
    assert (corrupted[ids == 7] != MASK).all()


# The same numbers everywhere


def test_numbers_that_a_seed_gives():
    ids = torch.tensor([[CLS, 10, 11, 12, 13, SEP], [CLS, 14, 15, SEP, PAD, PAD]])
    corrupted, labels = corrupt(ids, seed=1, probability=0.5)
    # default_rng(1): 0.51 0.95 0.14 0.95 0.31 0.42 choose 12, 14 and 15; their fates 0.83 0.41 0.55; then 2 of 25
    assert labels.tolist() == [[-100, -100, -100, 12, -100, -100], [-100, 14, 15, -100, -100, -100]]
    assert corrupted.tolist() == [[CLS, 10, 11, 7, 13, SEP], [CLS, MASK, MASK, SEP, PAD, PAD]]


def test_seeds():
    ids = draw_ids(10, 50)
    first, again, other = corrupt(ids, 3), corrupt(ids, 3), corrupt(ids, 4)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[1], other[1])
    generator = np.random.default_rng(3)
    one, two = corrupt(ids, generator=generator), corrupt(ids, generator=generator)
    assert torch.equal(one[1], first[1]) and not torch.equal(two[1], first[1])
    torch.manual_seed(0)
    state = torch.get_rng_state()
    corrupt(ids)
    assert torch.equal(torch.get_rng_state(), state)


@settings(deadline=None, max_examples=100)
@given(inputs())
def test_padded_and_packed_are_corrupted_alike(case):
    ids, real, options, seed = case
    padded = corrupt(ids, seed, attention_mask=real, **options)
    starts = options.pop("word_starts")
    packed = corrupt(
        ids[real],
        seed,
        lengths=real.sum(dim=1).tolist(),
        word_starts=None if starts is None else starts[real],
        **options,
    )
    for a, b in zip(padded, packed, strict=True):
        assert torch.equal(a[real], b)


def by_definition(ids, generator, probability, mask_share, random_share):
    """One token at a time; the draws in the order that `mask_tokens` promises."""
    candidates = [i for i, token in enumerate(ids) if token not in SPECIAL]
    chosen = [i for i in candidates if generator.random() < probability]
    fates = {i: generator.random() for i in chosen}
    labels = [token if i in fates else -100 for i, token in enumerate(ids)]
    corrupted = list(ids)
    ordinary = [token for token in range(VOCAB_SIZE) if token not in SPECIAL]
    for i, u in fates.items():
        if u < mask_share:
            corrupted[i] = MASK
    replaced = [i for i, u in fates.items() if mask_share <= u < mask_share + random_share]
    for i, draw in zip(replaced, generator.integers(len(ordinary), size=len(replaced)), strict=True):
        corrupted[i] = ordinary[draw]
    return corrupted, labels


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_definition(seed):
    ids = torch.from_numpy(np.random.default_rng(50 + seed).integers(0, VOCAB_SIZE, size=300))
    corrupted, labels = corrupt(ids, seed, probability=0.4, mask_share=0.5, random_share=0.25)
    wanted = by_definition(ids.tolist(), np.random.default_rng(seed), 0.4, 0.5, 0.25)
    assert (corrupted.tolist(), labels.tolist()) == wanted


# Whole words


def words_of(ids, starts, real=None):
    """The positions of each word, one row at a time, as the released code groups them."""
    words = []
    for row, (tokens, begins) in enumerate(zip(ids.tolist(), starts.tolist(), strict=True)):
        open_word = False
        for column, (token, begin) in enumerate(zip(tokens, begins, strict=True)):
            if token in SPECIAL or (real is not None and not real[row, column]):
                open_word = False
                continue
            if begin or not open_word:
                words.append([])
            words[-1].append((row, column))
            open_word = True
    return words


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), fixed=st.sampled_from([None, 2, 5]), share=st.floats(0, 1))
def test_words_are_never_split(seed, n, fixed, share):
    ids = torch.from_numpy(np.random.default_rng(seed).integers(0, VOCAB_SIZE, size=(3, n)))
    starts = draw_starts(3, n, seed=seed, share=share)
    _, labels = corrupt(ids, seed, word_starts=starts, probability=0.5, max_predictions=fixed)
    for word in words_of(ids, starts):
        assert len({bool(labels[place] != IGNORE_INDEX) for place in word}) == 1


def test_words_of_one_piece_are_tokens():
    ids = draw_ids(10, 20)
    one = corrupt(ids)
    two = corrupt(ids, word_starts=torch.ones_like(ids, dtype=torch.bool))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_word_ends_at_special_tokens_padding_and_the_row():
    """No first piece is marked at all: each run of ordinary tokens is one word, chosen independently of the others."""
    row = [9, 9, SEP, 9, 9, PAD, 9]
    ids = torch.tensor([row] * 20_000)
    real = torch.ones_like(ids)
    real[:, 5] = 0
    special = (CLS, SEP)  # padding is known by the mask alone
    starts = torch.zeros_like(ids, dtype=torch.bool)
    chosen = corrupt(ids, special_ids=special, attention_mask=real, word_starts=starts, probability=0.5)[1] != -100
    assert torch.equal(chosen[:, 0], chosen[:, 1]) and torch.equal(chosen[:, 3], chosen[:, 4])
    for a, b in ((1, 3), (4, 6)):
        assert_share((chosen[:, a] & chosen[:, b]).sum(), 20_000, 0.25)
    assert_share((chosen[:-1, 6] & chosen[1:, 0]).sum(), 19_999, 0.25)


def test_a_word_ends_at_the_edge_of_a_packed_sequence():
    ids = torch.full((40_000,), 9)
    starts = torch.zeros(40_000, dtype=torch.bool)
    chosen = corrupt(ids, word_starts=starts, lengths=[2] * 20_000, probability=0.5)[1] != IGNORE_INDEX
    assert torch.equal(chosen[0::2], chosen[1::2])
    assert_share((chosen[0::4] & chosen[2::4]).sum(), 10_000, 0.25)
    assert len(set((corrupt(ids, word_starts=starts, probability=0.5)[1] != IGNORE_INDEX).tolist())) == 1


def test_pieces_of_long_words_are_chosen_as_often_as_others():
    """Words of 1, 2 and 5 pieces, 20,000 of each: every size at the rate, hence every piece."""
    pattern = torch.tensor([True, True, False, True, False, False, False, False])
    ids, starts = draw_ids(20_000, 8), pattern.repeat(20_000, 1)
    chosen = corrupt(ids, word_starts=starts)[1] != IGNORE_INDEX
    for first in (0, 1, 3):
        assert_share(chosen[:, first].sum(), 20_000, 0.15)
    for a, b in ((0, 1), (2, 3), (0, 3)):
        assert_share((chosen[:, a] & chosen[:, b]).sum(), 20_000, 0.15**2)


def test_fate_is_drawn_for_each_piece():
    ids = draw_ids(20_000, 2)
    starts = torch.tensor([True, False]).repeat(20_000, 1)
    masked = corrupt(ids, word_starts=starts, probability=1)[0] == MASK
    assert_share(masked.all(dim=1).sum(), 20_000, 0.64)


# A fixed number


@settings(deadline=None, max_examples=100)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    most=st.integers(1, 8),
    probability=st.sampled_from([0.01, 0.15, 0.5, 1.0]),
)
def test_fixed_number_of_each_sequence(lengths, most, probability):
    ids = draw_ids(sum(lengths))
    firsts = np.cumsum([0, *lengths[:-1]])
    ids[torch.from_numpy(firsts)] = CLS
    labels = corrupt(ids, lengths=lengths, max_predictions=most, probability=probability)[1]
    for row in labels.split(lengths):
        wanted = min(most, max(1, round(len(row) * probability)))  # the line of the released code
        assert int((row != IGNORE_INDEX).sum()) == min(wanted, len(row) - 1)


def test_fixed_number_counts_real_tokens_only():
    ids = draw_ids(2, 100)
    real = torch.ones_like(ids)
    real[1, 20:] = 0
    labels = corrupt(ids, attention_mask=real, max_predictions=100)[1]
    assert (labels != IGNORE_INDEX).sum(dim=1).tolist() == [15, 3]


def test_fixed_number_rounds_half_to_even():
    for n, wanted in ((10, 2), (30, 4), (50, 8)):  # 0.15 n = 1.5, 4.5 and 7.5
        assert int((corrupt(draw_ids(n), max_predictions=50)[1] != IGNORE_INDEX).sum()) == wanted


def released_count(words, order, number):
    """How many pieces the released code takes when it comes to the words in this order."""
    taken = 0
    for index in order:
        if taken >= number:
            break
        if taken + len(words[index]) > number:
            continue
        taken += len(words[index])
    return taken


@pytest.mark.parametrize("seed", range(20))
def test_fixed_number_with_whole_words_follows_the_released_code(seed):
    ids, starts = draw_ids(1, 40, seed=seed), draw_starts(1, 40, seed=seed, share=0.4)
    words = words_of(ids, starts)
    order = np.argsort(np.random.default_rng(seed).random(len(words)))
    labels = corrupt(ids, seed, word_starts=starts, max_predictions=7, probability=0.2)[1]
    assert int((labels != IGNORE_INDEX).sum()) == released_count(words, order, 7)


def test_a_word_that_is_too_long_is_passed_over():
    starts = torch.tensor([True, False, False, True])
    labels = corrupt(draw_ids(4), word_starts=starts, max_predictions=1)[1]
    assert (labels != IGNORE_INDEX).tolist() == [False, False, False, True]


# Errors


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"probability": -0.1}, ValueError, r"probability must lie in \[0, 1\], not -0.1"),
        ({"probability": 15}, ValueError, r"probability must lie in \[0, 1\], not 15"),
        ({"probability": float("nan")}, ValueError, "probability must lie"),
        ({"mask_share": 1.1}, ValueError, "mask_share must lie"),
        ({"random_share": -1}, ValueError, "random_share must lie"),
        ({"mask_share": 0.9, "random_share": 0.2}, ValueError, "must not exceed 1 together, not 0.9 [+] 0.2"),
        ({"mask_id": VOCAB_SIZE}, ValueError, r"mask_id must lie in \[0, 30\), the vocabulary, not 30"),
        ({"mask_id": -1}, ValueError, "mask_id must lie"),
        ({"mask_id": 4.0}, TypeError, "mask_id must be an integer, not 4.0"),
        ({"special_ids": [0, 99]}, ValueError, "special_ids must lie .* not 99"),
        ({"special_ids": [True]}, TypeError, "special_ids must be an integer, not True"),
        ({"special_ids": range(VOCAB_SIZE)}, ValueError, "special_ids must leave an id"),
        ({"vocab_size": 0}, ValueError, "vocab_size must be positive"),
        ({"vocab_size": "many"}, TypeError, "vocab_size must be an integer"),
        ({"vocab_size": 10}, ValueError, r"input_ids must lie in \[0, 10\)"),
        ({"max_predictions": 0}, ValueError, "max_predictions must be positive, not 0"),
        ({"max_predictions": 2.5}, TypeError, "max_predictions must be an integer"),
        ({"generator": torch.Generator()}, TypeError, "generator must be a numpy.random.Generator, not Generator"),
        (
            {"attention_mask": torch.ones(4, 9)},
            ValueError,
            r"attention_mask must have the shape .*\(4, 10\), not \(4, 9\)",
        ),
        ({"attention_mask": torch.full((4, 10), 2)}, ValueError, "attention_mask must hold only 1"),
        ({"word_starts": torch.ones(4, 10)}, TypeError, "word_starts must be boolean"),
        ({"word_starts": torch.ones(10, dtype=torch.bool)}, ValueError, "word_starts must have the shape"),
        ({"lengths": [20, 20]}, ValueError, "lengths are of packed ids"),
        ({"probability": "0.1"}, TypeError, "probability must be a number, not '0.1'"),
        ({"mask_share": None}, TypeError, "mask_share must be a number, not None"),
        ({"special_ids": 5}, TypeError, "special_ids must be a list of ids, not 5"),
        ({"attention_mask": [[1] * 10] * 4}, TypeError, "attention_mask must be a tensor, not a list"),
        ({"word_starts": [[True] * 10] * 4}, TypeError, "word_starts must be a tensor, not a list"),
    ],
)
def test_errors(options, kind, message):
    with pytest.raises(kind, match=message):
        corrupt(draw_ids(4, 10) if options.get("vocab_size") != 10 else torch.full((4, 10), 10), **options)


@pytest.mark.parametrize(
    ("ids", "kind", "message"),
    [
        ([[5, 6]], TypeError, "input_ids must be a tensor, not a list"),
        (torch.ones(3, 4), TypeError, "input_ids must be int64, not torch.float32"),
        (torch.ones(3, 4, dtype=torch.int32), TypeError, "input_ids must be int64"),
        (torch.ones(3, 4, dtype=torch.bool), TypeError, "input_ids must be int64"),
        (torch.tensor(7), ValueError, r"input_ids must be \(batch, n\) or \(tokens,\), not \(\)"),
        (torch.ones(2, 3, 4, dtype=torch.long), ValueError, r"not \(2, 3, 4\)"),
        (torch.tensor([5, -1]), ValueError, "input_ids must lie .* not -1"),
    ],
)
def test_errors_of_the_ids(ids, kind, message):
    with pytest.raises(kind, match=message):
        corrupt(ids)


@pytest.mark.parametrize(
    ("lengths", "kind", "message"),
    [
        ([3, 3], ValueError, "lengths must add up to the tokens, 7, not to 6"),
        ([], ValueError, "lengths must add up to the tokens, 7, not to 0"),
        ([5, 0, 2], ValueError, r"lengths must be from 1 up, not \[5, 0, 2\]"),
        ([8, -1], ValueError, r"lengths must be from 1 up, not \[8, -1\]"),
        (7, TypeError, "lengths must be a list of integers, not 7"),
        (torch.tensor(7), TypeError, r"lengths must be a list of integers, not tensor\(7\)"),
        ("34", TypeError, "lengths must be a list of integers, not '34'"),
        ([3, 4.0], TypeError, r"lengths\[1\] must be an integer, not 4.0"),
    ],
)
def test_errors_of_the_lengths(lengths, kind, message):
    with pytest.raises(kind, match=message):
        corrupt(draw_ids(7), lengths=lengths)


def test_lengths_as_a_list_an_array_or_a_tensor():
    expected = corrupt(draw_ids(7), lengths=[3, 4], max_predictions=1)
    for lengths in ((3, 4), np.array([3, 4]), torch.tensor([3, 4])):
        for mine, theirs in zip(corrupt(draw_ids(7), lengths=lengths, max_predictions=1), expected, strict=True):
            assert torch.equal(mine, theirs)
