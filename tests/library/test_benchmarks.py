"""The benchmarks run, at tiny sizes, and refuse to time a wrong answer."""

import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from benchmarks import import_time, inference, timing, tokenization, training
from bertlib import datasets

ROOT = Path(__file__).resolve().parents[2]
TINY = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 32,
}


def test_candidates_take_turns_and_each_is_called_once_a_round():
    called = []
    times = timing.interleave({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, rounds=3)
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"
    assert len(times.cpu["a"]) == len(times.wall["b"]) == 3


def test_a_candidate_that_works_twice_as_long_is_half_as_fast():
    numbers = range(50_000)
    times = timing.interleave({"once": lambda: sum(numbers), "twice": lambda: sum(numbers) + sum(numbers)}, rounds=9)
    assert statistics.median(times.speedups("twice", "once")) == pytest.approx(0.5, rel=0.3)


def test_the_spread_shows_median_and_quartiles():
    assert timing.spread([1.0, 2.0, 3.0, 4.0, 5.0]) == "3.00 (2.00-4.00)"
    assert timing.spread([1.0, 3.0]) == "2.00 (1.00-3.00)"


@pytest.mark.parametrize("arguments", [({}, 1), ({"a": print}, 0)])
def test_nothing_to_time_is_an_error(arguments):
    with pytest.raises(ValueError, match="at least one"):
        timing.interleave(*arguments)


def test_a_section_replaces_the_older_one_of_its_title_alone(tmp_path):
    page = tmp_path / "results.md"
    for title, body in (("One", "old"), ("Two", "kept"), ("One", "new")):
        timing.write_section(title, body, "command", ["torch"], page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Timings") and "old" not in text
    assert text.index("new") < text.index("## Two") < text.index("kept")
    assert f"torch {torch.__version__}" in text


@pytest.fixture(autouse=True)
def one_torch_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model():
    return inference.reference(2, **TINY)


def test_inference_agrees_with_every_peer_and_is_timed(model, tmp_path):
    with ExitStack() as held_open:
        check_inference(*inference.build(model, tmp_path, list(inference.BUILDERS), held_open), model)


def check_inference(candidates, missing, model):
    assert all(why.startswith("ModuleNotFoundError") for why in missing.values()), missing
    timed = inference.calls(candidates, inference.batch_of([9, 4, 4, 7, 2], 61), size=2)
    assert "transformers, sorted in 2s" in timed and "**bertlib**" in timed
    times = timing.interleave(timed, rounds=1, warm_up=False)
    peak = {"default": 1.0, "medium": 2.0, "bf16": 4.0}
    rows = list(inference.rows(times, peak, inference.floating_operations(model, [9, 4]), tokens=26))
    assert [row[0] for row in rows] == list(timed) and rows[0][1] == "1.00 (1.00-1.00)"


def test_a_wrong_answer_is_not_timed(model):
    def wrong(inputs):
        with torch.no_grad():
            output = model(*inputs)
        output.last_hidden_state[-1, 1, 3] += 0.01
        return output

    candidates = {"transformers": inference.torch_candidate(model), "fast": inference.Candidate(wrong)}
    with pytest.raises(AssertionError, match="fast is off by"):
        inference.calls(candidates, inference.batch_of([3, 5], 61))


def test_work_is_counted_by_hand():
    # One layer, d = 32, 48 inside, a sequence of 3: products of (3, 32) with four matrices (32, 32) and two (32, 48),
    # and 3 x 3 scores and averages of width 32, at two operations each.
    model = inference.reference(1, **TINY)
    expected = 2 * (3 * (4 * 32 * 32 + 2 * 32 * 48) + 2 * 3 * 3 * 32)
    assert inference.floating_operations(model, [3]) == expected


def test_training_losses_agree_and_rows_are_complete(tmp_path):
    sizes = {name: size for name, size in TINY.items() if name != "vocab_size"}
    training.save_start(tmp_path, 61, **sizes | {"num_hidden_layers": 2})
    rows = training.time_case(tmp_path, 61, [9, 12, 5], rounds=1, peak=False)
    assert [row[0] for row in rows][2] == "**bertlib**" and float(rows[2][-1]) <= training.CLOSE
    assert len({len(row) for row in rows}) == 1


def test_losses_that_part_are_not_timed():
    with pytest.raises(AssertionError, match="losses are not equal"):
        training.equal_losses({"a": lambda: 1.0, "b": lambda: 1.1}, "a", ["b"])


STEP = """
import torch
def step():
    held = torch.ones(2, 2**20)
    more = [torch.ones(2, 2**20), torch.ones(6, 2**20)]
    del more
    return held.sum() + torch.ones(4, 2**20).sum()
"""


def test_memory_by_hand():
    """A step that holds 8 MiB, then 8 and 24 more, and then, those given back, 16 more: 40 at its peak."""
    names = {}
    exec(STEP, names)
    assert training.allocated(names["step"]) == pytest.approx(40, abs=0.01)


def test_the_memory_of_a_process_by_hand():
    """The same step in a process of its own, in which the C library gives every large block back at once.

    Left to itself it keeps some, and the peak is anything from 24 MiB to 144.
    """
    code = STEP + "step()\nfrom benchmarks.training import peak_growth\nprint(peak_growth(step))"
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(2**20)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    growth = run.stdout.split()[-1]
    assert growth == "None" or float(growth) == pytest.approx(40, abs=4)


def test_both_memories_are_measured(tmp_path):
    sizes = {name: size for name, size in TINY.items() if name != "vocab_size"}
    training.save_start(tmp_path, 61, **sizes)
    found = training.measured_apart("bertlib", tmp_path, 61, [9, 12])
    assert list(found) == ["process", "allocated"] and 0 < found["allocated"] < 5


def test_tokenization_agrees_and_is_timed():
    vocab = datasets.fetch("minilm-vocab")
    rows = tokenization.rows(["Unaffable naïveté, 北京!", "a b c"], vocab, rounds=2)
    assert [row[0] for row in rows][2:] == ["**bertlib, cold**", "**bertlib, warm**"]
    with pytest.raises(AssertionError, match="'one'"):
        tokenization.check(["one"], [[1]], [[2]])


def test_an_import_is_timed_in_a_fresh_process():
    cpu, wall = import_time.seconds("import json", "import sys")
    assert 0 <= cpu < 5 and 0 < wall < 60


def test_make_bench_runs_every_script():
    root = timing.RESULTS.parent.parent
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    scripts = {path.stem for path in timing.RESULTS.parent.glob("*.py")} - {"__init__", "timing"}
    assert all(f"-m benchmarks.{name}\n" in makefile for name in scripts)
