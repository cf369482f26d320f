"""checkpoints: safetensors in and out, published names, and files that are not what they seem."""

import errno
import json
import pickle
import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertlib import checkpoints, datasets
from bertlib.checkpoints import CheckpointError, load, published_names, read_safetensors, write_safetensors

SIZES = {
    "vocab_size": 11,
    "hidden_size": 4,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "max_position_embeddings": 6,
}


def some_tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "matrix": torch.randn(3, 4, generator=generator),
        "half": torch.randn(5, generator=generator).to(torch.bfloat16),
        "ids": torch.arange(6).reshape(1, 6),
        "mask": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 3),
    }


def embeddings(prefix: str = "") -> dict[str, torch.Tensor]:
    return {
        f"{prefix}embeddings.word_embeddings.weight": torch.ones(11, 4),
        f"{prefix}embeddings.position_embeddings.weight": torch.ones(6, 4),
        f"{prefix}embeddings.token_type_embeddings.weight": torch.ones(2, 4),
    }


def assert_same(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape, name
        assert torch.equal(found[name], tensor), name


def raw_file(header: dict | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file put together by hand: eight bytes of length, the header in JSON, the numbers."""
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


# Reading


def test_what_is_written_is_read_back(tmp_path):
    write_safetensors(some_tensors(), tmp_path / "weights.safetensors")
    assert_same(read_safetensors(tmp_path / "weights.safetensors"), some_tensors())


def test_a_file_put_together_by_hand_is_read(tmp_path):
    path = tmp_path / "weights"
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"format": "pt"}}
    path.write_bytes(raw_file(header, struct.pack("<2f", 1.5, -2.0)))
    assert_same(read_safetensors(str(path)), {"a": torch.tensor([1.5, -2.0])})


def test_tensors_outlive_a_change_of_their_file(tmp_path):
    path = tmp_path / "weights.safetensors"
    write_safetensors({"a": torch.ones(1000)}, path)
    tensors = read_safetensors(path)
    with path.open("r+b") as file:
        file.truncate(0)
    assert torch.equal(tensors["a"], torch.ones(1000))
    tensors["a"].mul_(2)


def test_a_pickle_is_never_opened(tmp_path):
    class Mine:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "code has run",))

    contents = {
        "zipped.bin": lambda path: torch.save({"a": torch.ones(2)}, path),
        "legacy.pt": lambda path: torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False),
        "mine.safetensors": lambda path: path.write_bytes(pickle.dumps(Mine())),
        "zip.safetensors": lambda path: torch.save({"a": torch.ones(2)}, path),
        "garbage.ckpt": lambda path: path.write_bytes(b"garbage"),
    }
    for name, write in contents.items():
        write(tmp_path / name)
        with pytest.raises(
            CheckpointError, match=rf"{name} is no safetensors file but looks like a pickle.*run any code"
        ):
            read_safetensors(tmp_path / name)
    assert not (tmp_path / "code has run").exists()


def test_safetensors_are_told_from_pickles_by_what_is_in_them(tmp_path):
    header = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode().ljust(0x280)
    content = raw_file(header, b"\x07")
    assert content.startswith(pickle.PROTO + b"\x02"), "begins as a pickle does"
    (tmp_path / "weights").write_bytes(content)
    assert read_safetensors(tmp_path / "weights")["a"].tolist() == [7]
    (tmp_path / "weights").write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match="no whole safetensors file"):
        read_safetensors(tmp_path / "weights")


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\0" * 8,
        raw_file(b"not json"),
        raw_file(b'{"a": '),
        raw_file(b"[]"),
        raw_file(b"\xff\xfe"),
        raw_file({"a": F32}, b"\0" * 8, length=2**63),
        raw_file({"a": F32}, b"\0" * 8, length=2**64 - 1),
        raw_file({"a": F32}, b"\0" * 8, length=3),
        raw_file({"a": F32}, b"\0" * 7),
        raw_file({"a": F32}, b"\0" * 9),
        raw_file({"a": F32 | {"shape": [3]}}, b"\0" * 8),
        raw_file({"a": F32 | {"dtype": "F16"}}, b"\0" * 8),
        raw_file({"a": F32 | {"dtype": "F99"}}, b"\0" * 8),
        raw_file({"a": F32 | {"shape": [-2]}}, b"\0" * 8),
        raw_file({"a": F32 | {"shape": [2**62, 2**62]}}, b"\0" * 8),
        raw_file({"a": F32 | {"shape": [0, 2**62, 8], "data_offsets": [0, 0]}}),
        raw_file({"a": F32 | {"data_offsets": [8, 0]}}, b"\0" * 8),
        raw_file({"a": F32 | {"data_offsets": [0, 2**63]}}, b"\0" * 8),
        raw_file({"a": F32, "b": F32}, b"\0" * 8),
        raw_file({"a": F32, "b": F32 | {"data_offsets": [12, 20]}}, b"\0" * 20),
        raw_file({"a": {"dtype": "F32"}}, b"\0" * 8),
        raw_file({"a": 1}),
    ],
)
def test_a_malformed_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is no whole safetensors file \([\d,]+ bytes\): ."):
        read_safetensors(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"none\.safetensors cannot be read: No such file"):
        read_safetensors(tmp_path / "none.safetensors")
    with pytest.raises(CheckpointError, match=f"{tmp_path.name} cannot be read"):
        read_safetensors(tmp_path)


WHOLE = safetensors.torch.save(some_tensors())
HEADER_END = 8 + struct.unpack("<Q", WHOLE[:8])[0]


def read_content(path: Path, content: bytes) -> dict[str, torch.Tensor] | None:
    """The tensors of these bytes, or None when they are refused."""
    path.write_bytes(content)
    try:
        return read_safetensors(path)
    except CheckpointError as error:
        assert path.name in str(error)
        return None


def test_every_truncation_is_refused(tmp_path):
    for length in range(len(WHOLE)):
        assert read_content(tmp_path / "weights", WHOLE[:length]) is None


@given(damage=st.lists(st.tuples(st.integers(0, HEADER_END - 1), st.integers(0, 255)), min_size=1, max_size=6))
@settings(deadline=2000, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_header_gives_an_error_or_tensors_that_use_up_the_file(tmp_path, damage):
    content = bytearray(WHOLE)
    for place, value in damage:
        content[place] = value
    tensors = read_content(tmp_path / "weights", bytes(content))
    if tensors is not None:
        header = 8 + struct.unpack("<Q", content[:8])[0]
        assert sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) == len(content) - header


@given(content=st.binary(max_size=200) | st.binary(max_size=60).map(lambda data: raw_file(data)))
@settings(deadline=2000, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_hold_no_tensor(tmp_path, content):
    assert not read_content(tmp_path / "weights", content)


@given(
    at=st.integers(0, len(WHOLE)),
    cut=st.integers(0, 40),
    put=st.binary(max_size=40),
)
@settings(deadline=2000, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_piece_cut_out_or_put_in_is_never_half_read(tmp_path, at, cut, put):
    tensors = read_content(tmp_path / "weights", WHOLE[:at] + put + WHOLE[at + cut :])
    assert tensors is None or tensors.keys() == some_tensors().keys() or at < HEADER_END


# Writing


def test_tied_and_strided_tensors_are_written_whole(tmp_path):
    table = torch.randn(5, 4)
    tensors = {"embedding": table, "decoder": table, "transposed": table.T, "row": table[2], "grad": table.clone()}
    tensors["grad"].requires_grad_()
    write_safetensors(tensors, tmp_path / "weights.safetensors")
    assert_same(read_safetensors(tmp_path / "weights.safetensors"), {k: v.detach() for k, v in tensors.items()})


def test_the_reference_library_reads_what_is_written(tmp_path):
    write_safetensors(some_tensors(), tmp_path / "weights.safetensors")
    assert_same(safetensors.torch.load_file(tmp_path / "weights.safetensors"), some_tensors())
    with safetensors.safe_open(tmp_path / "weights.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    write_safetensors(some_tensors(), tmp_path / "a")
    write_safetensors(dict(reversed(some_tensors().items())), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_folders_are_made_and_an_old_file_is_replaced(tmp_path):
    path = tmp_path / "runs" / "first" / "model.safetensors"
    for value in (1.0, 2.0):
        write_safetensors({"a": torch.full((2,), value)}, path)
    assert read_safetensors(path)["a"].tolist() == [2.0, 2.0]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("broken", ["os.fsync", "pathlib.Path.replace"])
def test_the_old_file_survives_a_failure(tmp_path, monkeypatch, broken):
    path = tmp_path / "model.safetensors"
    write_safetensors({"a": torch.ones(2)}, path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(broken, fail)
    with pytest.raises(OSError, match="No space left"):
        write_safetensors({"a": torch.zeros(2000)}, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_old_file_is_there_while_the_new_one_is_written(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    write_safetensors({"a": torch.ones(2)}, path)
    seen = []
    monkeypatch.setattr("os.fsync", lambda file: seen.append(read_safetensors(path)["a"].tolist()))
    write_safetensors({"a": torch.zeros(2)}, path)
    assert seen == [[1.0, 1.0]]
    assert read_safetensors(path)["a"].tolist() == [0.0, 0.0]


def test_what_cannot_be_written_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    with pytest.raises(TypeError, match="must map strings to tensors, not 'a' to list"):
        write_safetensors({"a": [1.0]}, path)
    with pytest.raises(TypeError, match="must map strings to tensors, not 3 to Tensor"):
        write_safetensors({3: torch.ones(1)}, path)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: a is torch\.sparse_coo"):
        write_safetensors({"a": torch.eye(2).to_sparse()}, path)
    with pytest.raises(CheckpointError, match=r"a is torch\.strided on meta"):
        write_safetensors({"a": torch.ones(2, device="meta")}, path)
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be written"):
        write_safetensors({"a": torch.ones(2, dtype=torch.complex128)}, path)
    assert list(tmp_path.iterdir()) == []


# Published names


def test_published_names():
    stored = [
        "bert.embeddings.word_embeddings.weight",
        "bert.embeddings.LayerNorm.gamma",
        "bert.encoder.layer.0.output.LayerNorm.beta",
        "module.bert.pooler.dense.bias",
        "module.cls.predictions.bias",
        "cls.predictions.transform.LayerNorm.gamma",
        "bert.bert.strange",
        "embeddings.position_ids",
        "bert.embeddings.position_ids",
        "encoder.layer.1.attention.self.query.weight",
    ]
    named = published_names({name: torch.tensor(i) for i, name in enumerate(stored)})
    assert {name: int(tensor) for name, tensor in named.items()} == {
        "embeddings.word_embeddings.weight": 0,
        "embeddings.LayerNorm.weight": 1,
        "encoder.layer.0.output.LayerNorm.bias": 2,
        "pooler.dense.bias": 3,
        "cls.predictions.bias": 4,
        "cls.predictions.transform.LayerNorm.weight": 5,
        "bert.strange": 6,
        "encoder.layer.1.attention.self.query.weight": 9,
    }


def test_two_tensors_of_one_name_are_refused():
    with pytest.raises(CheckpointError, match=r"two tensors are pooler\.dense\.bias; .* stored as bert\.pooler"):
        published_names({"pooler.dense.bias": torch.ones(1), "bert.pooler.dense.bias": torch.ones(1)})


# Whole checkpoints


def write_checkpoint(folder: Path, tensors: dict, **changes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SIZES | changes), encoding="utf-8")
    write_safetensors(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("prefix", ["", "bert.", "module.bert."])
def test_load_a_folder(tmp_path, prefix):
    folder = write_checkpoint(tmp_path, embeddings(prefix) | {"cls.predictions.bias": torch.zeros(11)})
    for place in (folder, str(folder)):
        config, tensors = load(place)
        assert config.hidden_size == 4 and config.head_dim == 2
        assert_same(tensors, embeddings() | {"cls.predictions.bias": torch.zeros(11)})


def test_load_by_name_goes_through_the_registry(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, embeddings())
    files = {"bert-tiny-config": "config.json", "bert-tiny-weights": "model.safetensors"}
    monkeypatch.setattr(datasets, "fetch", lambda name: tmp_path / files[name])
    assert load("bert-tiny")[0].vocab_size == 11
    assert {f"{name}-{part}" for name in checkpoints.MODELS for part in ("config", "weights")} <= set(datasets.names())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 12}, r"word_embeddings\.weight must be \(vocab_size, hidden_size\) = \(12, 4\).*not \(11, 4\)"),
        ({"hidden_size": 6}, r"word_embeddings\.weight must be .* = \(11, 6\).*not \(11, 4\)"),
        ({"max_position_embeddings": 5}, r"position_embeddings\.weight must be .* = \(5, 4\).*not \(6, 4\)"),
        ({"type_vocab_size": 1}, r"token_type_embeddings\.weight must be .* = \(1, 4\).*not \(2, 4\)"),
    ],
)
def test_embeddings_that_do_not_fit_their_configuration(tmp_path, changes, message):
    with pytest.raises(CheckpointError, match=r"model\.safetensors: embeddings\." + message):
        load(write_checkpoint(tmp_path, embeddings(), **changes))


def test_a_missing_table_a_missing_file_and_a_missing_folder(tmp_path):
    tensors = embeddings()
    del tensors["embeddings.position_embeddings.weight"]
    folder = write_checkpoint(tmp_path / "some", tensors)
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors: there is no embeddings\.position_embeddings\.weight"
    ):
        load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing$"):
        load(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing; there is pytorch_model\.bin$"):
        load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json is missing$"):
        load(folder)
    with pytest.raises(CheckpointError, match=r"source must be one of minilm, bert-tiny, a folder .*, not 'bert-base'"):
        load("bert-base")
    (folder / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"config\.json is neither: give its folder"):
        load(folder / "config.json")
    for wrong in (None, 5, ["minilm"], ""):
        with pytest.raises(TypeError, match="source must be a name or a path, not"):
            load(wrong)


@pytest.mark.parametrize("text", ["{", "[]", '{"hidden_size": "wide"}', '{"hidden_size": 5}', '{"hidden_act": "tanh"}'])
def test_a_configuration_that_no_bert_has_is_named(tmp_path, text):
    write_checkpoint(tmp_path, embeddings())
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"config\.json is no BERT configuration: .*"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "layers", "parameters", "heads"), [("minilm", 6, 22_713_216, 12), ("bert-tiny", 2, 4_416_698, 2)]
)
def test_the_real_checkpoints(name, layers, parameters, heads):
    config, tensors = load(name)
    assert (config.num_hidden_layers, config.num_attention_heads) == (layers, heads)
    assert sum(tensor.numel() for tensor in tensors.values()) == parameters
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float32}
    assert tensors[f"encoder.layer.{layers - 1}.output.LayerNorm.weight"].shape == (config.hidden_size,)
    assert all(name.startswith(("embeddings.", "encoder.layer.", "pooler.", "cls.")) for name in tensors)
    assert ("cls.predictions.bias" in tensors) == (name == "bert-tiny")
