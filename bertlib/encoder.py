"""The encoder: attention mixes the tokens, a feed-forward network treats each by itself, and this L times.

Everything here takes packed tokens: (tokens, d), sequence after sequence, and the lengths of the sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertlib.attention import MultiHeadAttention, rotary_angles
from bertlib.config import BertConfig, check_config


def gelu(x: Tensor) -> Tensor:
    """x Phi(x), Phi the distribution function of the standard normal (Hendrycks and Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Tensor) -> Tensor:
    """The same by a tanh, at most 4.73e-4 away; GPT-2's, "gelu_new" in published configs."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {  # torch's fused forms of the two above
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


class FeedForward(nn.Module):
    """Out to `intermediate_size`, through the activation, and back (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, config: BertConfig):
        super().__init__()
        check_config(config)
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) to (..., d)."""
        return self.outer(self.activation(self.inner(x)))


def in_pieces(module: nn.Module, x: Tensor, size: int = 1024) -> Tensor:
    """module(x), (tokens, d) to (tokens, d), so many tokens at a time where no gradient is wanted.

    For what treats each token by itself. What a piece writes on its way is read again before it has left the cache,
    and its memory serves the next. A module with hooks sees all tokens at once; hooks that torch sets for every module
    there is see the pieces.
    """
    if torch.is_grad_enabled() or len(x) <= size or has_hooks(module):
        return module(x)
    return torch.cat([module(piece) for piece in x.split(size)])


def has_hooks(module: nn.Module) -> bool:
    """Whether somebody looks at what goes into or comes out of a module, or a part of it."""
    return any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


@dataclass
class Encoded:
    """What the stack gives: the last hidden state, (tokens, d) or (rows, d), and on request what lies on the way.

    `hidden_states` are the stack's input and the output of each layer, the last one after the final LayerNorm;
    `attentions` and `scores` have, for each layer, a matrix (h, length, length) a sequence that is not empty. A list
    that was not asked for is empty.
    """

    hidden: Tensor
    hidden_states: list[Tensor]
    attentions: list[list[Tensor]]
    scores: list[list[Tensor]]


class EncoderLayer(nn.Module):
    """Attention and a feed-forward network, each with dropout, a residual sum and a LayerNorm.

    "post", as BERT has it: LayerNorm(x + f(x)) (Vaswani et al. 2017, section 3.1). "pre": x + f(LayerNorm(x)) (Xiong et
    al. 2020, section 3).
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.pre_norm = config.norm == "pre"

    def forward(
        self,
        x: Tensor,
        lengths: list[int],
        angles: Tensor | None = None,
        weigh: bool = False,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """(tokens, d) to (tokens, d); with it, when `weigh`, the attention's weights and scores by sequence.

        Given `rows`, the output is theirs alone, (rows, d): every token is attended to, but only these go on.
        """
        attended_to = self.attention_norm(x) if self.pre_norm else x
        attended, weights, scores = self.attention.packed(attended_to, lengths, angles, weigh, rows)
        x = x if rows is None else x[rows]
        if self.pre_norm:
            x = x + self.dropout(attended)
            x = x + self.dropout(in_pieces(self.feed_forward, self.feed_forward_norm(x)))
        else:
            x = self.attention_norm(x + self.dropout(attended))
            x = self.feed_forward_norm(x + self.dropout(in_pieces(self.feed_forward, x)))
        return x, weights, scores


class Encoder(nn.Module):
    """L layers, one after the other; with "pre" a LayerNorm at the end."""

    def __init__(self, config: BertConfig):
        super().__init__()
        check_config(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps) if config.norm == "pre" else None
        self.rotary_dim = config.head_dim if config.position_embedding_type == "rotary" else None

    def forward(
        self,
        x: Tensor,
        lengths: list[int],
        position_ids: Tensor,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        output_scores: bool = False,
        rows: Tensor | None = None,
    ) -> Encoded:
        """Encode tokens (tokens, d) of sequences of the given lengths; their positions (tokens,) matter when rotary.

        Given `rows`, only these tokens of the last layer's output are computed, unless all hidden states are asked for:
        most of that layer's work lies behind its attention.
        """
        angles = None if self.rotary_dim is None else rotary_angles(position_ids, self.rotary_dim)
        weigh = output_attentions or output_scores
        outputs = [x] if output_hidden_states else []
        attentions, all_scores = [], []
        for number, layer in enumerate(self.layers, start=1):
            last = number == len(self.layers)
            x, weights, scores = layer(x, lengths, angles, weigh, None if output_hidden_states or not last else rows)
            if output_hidden_states:
                outputs.append(x)
            if output_attentions:
                attentions.append(weights)
            if output_scores:
                all_scores.append(scores)
        if self.norm is not None:
            x = self.norm(x)
            if output_hidden_states:
                outputs[-1] = x
        if output_hidden_states and rows is not None:
            x = x[rows]
        return Encoded(x, outputs, attentions, all_scores)
