"""Run notebooks from the first cell to the last and write their outputs; the only way outputs are written here.

    python scripts/execute.py                  every notebook of chapters/
    python scripts/execute.py softmax scaling  those two

Two runs give the same bytes: no timing, one kernel name, cell ids from the cells' text, streams joined. A notebook that
fails is left as it was.
"""

import base64
import hashlib
import io
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = ROOT / "chapters"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
CELL_METADATA = ("tags", "mystnb", "jupyter")
OUTPUT_METADATA = ("scrapbook", "bertlib-claim")  # a number that was glued, a claim that was settled
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONUTF8": "1"}


def cell_id(cell, taken: set[str]) -> str:
    """An id that depends on the cell's text alone, so that writing a notebook anew changes nothing."""
    text = cell.cell_type + "\n" + cell.source
    for attempt in range(len(taken) + 1):
        name = hashlib.sha256(f"{attempt}\n{text}".encode()).hexdigest()[:8]
        if name not in taken:
            taken.add(name)
            return name
    raise AssertionError("more attempts than taken ids")


def join_streams(outputs: list) -> list:
    """What a cell printed to one stream is one output, however the kernel happened to slice it."""
    joined = []
    for output in outputs:
        previous = joined[-1] if joined else None
        if previous and output.output_type == "stream" == previous.output_type and output.name == previous.name:
            previous.text += output.text
        else:
            joined.append(output)
    return joined


def shrink(png: str) -> str:
    """The same picture, base64 in and out, with a palette of 256 colours: a third of the bytes."""
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        small = picture.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    small.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def normalise(notebook) -> None:
    """Drop everything that differs from run to run or machine to machine."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    taken: set[str] = set()
    for cell in notebook.cells:
        cell.id = cell_id(cell, taken)
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata})
        if cell.cell_type == "code":
            cell.outputs = join_streams(cell.outputs)
            for output in cell.outputs:
                if "image/png" in output.get("data", {}):
                    output.data["image/png"] = shrink(output.data["image/png"])
                if "metadata" in output:
                    kept = {key: output.metadata[key] for key in OUTPUT_METADATA if key in output.metadata}
                    output.metadata = nbformat.from_dict(kept)


def execute(path: Path, timeout: int = 600) -> float:
    """Execute the notebook in place and return the seconds it took.

    Raises:
        CellExecutionError: when a cell raises; the notebook on disk is then untouched.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    started = time.monotonic()
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": path.parent}},
    )
    client.execute(env={**os.environ, **ENVIRONMENT})
    seconds = time.monotonic() - started
    normalise(notebook)
    nbformat.validate(notebook)
    unfinished = path.with_suffix(".ipynb.unfinished")
    unfinished.write_text(nbformat.writes(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(path)
    return seconds


def main(names: list[str]) -> None:
    known = {path.stem: path for path in sorted(CHAPTERS.glob("*.ipynb"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no notebook {', '.join(unknown)} in chapters/; there are {', '.join(known)}")
    for name in names or known:
        try:
            seconds = execute(known[name])
        except CellExecutionError as error:
            sys.exit(f"{error}\nchapters/{name}.ipynb failed at this cell and was left as it was.")
        print(f"{name}: {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
