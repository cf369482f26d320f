"""Linear maps through oneDNN with weights packed once: torch's own operator for it, which is private.

torch packs a weight into the blocks that the product reads at every call. For inference it can be packed once. The
operator has no gradient, is not part of torch's public interface and may go with any version; where it is missing, the
model runs as it is. Everything that knows of it is in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertlib.encoder import FeedForward


def available() -> bool:
    """Whether this torch has the two operators, and oneDNN behind them."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise")
    )


@contextmanager
def packed_linears(model: nn.Module) -> Iterator[int]:
    """A block in which the model's linear maps read packed copies of their weights; gives how many do.

    Packed are the float32 weights that lie on the CPU; the copies take as much memory again, and making them takes
    about as long as reading the weights, so keep the block open. GELU is taken along with the map before it. A weight
    that is changed within the block is no longer read from its copy. Where gradients are switched on, and under
    autocast, the map runs as it always does.
    """
    linears = [module for module in model.modules() if _fits(module)] if available() else []
    forwards = {module: _packed_forward(module) for module in linears}
    for module in model.modules():
        if isinstance(module, FeedForward) and module.activation is F.gelu and module.inner in forwards:
            forwards[module] = _fused_feed_forward(module)
    try:
        for module, forward in forwards.items():
            module.forward = forward
        yield len(linears)
    finally:
        for module in forwards:
            module.__dict__.pop("forward", None)


def _fits(module: nn.Module) -> bool:
    if type(module) is not nn.Linear:
        return False
    weight = module.weight
    return weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.numel() > 0


def _packed_forward(linear: nn.Linear, then_gelu: bool = False) -> Callable[[Tensor], Tensor]:
    """The linear map by its packed weight, and GELU on each number of the result before it leaves the processor."""
    weight, version = linear.weight, linear.weight._version
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
    after = "gelu" if then_gelu else "none"

    def forward(x: Tensor) -> Tensor:
        as_packed = linear.weight is weight and weight._version == version
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or x.dtype != torch.float32 or not as_packed:
            y = F.linear(x, linear.weight, linear.bias)
            return F.gelu(y) if then_gelu else y
        return torch.ops.mkldnn._linear_pointwise(x, packed, linear.bias, after, [], "none" if then_gelu else "")

    return forward


def _fused_feed_forward(module: FeedForward) -> Callable[[Tensor], Tensor]:
    inner = _packed_forward(module.inner, then_gelu=True)
    return lambda x: module.outer(inner(x))
