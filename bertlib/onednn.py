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

from bertlib.encoder import FeedForward, has_hooks


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
    that is changed within the block is no longer read from its copy, unless it is changed through `.data` or numpy,
    where no one can see it. Where gradients are switched on, and under autocast, the map runs as it always does. A copy
    of the model made within the block is a model like any other.
    """
    linears = [module for module in model.modules() if _fits(module)] if available() else []
    forwards: dict[nn.Module, _Forward] = {module: PackedLinear(module) for module in linears}
    for module in model.modules():
        found = isinstance(module, FeedForward) and module.inner in forwards and not _is_patched(module)
        if found and _may_be_fused(module):
            forwards[module] = FusedFeedForward(module, forwards[module.inner])
    try:
        for module, forward in forwards.items():
            module.forward = forward
        yield sum("forward" in vars(module) and isinstance(module.forward, PackedLinear) for module in model.modules())
    finally:
        for module in forwards:
            module.__dict__.pop("forward", None)


def _fits(module: nn.Module) -> bool:
    if type(module) is not nn.Linear or _is_patched(module):
        return False
    weight = module.weight
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.numel() > 0
        and not weight.is_inference()  # whose changes torch does not count
    )


def _is_patched(module: nn.Module) -> bool:
    """Whether somebody has put another `forward` in the place of the class's own."""
    forward = vars(module).get("forward")
    return forward is not None and getattr(forward, "__func__", None) is not type(module).forward


def _may_be_fused(module: FeedForward) -> bool:
    return module.activation is F.gelu and not has_hooks(module.inner)


class _Forward:
    """What stands in a module's place for `forward` during the block. The copy of a module gets its own back."""

    def __init__(self, module: nn.Module):
        self.module = module

    def __deepcopy__(self, memo: dict) -> Callable:
        copied = memo[id(self.module)]
        return type(copied).forward.__get__(copied)

    def __reduce__(self):
        raise TypeError("a model cannot be pickled within a packed_linears block: leave it first")


class PackedLinear(_Forward):
    """The linear map by its packed weight, and on request GELU on each number before it leaves the processor."""

    def __init__(self, linear: nn.Linear):
        super().__init__(linear)
        self.weight, self.version = linear.weight, linear.weight._version
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())

    def __call__(self, x: Tensor, then_gelu: bool = False) -> Tensor:
        weight, bias = self.module.weight, self.module.bias
        as_packed = weight is self.weight and weight._version == self.version and x.shape[-1:] == weight.shape[1:]
        if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or x.dtype != torch.float32 or not as_packed:
            y = F.linear(x, weight, bias)
            return F.gelu(y) if then_gelu else y
        after = ("gelu", [], "none") if then_gelu else ("none", [], "")
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, bias, *after)


class FusedFeedForward(_Forward):
    """The feed-forward network with GELU taken along with the map before it, for as long as its parts stay as found."""

    def __init__(self, module: FeedForward, inner: PackedLinear):
        super().__init__(module)
        self.inner = inner

    def __call__(self, x: Tensor) -> Tensor:
        module = self.module
        if vars(module.inner).get("forward") is not self.inner or not _may_be_fused(module):
            return type(module).forward(module, x)
        return module.outer(self.inner(x, then_gelu=True))
