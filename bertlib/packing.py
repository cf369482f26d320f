"""From a padded batch to its tokens alone, one after the other, and back.

Linear maps, LayerNorm and the feed-forward network treat each token by itself, so they need not see a batch at all: a
matrix (tokens, d) does, and no padding is computed. Attention alone has to know where a sequence ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from bertlib.tensor_checks import check_mask, check_tensor


@dataclass(frozen=True)
class Packing:
    """Where the tokens of a padded batch stand.

    `lengths` are the numbers of tokens by sequence, `index` the places, in the flattened batch, of the tokens, or None
    when there is no padding, and `position_ids` (tokens,) how far each token is from the first one of its sequence.
    """

    batch: int
    n: int
    lengths: list[int]
    index: Tensor | None
    position_ids: Tensor

    @classmethod
    def of(cls, input_ids: Tensor, attention_mask: Tensor | None = None) -> Packing:
        """The packing of ids (batch, n) under a mask (batch, n), 1 for a token and 0 for padding.

        Padding may stand anywhere. A sequence begins at its first token, so padding on the left moves no position; a
        hole in the middle keeps its place, so the tokens after it do not move up.

        Raises:
            TypeError: when one of them is no tensor.
            ValueError: when the shapes are not (batch, n) or the mask holds anything but 0 and 1.
        """
        if check_tensor("input_ids", input_ids).dim() != 2 or input_ids.numel() == 0:
            raise ValueError(f"input_ids must be (batch, n), neither of them zero, not {tuple(input_ids.shape)}")
        batch, n = input_ids.shape
        columns = torch.arange(n, device=input_ids.device).expand(batch, n)
        if attention_mask is None:
            return cls(batch, n, [n] * batch, None, columns.flatten())
        if check_tensor("attention_mask", attention_mask).shape != input_ids.shape:
            raise ValueError(f"attention_mask must be as input_ids, {(batch, n)}, not {tuple(attention_mask.shape)}")
        keep = check_mask(attention_mask)
        if bool(keep.all()):
            return cls(batch, n, [n] * batch, None, columns.flatten())
        first = torch.where(keep, columns, n).amin(dim=1, keepdim=True)
        index = keep.flatten().nonzero().squeeze(1)
        return cls(batch, n, keep.sum(dim=1).tolist(), index, (columns - first).flatten()[index])

    def pack(self, padded: Tensor, name: str = "padded") -> Tensor:
        """(batch, n) to (tokens,).

        Raises:
            TypeError: when `padded`, which the message calls `name`, is no tensor.
            ValueError: when it is not (batch, n).
        """
        if check_tensor(name, padded).shape != (self.batch, self.n):
            raise ValueError(f"{name} must be as input_ids, {(self.batch, self.n)}, not {tuple(padded.shape)}")
        flat = padded.flatten()
        return flat if self.index is None else flat[self.index]

    def unpack(self, packed: Tensor, fill: float = 0.0) -> Tensor:
        """(tokens, ...) to (batch, n, ...), `fill` where padding stands."""
        rest = packed.shape[1:]
        if self.index is None:
            return packed.view(self.batch, self.n, *rest)
        padded = packed.new_full((self.batch * self.n, *rest), fill)
        return padded.index_copy(0, self.index, packed).view(self.batch, self.n, *rest)

    def unpack_pairs(self, matrices: list[Tensor], heads: int) -> Tensor:
        """A matrix (h, length, length) a sequence with tokens to (batch, h, n, n), zero where a token is padding."""
        if self.index is None:
            return torch.stack(matrices)
        dtype = matrices[0].dtype if matrices else torch.get_default_dtype()
        padded = torch.zeros(self.batch, heads, self.n, self.n, dtype=dtype, device=self.index.device)
        columns = (self.index % self.n).split(self.lengths)
        filled = [i for i, length in enumerate(self.lengths) if length]
        for i, matrix in zip(filled, matrices, strict=True):
            padded[i][:, columns[i][:, None], columns[i]] = matrix
        return padded


def first_tokens(lengths: list[int], device: torch.device | None = None) -> Tensor:
    """The places (sequences,), among the packed tokens, where each sequence begins."""
    counts = torch.tensor(lengths, dtype=torch.long, device=device)
    return counts.cumsum(0) - counts


def runs(lengths: list[int]) -> list[tuple[int, int]]:
    """Neighbours of equal length, which can be attended to in one call: (how many, their length); empty ones left out.

    >>> runs([5, 5, 0, 3])
    [(2, 5), (1, 3)]
    """
    return [(len(list(group)), length) for length, group in groupby(lengths) if length]
