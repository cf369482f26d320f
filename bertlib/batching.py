"""Sequences of unequal lengths in one batch, so that padding costs nothing, or little.

Three ways, from dear to cheap. `pad` fills every sequence up to the longest of its batch: simple, and much of the work
is done on nothing. `bucket_by_length` puts sequences of like lengths into one batch, so that little is filled. `pack`
lays the sequences one after the other and keeps their lengths: nothing is filled, and whoever mixes tokens (attention
alone does) must heed the lengths. `padding_share` says what a set of batches wastes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bertlib.checks import check_integer, check_positive
from bertlib.tensor_checks import check_tensor

Ids = "Sequence[int] | Tensor | np.ndarray"  # the token ids of one sequence
Lengths = "Sequence[int] | Tensor | np.ndarray"  # the lengths of several, in tokens


class Packed(NamedTuple):
    """Sequences one after the other: ids (tokens,), the lengths, and positions (tokens,) that begin at 0 in each."""

    ids: Tensor
    lengths: list[int]
    position_ids: Tensor


def pack(sequences: Iterable[Ids], max_length: int | None = None) -> Packed:
    """Lay sequences one after the other, without padding; `unpack` gives them back in their order.

    Args:
        sequences: the token ids of each, lists of integers or integer tensors (n,).
        max_length: the longest that a sequence may be, the model's `max_position_embeddings`.

    Raises:
        TypeError: when ids are not integers.
        ValueError: when there is no sequence, or one is empty, not (n,), longer than max_length, or has a negative id.
    """
    rows = _rows(sequences)
    lengths = [len(row) for row in rows]
    if max_length is not None:
        check_positive("max_length", max_length)
        for index, length in enumerate(lengths):
            if length > max_length:
                raise ValueError(
                    f"sequences must have at most max_length = {max_length} tokens; number {index} has {length}: "
                    "cut it with split_documents"
                )
    position_ids = torch.cat([torch.arange(length) for length in lengths])
    return Packed(torch.cat(rows), lengths, position_ids.to(rows[0].device))


def unpack(flat: Tensor, lengths: Lengths) -> list[Tensor]:
    """What belongs to each sequence, in order: of ids (tokens,) each (n,), of hidden states (tokens, d) each (n, d).

    Raises:
        TypeError: when flat is no tensor or lengths are not integers.
        ValueError: when there are no lengths, one is not positive, or they do not add up to the tokens.
    """
    sizes = _lengths(lengths)
    if check_tensor("flat", flat).dim() < 1 or sizes.sum() != len(flat):
        raise ValueError(f"lengths must add up to the tokens of flat, {tuple(flat.shape)}, not to {sizes.sum()}")
    return list(flat.split(sizes.tolist()))


def pad(sequences: Iterable[Ids], pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """The ids (batch, n), n the longest length, filled on the right with `pad_id`, and the attention mask (batch, n).

    The mask, int64, is 1 for a real token and 0 for padding.

    Raises:
        TypeError: when ids are not integers.
        ValueError: when there is no sequence, or one is empty, not (n,) or has a negative id, or pad_id is negative.
    """
    if check_integer("pad_id", pad_id) < 0:
        raise ValueError(f"pad_id must not be negative, not {pad_id}")
    rows = _rows(sequences)
    input_ids = rows[0].new_full((len(rows), max(len(row) for row in rows)), pad_id)
    attention_mask = torch.zeros_like(input_ids)
    for index, row in enumerate(rows):
        input_ids[index, : len(row)] = row
        attention_mask[index, : len(row)] = 1
    return input_ids, attention_mask


def unpad(padded: Tensor, attention_mask: Tensor) -> list[Tensor]:
    """The inverse of `pad`, for ids (batch, n), each (length,), and for hidden states (batch, n, d), each (length, d).

    Raises:
        TypeError: when one of them is no tensor.
        ValueError: when the mask does not fit, or a row of it is anything but ones and then zeros, at least one 1.
    """
    check_tensor("padded", padded)
    if check_tensor("attention_mask", attention_mask).dim() != 2 or padded.shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask must be (batch, n) as padded, {tuple(padded.shape)}, begins, "
            f"not {tuple(attention_mask.shape)}"
        )
    lengths = attention_mask.sum(dim=1).long()
    right_padded = torch.arange(attention_mask.shape[1], device=lengths.device) < lengths[:, None]
    if not torch.equal(right_padded.to(attention_mask.dtype), attention_mask) or (lengths < 1).any():
        raise ValueError("attention_mask must have in each row ones (real tokens), one at least, then zeros (padding)")
    return [row[:length] for row, length in zip(padded, lengths.tolist(), strict=True)]


def split_documents(
    documents: Iterable[Ids], max_length: int, cls_id: int | None = None, sep_id: int | None = None
) -> list[Tensor]:
    """Cut documents into sequences of at most `max_length` tokens, in order; none reaches over two documents.

    Each has `cls_id` before it and `sep_id` behind it, where given, and counted in `max_length`. All but the last of a
    document are full. A cut may fall within a word; a document without tokens gives no sequence.

    Args:
        documents: the token ids of each, without special tokens.
        max_length: the longest that a sequence may be, the model's `max_position_embeddings`.
        cls_id: the id of [CLS], or None.
        sep_id: the id of [SEP], or None.

    Raises:
        TypeError: when ids are not integers.
        ValueError: when there is no document, an id is negative, or max_length leaves no room for a token.
    """
    special = {name: value for name, value in (("cls_id", cls_id), ("sep_id", sep_id)) if value is not None}
    for name, value in special.items():
        if check_integer(name, value) < 0:
            raise ValueError(f"{name} must not be negative, not {value}")
    room = check_positive("max_length", max_length) - len(special)
    if room < 1:
        raise ValueError(f"max_length must leave room for a token beside {' and '.join(special)}, not {max_length}")
    sequences = []
    for row in _rows(documents, "documents", allow_empty=True):
        before = row.new_tensor([] if cls_id is None else [cls_id])
        behind = row.new_tensor([] if sep_id is None else [sep_id])
        sequences += [torch.cat([before, piece, behind]) for piece in row.split(room) if len(piece)]
    return sequences


def bucket_by_length(
    lengths: Lengths,
    *,
    tokens_per_batch: int | None = None,
    batch_size: int | None = None,
    generator: np.random.Generator | None = None,
) -> list[list[int]]:
    """Batches of sequences of like lengths, as lists of their indices; each index is in one batch, once.

    With `batch_size` every batch has that many sequences, but one, which has the rest and is put where it saves most:
    no other division into batches of these sizes, sorted or not, has less padding. With `tokens_per_batch` a batch
    takes, from the shortest up, as many sequences as fit when padded: longest length x sequences <= tokens_per_batch. A
    sequence longer than that is alone in its batch, the only kind of batch above the budget; nothing is left out.

    Without a generator the batches go from short to long, equal lengths by index. With one the batches come in random
    order, and sequences of equal length meet in other batches each time.

    Args:
        lengths: of the sequences, in tokens.
        tokens_per_batch: the budget of a batch, padding counted; give this or batch_size.
        batch_size: how many sequences make a batch.
        generator: `numpy.random.default_rng(seed)`, for training; it moves on with each call.

    Raises:
        TypeError: when lengths or a size are not integers, the generator is not numpy's, or not one size is given.
        ValueError: when there are no lengths, or a length or size is not positive.
    """
    sizes = _lengths(lengths)
    if (tokens_per_batch is None) == (batch_size is None):
        raise TypeError("bucket_by_length takes either tokens_per_batch or batch_size, one of the two")
    if generator is not None and not isinstance(generator, np.random.Generator):
        raise TypeError(f"generator must be a numpy.random.Generator or None, not {type(generator).__name__}")
    ties = np.arange(len(sizes)) if generator is None else generator.permutation(len(sizes))
    order = np.lexsort((ties, sizes))
    if batch_size is None:
        stops = _stops_by_tokens(sizes[order], check_positive("tokens_per_batch", tokens_per_batch))
    else:
        stops = _stops_by_number(sizes[order], check_positive("batch_size", batch_size))
    batches = [batch.tolist() for batch in np.split(order, stops)]
    return batches if generator is None else [batches[index] for index in generator.permutation(len(batches))]


def padding_share(lengths: Lengths, batches: Iterable[Sequence[int]]) -> float:
    """The share, in [0, 1), of the slots of padded batches that hold padding.

    A batch has as many slots as its longest length times its sequences; `batches` are lists of indices of `lengths`.

    Raises:
        TypeError: when lengths or indices are not integers.
        ValueError: when there are no lengths, no batches or an empty one, or an index lies outside the lengths.
    """
    sizes = _lengths(lengths)
    real = slots = 0
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches must be a list of lists of indices, not {batches!r}")
    for batch in batches:
        indices = _whole_numbers("batches", batch)
        if not len(indices) or indices.min() < 0 or indices.max() >= len(sizes):
            raise ValueError(f"batches must be lists of indices in [0, {len(sizes)}), none empty, not {batch!r}")
        real += int(sizes[indices].sum())
        slots += int(sizes[indices].max()) * len(indices)
    if not slots:
        raise ValueError("batches must hold at least one batch")
    return (slots - real) / slots


def _stops_by_tokens(ascending: np.ndarray, budget: int) -> list[int]:
    """Where a new batch begins, 0 left out, when as many as fit are taken from the shortest up."""
    stops, start = [], 0
    for index, length in enumerate(ascending.tolist()):
        if index > start and length * (index - start + 1) > budget:
            stops.append(index)
            start = index
    return stops


def _stops_by_number(ascending: np.ndarray, batch_size: int) -> list[int]:
    """Where a new batch begins, 0 left out, with the one short batch where the padded total is least."""
    full, rest = divmod(len(ascending), batch_size)
    if not rest:
        return list(range(batch_size, len(ascending), batch_size))
    # Slots of each full batch, when the short one comes after it and before it; slots of the short one, at each place.
    before = batch_size * ascending[batch_size - 1 :: batch_size]
    behind = batch_size * ascending[rest + batch_size - 1 :: batch_size]
    short = rest * ascending[rest - 1 :: batch_size]
    slots = short + np.append(0, before.cumsum()) + behind.sum() - np.append(0, behind.cumsum())
    place = int(slots.argmin())
    stops = [batch_size * (index + 1) for index in range(place)]
    return stops + [batch_size * index + rest for index in range(place, full)]


def _rows(sequences: Iterable[Ids], name: str = "sequences", allow_empty: bool = False) -> list[Tensor]:
    """Each sequence as an int64 tensor (n,)."""
    if not isinstance(sequences, Iterable):
        raise TypeError(f"{name} must be a list of lists of ids, not a {type(sequences).__name__}")
    rows = [_row(sequence, name, allow_empty) for sequence in sequences]
    if not rows:
        raise ValueError(f"{name} must hold at least one")
    return rows


def _row(sequence: Ids, name: str, allow_empty: bool) -> Tensor:
    try:
        row = torch.as_tensor(sequence)
    except (TypeError, ValueError, RuntimeError) as error:  # torch has a kind for strings, for None, for ragged lists
        raise TypeError(f"{name} must each be a list of integers, not {sequence!r}") from error
    if row.dim() != 1:
        raise ValueError(f"{name} must each be (n,), not {tuple(row.shape)}")
    if not len(row):
        if allow_empty:
            return row.long()
        raise ValueError(f"{name} must each have at least one token; one is empty")
    if row.is_floating_point() or row.is_complex() or row.dtype == torch.bool:
        raise TypeError(f"{name} must hold integers, not {row.dtype}")
    row = row.long()
    if row.min() < 0:
        raise ValueError(f"{name} must hold ids from 0 up, not {int(row.min())}")
    return row


def _lengths(lengths: Lengths) -> np.ndarray:
    sizes = _whole_numbers("lengths", lengths)
    if not len(sizes):
        raise ValueError("lengths must hold at least one")
    if sizes.min() < 1:
        raise ValueError(f"lengths must be positive, not {sizes.min()}")
    return sizes


def _whole_numbers(name: str, values: Lengths) -> np.ndarray:
    try:
        numbers = np.asarray(values.cpu() if isinstance(values, Tensor) else values)
    except ValueError as error:  # lists of unequal lengths
        raise TypeError(f"{name} must be a list of integers, not {values!r}") from error
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, not {numbers.shape}")
    if len(numbers) and numbers.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, not {numbers.dtype}")
    return numbers.astype(np.int64)
