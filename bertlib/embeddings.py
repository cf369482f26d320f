"""The first layer: what a token is, where it stands and which segment it belongs to, added up and normalised."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from bertlib.config import BertConfig, check_config


class Embeddings(nn.Module):
    """Token + segment + position, then LayerNorm and dropout (Devlin et al. 2019, section 3, figure 2).

    With `embedding_size` the tables are narrower than the model and a linear map follows (Clark et al. 2020, section
    3.3). With rotary positions there is no table of positions: they come in with the queries and keys.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        check_config(config)
        width = config.embedding_dim
        self.token = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)  # no gradient to [PAD]
        self.segment = nn.Embedding(config.type_vocab_size, width)
        absolute = config.position_embedding_type == "absolute"
        self.position = nn.Embedding(config.max_position_embeddings, width) if absolute else None
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.projection = nn.Linear(width, config.hidden_size) if width != config.hidden_size else None

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, position_ids: Tensor, lengths: Sequence[int]
    ) -> Tensor:
        """The vectors (tokens, d) of ids (tokens,) with their segments and positions, (tokens,) each.

        `lengths` say how many tokens each sequence has, for the messages.

        Raises:
            TypeError: when ids are not integers.
            ValueError: when an id has no row in its table; the message says which one.
        """
        check_ids("input_ids", input_ids, self.token.num_embeddings, lengths)
        check_ids("token_type_ids", token_type_ids, self.segment.num_embeddings, lengths)
        positions = None if self.position is None else self.position.num_embeddings
        check_ids("position_ids", position_ids, positions, lengths)
        x = self.token(input_ids) + self.segment(token_type_ids)
        if self.position is not None:
            x = x + self.position(position_ids)
        x = self.dropout(self.norm(x))
        return x if self.projection is None else self.projection(x)


LIMITS = {
    "input_ids": "vocab_size",
    "token_type_ids": "type_vocab_size",
    "position_ids": "max_position_embeddings",
}


def check_ids(name: str, ids: Tensor, rows: int | None, lengths: Sequence[int]) -> None:
    """Hold ids (tokens,) against the rows of their table, if any; torch's own error would not say which one is wrong.

    Raises:
        TypeError: when the ids are not integers.
        ValueError: when one is negative or too large.
    """
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be integers (torch.int64 or int32), not {ids.dtype}")
    if rows is not None and ids.numel() and not (ids.min() >= 0 and ids.max() < rows):
        wrong = ((ids < 0) | (ids >= rows)).nonzero()[0].item()
        ends = list(accumulate(lengths))
        sequence = bisect_right(ends, wrong)
        token = wrong - ends[sequence] + lengths[sequence]
        longer = f": cut the text, max_length={rows} with truncation=True" if name == "position_ids" else ""
        raise ValueError(
            f"{name} must lie in [0, {rows}), {LIMITS[name]} of the config, but token {token} of sequence {sequence} "
            f"has {ids[wrong].item()}{longer}"
        )
