"""What tensors given as arguments must be: the checks that several files need."""

from __future__ import annotations

import torch
from torch import Tensor


def check_tensor(name: str, given: object) -> Tensor:
    """What was given, if it is a tensor.

    Raises:
        TypeError: when it is none; with the argument's name and the type that came.
    """
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a tensor, not a {type(given).__name__}")
    return given


def check_integers(name: str, given: object) -> Tensor:
    """A tensor of integers of any type, as int64; unsigned ones, which cannot hold a -100, are widened by this.

    Raises:
        TypeError: when it is no tensor, or not of integers.
    """
    tensor = check_tensor(name, given)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(f"{name} must be integers, not {tensor.dtype}")
    return tensor.long()


def check_mask(attention_mask: object) -> Tensor:
    """An attention mask of ones (tokens) and zeros (padding), of any type, as booleans.

    Raises:
        TypeError: when it is no tensor.
        ValueError: when it holds anything else.
    """
    mask = check_tensor("attention_mask", attention_mask)
    keep = mask.bool()
    if not torch.equal(keep.to(mask.dtype), mask):
        raise ValueError("attention_mask must hold only 1 (a token) and 0 (padding)")
    return keep
