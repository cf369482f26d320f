"""Scaled dot-product attention, spelled out and fused, and the multi-head layer built on it.

Notation (Vaswani et al. 2017, section 3.2): a token is a row, Q is (..., n, d_k), K is (..., m, d_k) and V is
(..., m, d_v); S = Q K^T / sqrt(d_k), A = softmax(S) by rows, Z = A V. The spelled-out form is the one to read, the
fused form the one to run; `tests/library/test_attention.py` holds them equal, masks and gradients included.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertlib.checks import check_integer, check_number
from bertlib.config import BertConfig, check_config
from bertlib.packing import runs
from bertlib.tensor_checks import check_mask, check_tensor


def attention_scores(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """Scores S = scale * Q K^T, (..., n, m), of n queries (..., n, d_k) against m keys (..., m, d_k).

    `scale` is 1 / sqrt(d_k) unless given; `scale=1.0` gives the raw dot products.

    Raises:
        TypeError: when one of them is no tensor, they are not floating-point of one type, or scale is no number.
        ValueError: when queries and keys differ in width, or one of them is not a matrix.
    """
    _check_scores(query, key)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    scale = check_number("scale", scale)
    return (query * scale) @ key.transpose(-2, -1)  # scaled before the product, which in half precision may overflow


def attention_weights(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A = softmax(S) by rows, (..., n, m), over the keys that the boolean mask allows; a row without any is zero.

    Raises:
        TypeError: when scores are no floating-point tensor, or the mask is not boolean.
        ValueError: when scores are no matrices, or the mask does not fit them.
    """
    if not check_tensor("scores", scores).is_floating_point():
        raise TypeError(f"scores must be floating-point, not {scores.dtype}")
    if scores.dim() < 2:
        raise ValueError(f"scores must be (..., n, m), not {tuple(scores.shape)}")
    _check_mask(mask, tuple(scores.shape))
    if mask is None:
        return scores.softmax(dim=-1)
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1) * mask


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, spelled out: the outputs Z, (..., n, d_v), and the weights A, (..., n, m).

    A row of A is a probability vector over the keys, so a row of Z lies in the convex hull of the values.

    Args:
        query: (..., n, d_k).
        key: (..., m, d_k).
        value: (..., m, d_v).
        mask: boolean, broadcastable to (..., n, m); True where a query may attend to a key. A query that may attend to
            none gets weights and output zero and passes no gradient back, as in torch's fused kernel.
        scale: what the dot products are multiplied by; 1 / sqrt(d_k) unless given.
        dropout_p: the probability, in [0, 1), with which a weight is dropped before the average, the others growing by
            1 / (1 - dropout_p); the weights returned are whole.

    Raises:
        ValueError: when widths, lengths or leading dimensions do not fit, or dropout_p is not in [0, 1).
        TypeError: when something is no tensor, the three are not floating-point of one type, or the mask is not boolean
            (one of zeros and ones would be ambiguous: add or keep?).
    """
    _check(query, key, value, mask, dropout_p)
    weights = attention_weights(attention_scores(query, key, scale), mask)
    return F.dropout(weights, dropout_p) @ value, weights


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """The outputs of `attention` through torch's fused kernel, which never writes the weights out.

    Arguments, shapes and errors as for `attention`.
    """
    _check(query, key, value, mask, dropout_p)
    if scale is not None:
        scale = check_number("scale", scale)
    if mask is not None:
        mask = torch.atleast_2d(mask)  # the kernel does not take a mask of keys alone, (m,)
    return _kernel(query, key, value, attn_mask=mask, dropout_p=dropout_p, scale=scale)


def _kernel(query: Tensor, key: Tensor, value: Tensor, **options) -> Tensor:
    """torch's fused kernel, on a CPU always with torch's default product.

    Under `set_float32_matmul_precision("medium")` it would hand each of its many small products to oneDNN, whose
    set-up takes longer than they do.
    """
    setting = torch.get_float32_matmul_precision()
    if setting == "highest" or query.device.type != "cpu":
        return F.scaled_dot_product_attention(query, key, value, **options)
    torch.set_float32_matmul_precision("highest")
    try:
        return F.scaled_dot_product_attention(query, key, value, **options)
    finally:
        torch.set_float32_matmul_precision(setting)


def _check_scores(query: Tensor, key: Tensor) -> None:
    for name, tensor in (("query", query), ("key", key)):
        if check_tensor(name, tensor).dim() < 2:
            raise ValueError(f"{name} must be (..., length, width), not {tuple(tensor.shape)}")
    if query.shape[-1] != key.shape[-1] or not query.shape[-1]:
        raise ValueError(f"query and key must have one width, from 1 up, not {query.shape[-1]} and {key.shape[-1]}")
    _check_together(query=query, key=key)


def _check_together(**tensors: Tensor) -> torch.Size:
    """The leading dimensions that the tensors have when broadcast together."""
    names = ", ".join(tensors)
    if len({tensor.dtype for tensor in tensors.values()}) > 1 or not next(iter(tensors.values())).is_floating_point():
        types = ", ".join(str(tensor.dtype) for tensor in tensors.values())
        raise TypeError(f"{names} must be floating-point and of one type, not {types}")
    leading = [tuple(tensor.shape[:-2]) for tensor in tensors.values()]
    try:
        return torch.broadcast_shapes(*leading)
    except RuntimeError as error:
        raise ValueError(f"{names} must have leading dimensions that fit, not {leading}") from error


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float) -> None:
    _check_scores(query, key)
    if check_tensor("value", value).dim() < 2:
        raise ValueError(f"value must be (..., length, width), not {tuple(value.shape)}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key and value must have the same length, not {key.shape[-2]} and {value.shape[-2]}")
    batch = _check_together(query=query, key=key, value=value)
    if not 0 <= check_number("dropout_p", dropout_p) < 1:
        raise ValueError(f"dropout_p must be a probability in [0, 1), not {dropout_p}")
    _check_mask(mask, (*batch, query.shape[-2], key.shape[-2]))


def _check_mask(mask: Tensor | None, scores: tuple[int, ...]) -> None:
    """Hold a mask against the shape of the scores."""
    if mask is None:
        return
    if check_tensor("mask", mask).dtype != torch.bool:
        raise TypeError(f"mask must be boolean, True where attention is allowed, not {mask.dtype}")
    if mask.dim() > len(scores) or any(
        size not in (1, wanted) for size, wanted in zip(mask.shape[::-1], scores[::-1], strict=False)
    ):
        raise ValueError(f"mask must be broadcastable to {scores}, one entry a query and key, not {tuple(mask.shape)}")


def padding_mask(attention_mask: Tensor) -> Tensor:
    """The mask (batch, 1, 1, n) that `attention` takes, from the field's (batch, n): 1 a real token, 0 padding.

    Raises:
        TypeError: when the mask is no tensor.
        ValueError: when it is not two-dimensional or holds anything but 0 and 1.
    """
    keep = check_mask(attention_mask)
    if keep.dim() != 2:
        raise ValueError(f"attention_mask must be (batch, n), not {tuple(keep.shape)}")
    return keep[:, None, None, :]


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """The mask (n, n) under which a token attends to itself and to those before it (Vaswani et al., 3.2.3).

    Raises:
        TypeError: when n is no integer.
        ValueError: when it is negative.
    """
    if check_integer("n", n) < 0:
        raise ValueError(f"n must not be negative, not {n}")
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def rotary_angles(position_ids: Tensor, head_dim: int, base: float = 10000.0) -> Tensor:
    """The angles (..., d_k / 2), in radians, by which `rotate` turns a query or key at each position (...).

    Pair i turns by base^(-2 i / d_k) a position (Su et al. 2021, section 3.2.2).

    Raises:
        TypeError: when position_ids are no tensor, head_dim is no integer or base no number.
        ValueError: when head_dim is not even and positive, or base not positive.
    """
    check_tensor("position_ids", position_ids)
    if check_integer("head_dim", head_dim) < 2 or head_dim % 2:
        raise ValueError(f"head_dim must be even and positive, for its components turn in pairs, not {head_dim}")
    if not check_number("base", base) > 0:
        raise ValueError(f"base must be positive, not {base}")
    pair = torch.arange(head_dim // 2, device=position_ids.device, dtype=torch.float64)
    return position_ids[..., None] * base ** (-2 * pair / head_dim)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn the pairs of components (i, i + d_k / 2) of x, (..., d_k), by angles that broadcast to (..., d_k / 2).

    The inner product of a query and a key that were turned depends on their positions through the difference alone
    (Su et al. 2021, section 3.4). Which components make a pair is a matter of convention; this is the common one.

    Raises:
        TypeError: when x is no floating-point tensor.
        ValueError: when it does not have twice as many components as there are angles.
    """
    if not check_tensor("x", x).is_floating_point():
        raise TypeError(f"x must be floating-point, not {x.dtype}")
    if x.shape[-1] != 2 * angles.shape[-1]:
        raise ValueError(f"x must have two components for each of {angles.shape[-1]} angles, not {x.shape[-1]}")
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each through its own projections, joined and mapped back (Vaswani et al., 3.2.2).

    The h projections W_Q^h, each (d_k, d), are stored stacked as one linear map `query` of (d, d); so are keys and
    values. `output` is W_O. A call takes a padded batch; `packed` takes the tokens alone, and is what the layers of the
    encoder use: in a model, set a forward hook on `query`, `key`, `value` or `output`, for torch calls those of a
    module only when the module itself is called.
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        check_config(config)
        self.num_heads = config.num_attention_heads
        self.head_dim = config.head_dim
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout_p = config.attention_probs_dropout_prob
        self.causal = config.is_decoder
        self.rotary = config.position_embedding_type == "rotary"

    def split_heads(self, x: Tensor) -> Tensor:
        """(batch, n, d) to (batch, h, n, d_k), head i taking the components from i d_k up to (i + 1) d_k."""
        batch, n, d = x.shape
        return x.view(batch, n, self.num_heads, d // self.num_heads).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """(batch, h, n, d_k) to (batch, n, d)."""
        return x.transpose(1, 2).flatten(2)

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, output_attentions: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """The new hidden states, (batch, n, d), and on request the weights, (batch, h, n, n).

        Args:
            hidden_states: (batch, n, d).
            attention_mask: (batch, n), 1 for a real token and 0 for padding.
            output_attentions: take the spelled-out form, which has the weights (before dropout) to give.

        Raises:
            TypeError: when one of them is no tensor.
            ValueError: when the hidden states are not (batch, n, d) or the mask does not fit them.
        """
        check_tensor("hidden_states", hidden_states)
        if hidden_states.dim() != 3 or hidden_states.shape[-1] != self.query.in_features:
            raise ValueError(
                f"hidden_states must be (batch, n, {self.query.in_features}), not {tuple(hidden_states.shape)}"
            )
        if (
            attention_mask is not None
            and check_tensor("attention_mask", attention_mask).shape != hidden_states.shape[:2]
        ):
            raise ValueError(
                f"attention_mask must be (batch, n), here {tuple(hidden_states.shape[:2])}, "
                f"not {tuple(attention_mask.shape)}"
            )
        n = hidden_states.shape[1]
        query = self.split_heads(self.query(hidden_states))
        key = self.split_heads(self.key(hidden_states))
        value = self.split_heads(self.value(hidden_states))
        if self.rotary:
            angles = rotary_angles(torch.arange(n, device=query.device), self.head_dim)
            query, key = rotate(query, angles), rotate(key, angles)
        mask = None if attention_mask is None else padding_mask(attention_mask)
        if self.causal:
            causal = causal_mask(n, query.device)
            mask = causal if mask is None else mask & causal
        dropout_p = self.dropout_p if self.training else 0.0
        if output_attentions:
            heads, weights = attention(query, key, value, mask, dropout_p=dropout_p)
        else:
            heads, weights = fused_attention(query, key, value, mask, dropout_p=dropout_p), None
        return self.output(self.join_heads(heads)), weights

    def packed(
        self,
        hidden_states: Tensor,
        lengths: list[int],
        angles: Tensor | None = None,
        weigh: bool = False,
        rows: Tensor | None = None,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The same on tokens alone: a sequence attends to itself, so no mask is needed and no padding computed.

        Neighbours of equal length share one call of the kernel.

        Args:
            hidden_states: (tokens, d), sequence after sequence.
            lengths: how many tokens each sequence has; their sum is the number of tokens.
            angles: (tokens, d_k / 2), by which queries and keys are turned first (`rotary_angles`); a rotary layer
                needs them.
            weigh: take the spelled-out form, and give back what it writes out.
            rows: (rows,), the tokens whose new hidden state is wanted; all unless given.

        Returns:
            The new hidden states (tokens, d), or (rows, d); the weights (h, length, length), before dropout, of each
            sequence; and the scores that they are the softmax of, before any mask. The two lists are empty unless
            `weigh`.

        Raises:
            ValueError: when hidden_states are not (tokens, d), the lengths do not add up to the tokens, or angles are
                given to a layer that is not rotary, or missing where it is.
        """
        if check_tensor("hidden_states", hidden_states).dim() != 2:
            raise ValueError(f"hidden_states must be (tokens, d), not {tuple(hidden_states.shape)}")
        tokens, d = hidden_states.shape
        if sum(lengths) != tokens:
            raise ValueError(f"lengths must add up to the tokens, {tokens}, not to {sum(lengths)}")
        if (angles is None) == self.rotary:
            raise ValueError(f"angles must {'' if self.rotary else 'not '}be given: position_embedding_type says so")
        together = runs(lengths)
        dropout_p = self.dropout_p if self.training else 0.0

        def heads(x: Tensor) -> list[Tensor]:  # of each run: (count, h, length, d_k)
            parts = x.split([count * length for count, length in together])
            shapes = [(count, length, self.num_heads, self.head_dim) for count, length in together]
            return [part.view(shape).transpose(1, 2) for part, shape in zip(parts, shapes, strict=True)]

        query, key, value = self.query(hidden_states), self.key(hidden_states), self.value(hidden_states)
        if angles is not None:
            per_head = (tokens, self.num_heads, self.head_dim)
            query, key = (rotate(x.view(per_head), angles[:, None]).flatten(1) for x in (query, key))
        outputs, weights, scores = [], [], []
        for q, k, v in zip(heads(query), heads(key), heads(value), strict=True):
            if weigh:
                s = attention_scores(q, k)
                a = attention_weights(s, causal_mask(q.shape[2], q.device) if self.causal else None)
                z = F.dropout(a, dropout_p) @ v
                weights.extend(a)
                scores.extend(s)
            else:
                z = _kernel(q, k, v, dropout_p=dropout_p, is_causal=self.causal)
            outputs.append(z.transpose(1, 2).reshape(-1, d))
        if not outputs:  # no sequence has a token
            outputs = [value]
        joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return self.output(joined if rows is None else joined[rows]), weights, scores
