"""The script that writes outputs: the same bytes twice, a failing notebook untouched, streams joined."""

import importlib.util
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("execute", ROOT / "scripts" / "execute.py")
execute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(execute)


def write(path, *sources, **metadata):
    notebook = nbformat.v4.new_notebook(metadata=metadata)
    notebook.cells = [nbformat.v4.new_markdown_cell("# Title")]
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(notebook, path)


def test_two_runs_give_the_same_bytes_whatever_was_there_before(tmp_path):
    path = tmp_path / "small.ipynb"
    sources = ("import sys", "for i in range(3):\n    print(i, flush=True)\n{'b', 'a', 'c'}", "print('x')")
    write(path, *sources, kernelspec={"name": "other", "display_name": "Other"})
    execute.execute(path)
    first = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].metadata["execution"] = {"shell.execute_reply": "2020-01-01"}
    notebook.cells[1].metadata["collapsed"] = False
    notebook.cells[2].outputs = []
    notebook.cells[2].id = "another-id"
    nbformat.write(notebook, path)
    execute.execute(path)
    assert path.read_bytes() == first
    loop = nbformat.read(path, as_version=4).cells[2]
    assert [output.output_type for output in loop.outputs] == ["stream", "execute_result"]
    assert loop.outputs[0].text == "0\n1\n2\n"
    assert nbformat.read(path, as_version=4).metadata.kernelspec == execute.KERNEL


def test_glued_numbers_and_claims_survive(tmp_path):
    path = tmp_path / "small.ipynb"
    glue = "from myst_nb import glue\nglue('x', 2.5, display=False)"
    claim = (
        "from bertlib.claims import settle\n"
        "settle('D1', 'holds', quantity='variance', claimed='64', measured=64.1, uncertainty=0.3)"
    )
    write(path, glue, claim)
    execute.execute(path)
    _, first, second = nbformat.read(path, as_version=4).cells
    assert first.outputs[0].metadata["scrapbook"]["name"] == "x"
    assert second.outputs[0].metadata["bertlib-claim"]["verdict"] == "holds"


def test_a_failing_notebook_is_left_as_it_was(tmp_path):
    path = tmp_path / "small.ipynb"
    write(path, "x = 1", "assert x == 2, 'two was expected'")
    before = path.read_bytes()
    with pytest.raises(CellExecutionError, match="two was expected"):
        execute.execute(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.ipynb"]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(SystemExit, match=r"no notebook nowhere in chapters/; there are .*softmax"):
        execute.main(["nowhere"])
