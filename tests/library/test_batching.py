"""Packing, padding, cutting and bucketing: nothing lost, nothing twice, the order restorable; padding against the least
that any division can have, found by trying them all; shares of padding counted by hand.
"""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertlib.batching import bucket_by_length, pack, pad, padding_share, split_documents, unpack, unpad

many_ids = st.lists(st.lists(st.integers(0, 30521), min_size=1, max_size=12), min_size=1, max_size=8)
many_lengths = st.lists(st.integers(1, 60), min_size=1, max_size=40)
relaxed = settings(deadline=None, max_examples=100)
CLS, SEP = 101, 102


def as_lists(tensors):
    return [tensor.tolist() for tensor in tensors]


def in_order(n, batch_size):
    """The batches of a caller who takes sequences as they come."""
    return [list(range(start, min(start + batch_size, n))) for start in range(0, n, batch_size)]


def in_order_by_tokens(lengths, budget):
    batches = [[]]
    for index, length in enumerate(lengths):
        if batches[-1] and max(length, *(lengths[i] for i in batches[-1])) * (len(batches[-1]) + 1) > budget:
            batches.append([])
        batches[-1].append(index)
    return batches


def slots(lengths, batches):
    return sum(len(batch) * max(lengths[index] for index in batch) for batch in batches)


# Packing


def test_pack_by_hand():
    packed = pack([[7, 8, 9], torch.tensor([5]), np.array([4, 3], dtype=np.int32)])
    assert packed.ids.tolist() == [7, 8, 9, 5, 4, 3]
    assert packed.lengths == [3, 1, 2]
    assert packed.position_ids.tolist() == [0, 1, 2, 0, 0, 1]
    assert packed.ids.dtype == packed.position_ids.dtype == torch.int64


@relaxed
@given(many_ids)
def test_pack_and_unpack(sequences):
    packed = pack(sequences)
    assert as_lists(unpack(packed.ids, packed.lengths)) == sequences
    assert as_lists(unpack(packed.position_ids, packed.lengths)) == [list(range(len(ids))) for ids in sequences]
    assert len(packed.ids) == sum(map(len, sequences))


def test_pack_takes_an_iterator_and_owns_its_memory():
    source = torch.tensor([1, 2, 3])
    packed = pack(iter([source]))
    packed.ids[0] = 9
    assert source.tolist() == [1, 2, 3]


def test_unpack_hidden_states():
    states = torch.arange(12.0).view(6, 2)
    first, second = unpack(states, torch.tensor([4, 2]))
    assert torch.equal(first, states[:4]) and torch.equal(second, states[4:])


def test_pack_of_too_long_a_sequence():
    assert pack([[1, 2, 3]], max_length=3).lengths == [3]
    with pytest.raises(ValueError, match="at most max_length = 3 tokens; number 1 has 4: cut it with split_documents"):
        pack([[1, 2, 3], [1, 2, 3, 4]], max_length=3)


# Padding


def test_pad_by_hand():
    input_ids, attention_mask = pad([[7, 8, 9], [5]], pad_id=1)
    assert input_ids.tolist() == [[7, 8, 9], [5, 1, 1]]
    assert attention_mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert input_ids.dtype == attention_mask.dtype == torch.int64


@relaxed
@given(many_ids, st.integers(0, 30521))
def test_pad_and_unpad(sequences, pad_id):
    """Also where a real token has the id of padding."""
    input_ids, attention_mask = pad(sequences, pad_id)
    assert input_ids.shape == (len(sequences), max(map(len, sequences)))
    assert attention_mask.sum(dim=1).tolist() == [len(ids) for ids in sequences]
    assert (input_ids[attention_mask == 0] == pad_id).all()
    assert as_lists(unpad(input_ids, attention_mask)) == sequences


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.float32, torch.bool])
def test_unpad_hidden_states(kind):
    states = torch.arange(12.0).view(2, 3, 2)
    first, second = unpad(states, torch.tensor([[1, 1, 0], [1, 1, 1]]).to(kind))
    assert torch.equal(first, states[0, :2]) and torch.equal(second, states[1])


# Cutting


def test_split_by_hand():
    document = [1, 2, 3, 4, 5, 6, 7]
    assert as_lists(split_documents([document, [8]], 3)) == [[1, 2, 3], [4, 5, 6], [7], [8]]
    assert as_lists(split_documents([document], 5, cls_id=CLS, sep_id=SEP)) == [
        [CLS, 1, 2, 3, SEP],
        [CLS, 4, 5, 6, SEP],
        [CLS, 7, SEP],
    ]
    assert as_lists(split_documents([[1, 2, 3]], 3, cls_id=CLS)) == [[CLS, 1, 2], [CLS, 3]]
    assert as_lists(split_documents([[1, 2, 3]], 3, sep_id=0)) == [[1, 2, 0], [3, 0]]  # 0 is an id like any other


@relaxed
@given(
    documents=st.lists(st.lists(st.integers(0, 99), max_size=30), min_size=1, max_size=5),
    max_length=st.integers(3, 12),
    cls_id=st.sampled_from([None, 0, CLS]),
    sep_id=st.sampled_from([None, 0, SEP]),
)
def test_split_loses_nothing(documents, max_length, cls_id, sep_id):
    sequences = split_documents(documents, max_length, cls_id, sep_id)
    front, back = int(cls_id is not None), int(sep_id is not None)
    room = max_length - front - back
    bodies = []
    for ids in as_lists(sequences):
        assert len(ids) <= max_length
        assert ids[:front] == [cls_id] * front and ids[len(ids) - back :] == [sep_id] * back
        bodies.append(ids[front : len(ids) - back])
    counts = [-(-len(document) // room) for document in documents]
    assert len(bodies) == sum(counts)
    for document, count in zip(documents, counts, strict=True):
        pieces, bodies = bodies[:count], bodies[count:]
        assert all(len(piece) == room for piece in pieces[:-1])
        assert list(itertools.chain(*pieces)) == document


# Bucketing


def test_buckets_by_hand():
    lengths = [5, 1, 4, 2, 3]
    assert bucket_by_length(lengths, tokens_per_batch=6) == [[1, 3], [4], [2], [0]]  # 2 x 2; 3, as 2 x 4 > 6; 4; 5
    assert bucket_by_length(lengths, tokens_per_batch=8) == [[1, 3], [4, 2], [0]]
    assert bucket_by_length(lengths, tokens_per_batch=1000) == [[1, 3, 4, 2, 0]]
    assert bucket_by_length(lengths, batch_size=5) == [[1, 3, 4, 2, 0]]
    assert bucket_by_length(lengths, batch_size=9) == [[1, 3, 4, 2, 0]]
    assert bucket_by_length([3, 3, 3, 3], batch_size=2) == [[0, 1], [2, 3]]
    assert bucket_by_length([1, 10, 10, 10], batch_size=3) == [[0], [1, 2, 3]]  # the short batch where it saves most
    assert bucket_by_length([10, 1, 1, 1], batch_size=3) == [[1, 2, 3], [0]]
    assert bucket_by_length([1, 1, 5, 9, 9], batch_size=2) == [[0, 1], [2], [3, 4]]


@relaxed
@given(lengths=many_lengths, size=st.integers(1, 200), by_tokens=st.booleans(), seed=st.sampled_from([None, 0, 1]))
def test_each_index_once_and_budgets_kept(lengths, size, by_tokens, seed):
    generator = None if seed is None else np.random.default_rng(seed)
    option = {"tokens_per_batch" if by_tokens else "batch_size": size}
    batches = bucket_by_length(lengths, generator=generator, **option)
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert all(type(index) is int for batch in batches for index in batch)
    for batch in batches:
        assert batch
        if by_tokens:
            assert len(batch) * max(lengths[index] for index in batch) <= size or len(batch) == 1
        else:
            assert len(batch) <= size
    if not by_tokens:
        assert sum(len(batch) < size for batch in batches) <= 1
    ranges = sorted((min(lengths[i] for i in batch), max(lengths[i] for i in batch)) for batch in batches)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ranges))  # like lengths together


@relaxed
@given(many_ids, st.integers(1, 4), st.integers(0, 5))
def test_order_is_restored(sequences, batch_size, seed):
    batches = bucket_by_length(
        [len(ids) for ids in sequences], batch_size=batch_size, generator=np.random.default_rng(seed)
    )
    restored = [None] * len(sequences)
    for batch in batches:
        packed = pack([sequences[index] for index in batch])
        for index, ids in zip(batch, unpack(packed.ids, packed.lengths), strict=True):
            restored[index] = ids.tolist()
    assert restored == sequences


@relaxed
@given(many_lengths, st.integers(1, 200))
def test_token_batches_take_as_many_as_fit(lengths, budget):
    batches = bucket_by_length(lengths, tokens_per_batch=budget)
    for batch, following in itertools.pairwise(batches):
        assert lengths[following[0]] * (len(batch) + 1) > budget


def test_a_sequence_above_the_budget_is_alone():
    assert bucket_by_length([3, 50, 2, 60], tokens_per_batch=8) == [[2, 0], [1], [3]]


def test_seeded_shuffle():
    lengths = np.random.default_rng(0).integers(1, 100, size=200)
    plain = bucket_by_length(lengths, batch_size=8)
    assert (
        plain
        == bucket_by_length(torch.from_numpy(lengths), batch_size=8)
        == bucket_by_length(list(lengths), batch_size=8)
    )
    first, again, other = (
        bucket_by_length(lengths, batch_size=8, generator=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == again != other
    tops = [max(lengths[index] for index in batch) for batch in first]
    assert tops != sorted(tops)
    assert slots(lengths, first) == slots(lengths, plain)


def test_equal_lengths_meet_in_other_batches():
    generator = np.random.default_rng(0)
    rounds = [bucket_by_length([7] * 20, batch_size=2, generator=generator) for _ in range(2)]
    first, second = ({frozenset(batch) for batch in batches} for batches in rounds)
    assert first != second


# Padding that is left


def test_padding_share_by_hand():
    lengths = [5, 1, 4, 2]
    assert padding_share(lengths, [[0, 1], [2, 3]]) == 1 / 3  # 18 slots, 12 tokens
    assert padding_share(lengths, [[1, 3], [0, 2]]) == pytest.approx(1 - 12 / 14)
    assert padding_share(lengths, [[0], [1], [2], [3]]) == 0
    assert padding_share(lengths, [np.array([0, 1])]) == pytest.approx(0.4)  # the batches given, and no others


@relaxed
@given(many_ids)
def test_padding_share_is_that_of_the_mask(sequences):
    attention_mask = pad(sequences)[1]
    share = padding_share([len(ids) for ids in sequences], [list(range(len(sequences)))])
    assert share == pytest.approx((attention_mask == 0).double().mean().item())


@relaxed
@given(many_lengths, st.integers(1, 12))
def test_bucketed_has_no_more_padding_than_unsorted(lengths, batch_size):
    bucketed = padding_share(lengths, bucket_by_length(lengths, batch_size=batch_size))
    assert bucketed <= padding_share(lengths, in_order(len(lengths), batch_size)) + 1e-12


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 4))
def test_no_division_of_these_sizes_has_less_padding(lengths, batch_size):
    """All orders, the short batch first: where it stands does not change the sum."""
    n = len(lengths)
    cuts = range(n % batch_size, n, batch_size)
    least = min(
        slots(lengths, [batch for batch in np.split(np.array(order), list(cuts)) if len(batch)])
        for order in itertools.permutations(range(n))
    )
    assert slots(lengths, bucket_by_length(lengths, batch_size=batch_size)) == least


@pytest.mark.parametrize("seed", range(5))
def test_token_budget_has_less_padding_than_unsorted(seed):
    """Lengths from 8 to 256, 4,096 tokens a batch: about 45% padding as they come, under 3% by length."""
    lengths = np.random.default_rng(seed).integers(8, 257, size=2000).tolist()
    bucketed = padding_share(lengths, bucket_by_length(lengths, tokens_per_batch=4096))
    unsorted = padding_share(lengths, in_order_by_tokens(lengths, 4096))
    assert bucketed < 0.03 < 0.4 < unsorted


# Errors


@pytest.mark.parametrize("function", [pack, pad, lambda sequences: split_documents(sequences, 8)])
@pytest.mark.parametrize(
    ("sequences", "kind", "message"),
    [
        ([], ValueError, "must hold at least one"),
        ([[1, 2.5]], TypeError, "must hold integers, not torch.float"),
        ([torch.ones(3)], TypeError, "must hold integers, not torch.float32"),
        ([[True, False]], TypeError, "must hold integers, not torch.bool"),
        ([[1, -2]], ValueError, "must hold ids from 0 up, not -2"),
        ([[[1, 2]]], ValueError, r"must each be \(n,\), not \(1, 2\)"),
        ([3, 4], ValueError, r"must each be \(n,\), not \(\)"),
        (["ab"], TypeError, "must each be a list of integers, not 'ab'"),
        ([["a"]], TypeError, "must each be a list of integers"),
        ([None], TypeError, "must each be a list of integers, not None"),
        ([[1, [2]]], TypeError, "must each be a list of integers"),
        (5, TypeError, "must be a list of lists of ids, not a int"),
    ],
)
def test_errors_of_sequences(function, sequences, kind, message):
    with pytest.raises(kind, match=message):
        function(sequences)


@pytest.mark.parametrize("function", [pack, pad])
def test_empty_sequence(function):
    with pytest.raises(ValueError, match="sequences must each have at least one token"):
        function([[1], []])


@pytest.mark.parametrize(
    "function",
    [
        lambda lengths: bucket_by_length(lengths, batch_size=2),
        lambda lengths: padding_share(lengths, [[0]]),
        lambda lengths: unpack(torch.arange(3), lengths),
    ],
)
@pytest.mark.parametrize(
    ("lengths", "kind", "message"),
    [
        ([], ValueError, "lengths must hold at least one"),
        ([3, -1], ValueError, "lengths must be positive, not -1"),
        ([3, 0], ValueError, "lengths must be positive, not 0"),
        ([1.5, 1.5], TypeError, "lengths must be integers, not float64"),
        ([True, True], TypeError, "lengths must be integers, not bool"),
        (["3"], TypeError, "lengths must be integers"),
        (3, ValueError, "lengths must be one-dimensional"),
    ],
)
def test_errors_of_lengths(function, lengths, kind, message):
    with pytest.raises(kind, match=message):
        function(lengths)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: pack([[1]], max_length=0), ValueError, "max_length must be positive"),
        (lambda: pad([[1]], pad_id=-1), ValueError, "pad_id must not be negative"),
        (lambda: pad([[1]], pad_id=0.0), TypeError, "pad_id must be an integer, not 0.0"),
        (lambda: unpack(torch.arange(4), [2, 3]), ValueError, r"add up to the tokens of flat, \(4,\), not to 5"),
        (lambda: unpad(torch.ones(2, 3), torch.ones(2, 2)), ValueError, r"must be \(batch, n\) as padded, \(2, 3\)"),
        (lambda: unpack([1, 2, 3], [2, 1]), TypeError, "flat must be a tensor, not a list"),
        (lambda: unpad([[1]], torch.ones(1, 1)), TypeError, "padded must be a tensor, not a list"),
        (lambda: unpad(torch.ones(1, 1), [[1]]), TypeError, "attention_mask must be a tensor, not a list"),
        (lambda: unpad(torch.ones(3), torch.ones(3)), ValueError, r"must be \(batch, n\)"),
        (lambda: unpad(torch.ones(1, 3), torch.tensor([[0, 1, 1]])), ValueError, "ones .* then zeros"),
        (lambda: unpad(torch.ones(1, 2), torch.tensor([[2, 0]])), ValueError, "ones .* then zeros"),
        (lambda: unpad(torch.ones(1, 2), torch.tensor([[0, 0]])), ValueError, "one at least"),
        (lambda: split_documents([[1]], 2, CLS, SEP), ValueError, "room for a token beside cls_id and sep_id, not 2"),
        (lambda: split_documents([[1]], 1.5), TypeError, "max_length must be an integer"),
        (lambda: split_documents([[1]], 5, cls_id=-1), ValueError, "cls_id must not be negative"),
        (lambda: bucket_by_length([1]), TypeError, "either tokens_per_batch or batch_size"),
        (
            lambda: bucket_by_length([1], tokens_per_batch=1, batch_size=1),
            TypeError,
            "either tokens_per_batch or batch_size",
        ),
        (lambda: bucket_by_length([1], batch_size=0), ValueError, "batch_size must be positive, not 0"),
        (lambda: bucket_by_length([1], tokens_per_batch=1.5), TypeError, "tokens_per_batch must be an integer"),
        (
            lambda: bucket_by_length([1], batch_size=1, generator=0),
            TypeError,
            "generator must be a numpy.random.Generator",
        ),
        (lambda: padding_share([1, 2], 3), TypeError, "batches must be a list of lists of indices, not 3"),
        (lambda: bucket_by_length([[1, 2], [3]], batch_size=1), TypeError, "lengths must be a list of integers, not"),
        (lambda: padding_share([1, 2], []), ValueError, "at least one batch"),
        (lambda: padding_share([1, 2], [[0], []]), ValueError, "none empty"),
        (lambda: padding_share([1, 2], [[2]]), ValueError, r"indices in \[0, 2\)"),
        (lambda: padding_share([1, 2], [[-1]]), ValueError, r"indices in \[0, 2\)"),
        (lambda: padding_share([1, 2], [[0.0]]), TypeError, "batches must be integers"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.int16])
def test_ids_of_any_integer_type(dtype):
    assert pad([np.array([5, 100], dtype=dtype)])[0].tolist() == [[5, 100]]
    assert pack([np.array([5, 100], dtype=dtype)]).ids.dtype == torch.int64
