"""Faster and less exact matrix products, for inference, switched on by hand and off again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from bertlib.onednn import packed_linears

log = logging.getLogger("bertlib")


@contextmanager
def fast_matmul(*, bf16: bool = False, device_type: str = "cpu", pack: nn.Module | None = None) -> Iterator[None]:
    """A block in which matrix products take torch's faster path, without gradients; the setting is restored at its end.

    By itself it sets `torch.set_float32_matmul_precision("medium")`, under which torch picks another backend on a CPU
    (oneDNN) and, on chips with units for it, bfloat16 products. The setting belongs to the process: another thread is
    under it too while the block lasts, and blocks of two threads that overlap restore each other's setting.

    What it gains depends on the chip and on how busy it is: `benchmarks/results.md` has what was measured. On the
    sentence vectors of 396 real sentences (minilm, one thread of an AMD Zen 4 with avx512_bf16) the relative error was
    at most 2.1e-6; with `bf16` at most 1.1e-2, and the cosine between a vector and the exact one at least 0.9999.

    Args:
        bf16: also run linear maps and attention in bfloat16 (`torch.autocast`), which pays where the chip has
            instructions for it.
        device_type: of the tensors that are multiplied, for `bf16`.
        pack: a model whose weights are laid out once, at the start, in the order in which the product reads them
            (`bertlib.onednn`); they take their memory twice while the block lasts. Without effect with `bf16`, and, as
            the log says, where no map can be packed: not in float32 or not on the CPU.

    Raises:
        TypeError: when bf16 is no truth value, device_type no string, or pack no module.
        ValueError: when torch knows no such device_type, or none with lower precision.
    """
    if not isinstance(bf16, bool):
        raise TypeError(f"bf16 must be True or False, not {bf16!r}")
    if not isinstance(device_type, str):
        raise TypeError(f'device_type must be a string such as "cpu" or "cuda", not {device_type!r}')
    if pack is not None and not isinstance(pack, nn.Module):
        raise TypeError(f"pack must be a model, a torch.nn.Module, not a {type(pack).__name__}")
    try:
        torch.device(device_type)
        lower = torch.autocast(device_type, dtype=torch.bfloat16) if bf16 else nullcontext()
    except RuntimeError as error:
        raise ValueError(f'device_type must be "cpu", "cuda" or another of torch, not {device_type!r}') from error
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.no_grad(), lower, nullcontext() if pack is None or bf16 else packed_linears(pack) as packed:
            if packed == 0:
                log.warning("fast_matmul: pack is given, but no linear map of the model can be packed")
            yield
    finally:
        torch.set_float32_matmul_precision(before)
