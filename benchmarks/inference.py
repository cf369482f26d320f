"""Hidden states of BERT-base: bertlib beside transformers, onnxruntime, CTranslate2 and OpenVINO.

All have the same random weights. A peer gets the batch as it comes, padded, and once more as a careful caller would
hand it over: sorted by length and cut into batches of eight, each padded to its own longest; sorting is not timed. Ours
gets the batch as it comes. What is counted is real tokens, not padding.
"""

from __future__ import annotations

import argparse
import copy
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from benchmarks.timing import Times, interleave, one_thread, table, write_section

one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from torch import Tensor  # noqa: E402

from bertlib import Bert, fast_matmul  # noqa: E402
from bertlib.batching import bucket_by_length, pad, padding_share  # noqa: E402
from bertlib.onednn import packed_linears  # noqa: E402

CASES = {
    "1 x 128": [128],
    "8 x 128": [128] * 8,
    "32 of 8-256": np.random.default_rng(0).integers(8, 257, 32).tolist(),
}
EXACT, HALF = 1e-4, 5e-2  # how far an answer may lie off, as a share of the largest number; in float32 and in bfloat16
BASE = "transformers"
PACKAGES = ("torch", "transformers", "onnx", "onnxruntime", "ctranslate2", "openvino")

Encode = Callable[[Tensor, Tensor], object]  # ids and mask, both (batch, n), to what `to_tensor` reads


@dataclass
class Candidate:
    """Something to time: `prepare` is not timed, `encode` is, `to_tensor` takes its answer to (batch, n, d)."""

    encode: Callable
    prepare: Callable[[Tensor, Tensor], object] = lambda ids, mask: (ids, mask)
    to_tensor: Callable[[object], Tensor] = lambda output: output.last_hidden_state
    tolerance: float = EXACT


class Wrapper(torch.nn.Module):
    """The reference with one output and its inputs in order, as the exporter wants it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.model(input_ids, attention_mask, token_type_ids).last_hidden_state


def reference(layers: int, **sizes) -> transformers.BertModel:
    """transformers' BERT with random weights, its fused attention, and without dropout."""
    torch.manual_seed(0)
    config = transformers.BertConfig(num_hidden_layers=layers, attn_implementation="sdpa", **sizes)
    return transformers.BertModel(config, add_pooling_layer=False).eval()


def batch_of(lengths: list[int], vocab_size: int) -> list[Tensor]:
    """A random sequence of ids for each length."""
    generator = np.random.default_rng(1)
    return [torch.from_numpy(generator.integers(5, vocab_size, length)) for length in lengths]


def bfloat16():
    return torch.autocast("cpu", dtype=torch.bfloat16)


@contextmanager
def medium() -> Iterator[None]:
    """The setting that `fast_matmul` makes, for the peer."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def torch_candidate(model, context=nullcontext, tolerance=EXACT) -> Candidate:
    def encode(inputs):
        with torch.no_grad(), context():
            return model(*inputs)

    return Candidate(encode, tolerance=tolerance)


def export(model: transformers.BertModel, path: Path) -> None:
    """The reference as an ONNX file, its attention in the form that onnxruntime fuses."""
    ids = torch.ones(2, 8, dtype=torch.long)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    model.set_attn_implementation("eager")
    torch.onnx.export(
        Wrapper(model).eval(),  # the exporter puts all back into the mode of the outermost module
        (ids, torch.ones_like(ids), torch.zeros_like(ids)),  # three tensors: the tracer takes one for one input
        str(path),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "n"} for name in [*names, "last_hidden_state"]},
        opset_version=17,
        dynamo=False,
    )
    model.set_attn_implementation("sdpa")


def feed(ids: Tensor, mask: Tensor) -> dict[str, np.ndarray]:
    return {
        "input_ids": ids.numpy(),
        "attention_mask": mask.numpy(),
        "token_type_ids": torch.zeros_like(ids).numpy(),
    }


def onnxruntime_candidate(model: transformers.BertModel, folder: Path) -> Candidate:
    import onnxruntime

    export(model, folder / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    return Candidate(lambda inputs: session.run(None, inputs)[0], feed, torch.from_numpy)


def openvino_candidate(model: transformers.BertModel, folder: Path) -> Candidate:
    import openvino

    if not (folder / "model.onnx").exists():
        export(model, folder / "model.onnx")
    exact = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    compiled = openvino.Core().compile_model(str(folder / "model.onnx"), "CPU", exact)
    return Candidate(lambda inputs: compiled(inputs)[0], feed, lambda output: torch.from_numpy(np.array(output)))


def ctranslate2_candidate(model: transformers.BertModel, folder: Path) -> Candidate:
    import ctranslate2

    model.config.position_embedding_type = "absolute"  # the converter asks for it; transformers 5 no longer says it
    source = folder / "source"
    model.save_pretrained(source)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"w{number}" for number in range(len(special), model.config.vocab_size)]
    (source / "vocab.txt").write_text("\n".join(words) + "\n")
    (source / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    ctranslate2.converters.TransformersConverter(str(source)).convert(str(folder / "ctranslate2"))
    encoder = ctranslate2.Encoder(
        str(folder / "ctranslate2"), device="cpu", compute_type="float32", inter_threads=1, intra_threads=1
    )

    def lists(ids: Tensor, mask: Tensor) -> list[list[int]]:  # it takes the padding out by itself
        return [row[:length].tolist() for row, length in zip(ids, mask.sum(dim=1).tolist(), strict=True)]

    def to_tensor(output) -> Tensor:
        return torch.from_numpy(np.array(output.last_hidden_state))

    return Candidate(encoder.forward_batch, lists, to_tensor)


BUILDERS = {
    "onnxruntime": onnxruntime_candidate,
    "CTranslate2": ctranslate2_candidate,
    "OpenVINO": openvino_candidate,
}


def build(
    model: transformers.BertModel, folder: Path, peers: list[str], held_open: ExitStack
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """The candidates by name, and of each peer that could not be built, why; what stays open closes with the stack."""
    model.save_pretrained(folder / "ours")
    ours = Bert.from_pretrained(folder / "ours")
    candidates, missing = {BASE: torch_candidate(model)}, {}
    for name in peers:
        try:
            candidates[name] = BUILDERS[name](model, folder)
        except Exception as error:  # each has its own, and the table says which
            missing[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
    candidates[f"{BASE}, medium"] = torch_candidate(model, medium)
    candidates[f"{BASE}, bf16 autocast"] = torch_candidate(model, bfloat16, HALF)
    candidates["**bertlib**"] = torch_candidate(ours)
    candidates["**bertlib, fast_matmul()**"] = torch_candidate(ours, fast_matmul)
    packed = copy.deepcopy(ours)
    held_open.enter_context(packed_linears(packed))
    candidates["**bertlib, fast_matmul(pack=model)**"] = torch_candidate(packed, fast_matmul)
    candidates["**bertlib, bf16 autocast**"] = torch_candidate(ours, lambda: fast_matmul(bf16=True), HALF)
    return candidates, missing


def calls(candidates: dict[str, Candidate], sequences: list[Tensor], size: int = 8) -> dict[str, Callable[[], object]]:
    """What is timed, by name, after its answers were held against those of the reference.

    Raises:
        AssertionError: when an answer is wrong; the message says whose, and by how much.
    """
    lengths = [len(sequence) for sequence in sequences]
    whole = [list(range(len(sequences)))]
    buckets = bucket_by_length(lengths, batch_size=min(size, len(lengths)))
    layouts = {"": whole}
    if max(lengths) > min(lengths):
        layouts[f", sorted in {size}s"] = buckets
    expected, timed = None, {}
    for name, candidate in candidates.items():
        for suffix, batches in layouts.items():
            if suffix and "bertlib" in name:
                continue  # it has nothing to gain from it
            prepared = [candidate.prepare(*pad([sequences[i] for i in batch])) for batch in batches]

            def call(encode=candidate.encode, prepared=prepared):
                return [encode(inputs) for inputs in prepared]

            found = {}
            for batch, output in zip(batches, call(), strict=True):
                for i, row in zip(batch, candidate.to_tensor(output), strict=True):
                    found[i] = row[: lengths[i]].float()
            expected = expected or found
            largest = max(float(row.abs().max()) for row in expected.values())
            error = max(float((found[i] - expected[i]).abs().max()) for i in expected) / largest
            if not error <= candidate.tolerance:
                raise AssertionError(f"{name}{suffix} is off by {error:.1e} of the largest number: it is not timed")
            timed[name + suffix] = call
    return timed


def product_peak(rounds: int = 5, size: int = 2048) -> dict[str, float]:
    """Matrix products of this machine, one thread, in GFLOP/s of processor time, by setting; the best of the rounds."""
    a, b = torch.randn(2, size, size).unbind(0)
    contexts = {"default": nullcontext, "medium": medium, "bf16": bfloat16}

    def product(context):
        with context():
            return a @ b

    times = interleave({name: lambda c=context: product(c) for name, context in contexts.items()}, rounds)
    return {name: 2 * size**3 / min(seconds) / 1e9 for name, seconds in times.cpu.items()}


def floating_operations(model: transformers.BertModel, lengths: list[int]) -> float:
    """Of the matrix products of one pass over the real tokens."""
    c = model.config
    linear = sum(lengths) * (4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size)
    attention = 2 * c.hidden_size * sum(length**2 for length in lengths)
    return 2.0 * c.num_hidden_layers * (linear + attention)


def rows(times: Times, peak: dict[str, float], operations: float, tokens: int) -> Iterator[list[str]]:
    sorted_base = next((name for name in times.cpu if name.startswith(f"{BASE}, sorted")), None)
    best = max(peak["default"], peak["medium"])
    for name, seconds in times.cpu.items():
        share = operations / statistics.median(seconds) / 1e9 / (peak["bf16"] if "bf16" in name else best)
        yield [
            name,
            times.speedup(name, BASE),
            times.speedup(name, BASE, wall=True),
            times.speedup(name, sorted_base) if sorted_base else "",
            f"{tokens / statistics.median(seconds):,.0f}",
            f"{share:.0%}",
        ]


def main(arguments: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--peers", nargs="*", default=list(BUILDERS), choices=list(BUILDERS))
    parser.add_argument("--dry", action="store_true", help="print the tables, and leave results.md as it is")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = reference(options.layers)
    sections = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as held_open:
        candidates, missing = build(model, Path(folder), options.peers, held_open)
        for case in options.case:
            lengths = CASES[case]
            peak = product_peak()
            times = interleave(calls(candidates, batch_of(lengths, model.config.vocab_size)), options.rounds, False)
            columns = ["", "processor time", "wall", "against sorted", "tokens/s", "of the peak"]
            real = 1 - padding_share(lengths, [range(len(lengths))])
            operations = floating_operations(model, lengths)
            body = (
                f"{options.layers} layers of BERT-base's width, {case}: {sum(lengths):,} real tokens, {real:.0%} of "
                f"the padded batch. Times as fast as {BASE} as the batch comes, in the same round: median of "
                f"{options.rounds} rounds (quartiles). Peak of matrix products: "
                + ", ".join(f"{name} {speed:.0f}" for name, speed in peak.items())
                + " GFLOP/s.\n\n"
                + table(columns, rows(times, peak, operations, sum(lengths)))
                + "".join(f"\n\n{name} is not in the table: {why}." for name, why in missing.items())
            )
            command = "python -m benchmarks.inference " + shlex.join(
                arguments if arguments is not None else sys.argv[1:]
            )
            title = f"Inference, {case}"
            sections.append(body if options.dry else write_section(title, body, command.strip(), PACKAGES))
            print(sections[-1], flush=True)
    return "\n".join(sections)


if __name__ == "__main__":
    main()
