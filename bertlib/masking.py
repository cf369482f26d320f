"""What a masked language model is asked: a share of the tokens is chosen, corrupted, and must be given back.

Devlin et al. 2019, section 3.1 (task 1) and appendices A.1 and C.2: 15% of the tokens are chosen; of these 80% become
[MASK], 10% another token drawn at random, and 10% stay as they are. The loss is taken at the chosen positions alone.

The randomness is numpy's. A seed gives the same numbers on every processor, which torch's own draws do not promise.
Numbers are drawn for the tokens that may be chosen and for no other, in reading order, so that a batch is corrupted
alike whether it comes padded, (batch, n), or packed, (tokens,).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from bertlib.checks import check_integer, check_lengths, check_number, check_positive
from bertlib.tensor_checks import check_mask, check_tensor

IGNORE_INDEX = -100  # the label of a position where nothing is predicted; cross-entropy in torch passes over it


def mask_tokens(
    input_ids: Tensor,
    *,
    mask_id: int,
    vocab_size: int,
    special_ids: Iterable[int],
    generator: np.random.Generator,
    attention_mask: Tensor | None = None,
    lengths: Sequence[int] | None = None,
    probability: float = 0.15,
    mask_share: float = 0.8,
    random_share: float = 0.1,
    word_starts: Tensor | None = None,
    max_predictions: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The corrupted ids and the labels, both of the shape of `input_ids`, which itself stays as it is.

    A label is the original id at a chosen position and `IGNORE_INDEX` at every other. A chosen token's fate hangs on
    one uniform draw u in [0, 1): [MASK] when u < mask_share, a random token when u < mask_share + random_share, itself
    otherwise. (Two independent draws would give 81%, 10% and 9%, or 80%, 2% and 18%.) A random token is any id that is
    not special, the original one included; the released code of the paper draws special ones, too.

    Without `max_predictions` each word is chosen with `probability`, independently of the others. With `word_starts`
    the pieces of a word are chosen together or not at all; a piece is then chosen exactly when its word is, so that the
    rate per piece is `probability` in expectation, for pieces of long words as of short ones; only the spread about it
    grows. The fate is drawn for each piece on its own, as in the released code. It may happen, in a short text even
    often, that nothing is chosen: a mean over no label is not a number, and whoever takes the loss must allow for it.

    Args:
        input_ids: int64, (batch, n), or packed sequences one after the other, (tokens,).
        mask_id: the id of [MASK]; it counts as special whether or not `special_ids` has it.
        vocab_size: how many ids there are.
        special_ids: the ids of [CLS], [SEP], [PAD], [UNK], ...: never chosen, never drawn.
        generator: `numpy.random.default_rng(seed)`; it moves on with each call.
        attention_mask: of the shape of `input_ids`, 1 for a real token and 0 for padding, which is never chosen.
            Without it padding is known by its id alone, which must then be special.
        lengths: the lengths of the packed sequences, for ids of shape (tokens,); without them the ids are one sequence.
            No word reaches from one sequence into the next, and `max_predictions` counts in each.
        probability: with which a token is chosen.
        mask_share: of the chosen tokens, those that become [MASK].
        random_share: of the chosen tokens, those that become a random one.
        word_starts: boolean, of the shape of `input_ids`, True at the first piece of each word; from WordPiece,
            `~is_continuation[input_ids]` with `is_continuation[i]` True where piece i begins with ##. What stands
            between special tokens, or at the cut edge of a sequence, is a word even when it has no first piece.
        max_predictions: choose a fixed number in each sequence, as the released code does:
            min(max_predictions, max(1, round(probability * length))), special tokens counted in the length. Words are
            taken in random order, and one that would exceed the number is passed over, so that long words are chosen
            less often and a sequence may fall short. None is chosen when `probability` is 0.

    Raises:
        TypeError: when ids, mask or word starts are no tensor, ids are not int64, `word_starts` is not boolean, an id
            or a count is not an integer, a share not a number, or the generator not numpy's.
        ValueError: when shapes do not fit, an id lies outside [0, vocab_size), every id is special, a probability or
            share lies outside [0, 1], the shares add up to more than 1, the mask holds anything but 0 and 1, or the
            lengths do not add up to the tokens. The message names the argument.
    """
    _check_shares(probability, mask_share, random_share)
    if not isinstance(generator, np.random.Generator):
        raise TypeError(f"generator must be a numpy.random.Generator, not {type(generator).__name__}")
    if max_predictions is not None:
        check_positive("max_predictions", max_predictions)
    special = _special(mask_id, vocab_size, special_ids)
    ids = _ids(input_ids, vocab_size)
    sizes = _sizes(input_ids, lengths)
    real = _real(input_ids, attention_mask)

    positions = np.flatnonzero(real & ~special[ids])  # of the tokens that may be chosen
    sequence = np.repeat(np.arange(len(sizes)), sizes)  # which sequence each token is of
    word = _words(input_ids, word_starts, sequence, positions)  # which word each of `positions` is of: 0, 0, 1, 2, 2
    draws = generator.random(word[-1] + 1 if len(word) else 0)
    if max_predictions is None:
        taken = draws < probability
    else:
        real_lengths = np.bincount(sequence, weights=real, minlength=len(sizes))
        counts = np.minimum(max_predictions, np.maximum(1, np.rint(probability * real_lengths)))
        taken = _take(draws, word, sequence[positions], counts * (probability > 0))
    chosen = positions[taken[word]]

    labels = np.full_like(ids, IGNORE_INDEX)
    labels[chosen] = ids[chosen]
    corrupted = ids.copy()
    fate = generator.random(len(chosen))
    masked = fate < mask_share
    replaced = ~masked & (fate < mask_share + random_share)
    ordinary = np.flatnonzero(~special)
    corrupted[chosen[masked]] = mask_id
    corrupted[chosen[replaced]] = ordinary[generator.integers(len(ordinary), size=replaced.sum())]
    return _like(corrupted, input_ids), _like(labels, input_ids)


def _words(input_ids: Tensor, word_starts: Tensor | None, sequence: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """For each position that may be chosen the number of its word, in reading order from 0."""
    if word_starts is None:
        return np.arange(len(positions))
    if check_tensor("word_starts", word_starts).dtype != torch.bool:
        raise TypeError(f"word_starts must be boolean, True at the first piece of a word, not {word_starts.dtype}")
    if word_starts.shape != input_ids.shape:
        raise ValueError(
            f"word_starts must have the shape of input_ids, {tuple(input_ids.shape)}, not {tuple(word_starts.shape)}"
        )
    begins = word_starts.cpu().numpy().ravel() | (np.diff(sequence, prepend=-1) > 0)
    barrier = np.ones(len(sequence), dtype=bool)
    barrier[positions] = False  # what may not be chosen, a special token or padding, ends the word before it
    return np.unique(np.cumsum(begins | barrier)[positions], return_inverse=True)[1]


def _take(draws: np.ndarray, word: np.ndarray, sequence: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Whether each word is taken, when words come in the order of their draws and `counts` pieces fit a sequence."""
    pieces = np.bincount(word, minlength=len(draws))
    home = np.zeros(len(draws), dtype=int)
    home[word] = sequence
    left = counts.copy()
    taken = np.zeros(len(draws), dtype=bool)
    for candidate in np.argsort(draws):
        if pieces[candidate] <= left[home[candidate]]:
            left[home[candidate]] -= pieces[candidate]
            taken[candidate] = True
    return taken


def _like(flat: np.ndarray, input_ids: Tensor) -> Tensor:
    return torch.from_numpy(flat).view(input_ids.shape).to(input_ids.device)


def _check_shares(probability: float, mask_share: float, random_share: float) -> None:
    for name, value in (("probability", probability), ("mask_share", mask_share), ("random_share", random_share)):
        if not 0 <= check_number(name, value) <= 1:
            raise ValueError(f"{name} must lie in [0, 1], not {value}")
    if mask_share + random_share > 1 + 1e-9:
        raise ValueError(f"mask_share and random_share must not exceed 1 together, not {mask_share} + {random_share}")


def _special(mask_id: int, vocab_size: int, special_ids: Iterable[int]) -> np.ndarray:
    """For each id of the vocabulary whether it is special, (|V|,)."""
    check_positive("vocab_size", vocab_size)
    if not isinstance(special_ids, Iterable):
        raise TypeError(f"special_ids must be a list of ids, not {special_ids!r}")
    special = np.zeros(vocab_size, dtype=bool)
    for name, ids in (("mask_id", [mask_id]), ("special_ids", special_ids)):
        for index in ids:
            if not 0 <= check_integer(name, index) < vocab_size:
                raise ValueError(f"{name} must lie in [0, {vocab_size}), the vocabulary, not {index}")
            special[index] = True
    if special.all():
        raise ValueError(f"special_ids must leave an id that is not special; all {vocab_size} of vocab_size are")
    return special


def _ids(input_ids: Tensor, vocab_size: int) -> np.ndarray:
    if check_tensor("input_ids", input_ids).dtype != torch.int64:
        raise TypeError(f"input_ids must be int64, not {input_ids.dtype}")
    if input_ids.dim() not in (1, 2):
        raise ValueError(f"input_ids must be (batch, n) or (tokens,), not {tuple(input_ids.shape)}")
    ids = input_ids.cpu().numpy().ravel()
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside):
        raise ValueError(f"input_ids must lie in [0, {vocab_size}), the vocabulary, not {outside[0]}")
    return ids


def _sizes(input_ids: Tensor, lengths: Sequence[int] | None) -> list[int]:
    """The number of tokens of each sequence, padding included."""
    if lengths is None:
        return [input_ids.shape[-1]] * (input_ids.shape[0] if input_ids.dim() == 2 else 1)
    if input_ids.dim() == 2:
        raise ValueError("lengths are of packed ids, (tokens,); a padded batch, (batch, n), has its attention_mask")
    return check_lengths(lengths, len(input_ids), least=1)


def _real(input_ids: Tensor, attention_mask: Tensor | None) -> np.ndarray:
    """For each token whether it is a real one, not padding, (tokens,)."""
    if attention_mask is None:
        return np.ones(input_ids.numel(), dtype=bool)
    real = check_mask(attention_mask)
    if real.shape != input_ids.shape:
        raise ValueError(
            f"attention_mask must have the shape of input_ids, {tuple(input_ids.shape)}, not {tuple(real.shape)}"
        )
    return real.cpu().numpy().ravel()
