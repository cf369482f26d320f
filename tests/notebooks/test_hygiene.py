"""What every committed notebook looks like, whoever wrote it."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
OUTPUT_LIMIT = 200_000
CELL_LINES, LINE_LENGTH = 25, 76

assert NOTEBOOKS, "there are no chapters"
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(value) -> str:
    return "".join(value) if isinstance(value, list) else value


def code_cells(path):
    return [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]


def prose_of(path):
    """(cell number, text) of every Markdown cell without code spans, fences of code, roles and links."""
    for number, cell in enumerate(load(path)["cells"]):
        if cell["cell_type"] == "markdown":
            text = text_of(cell["source"])
            text = re.sub(r"^(`{3,})(?!\{)[^\n]*\n.*?^\1$", "", text, flags=re.S | re.M)
            text = re.sub(r"\{[\w:-]+\}`[^`]*`|`[^`]*`|\]\([^)]*\)|^:\w[^\n]*$", "", text, flags=re.M)
            yield number, text


@each_notebook
def test_metadata_is_normal(path):
    notebook = load(path)
    assert notebook["metadata"] == {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    assert all(set(cell["metadata"]) <= {"tags", "mystnb", "jupyter"} for cell in notebook["cells"])


@each_notebook
def test_every_code_cell_was_executed_in_order_and_without_error(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        raises = "raises-exception" in cell["metadata"].get("tags", [])
        errors = [output for output in cell["outputs"] if output["output_type"] == "error"]
        assert not errors or raises, text_of(cell["source"])
        assert text_of(cell["source"]).strip(), "an empty code cell"


@each_notebook
def test_outputs_are_small_and_clean(path):
    for cell in code_cells(path):
        source = text_of(cell["source"])
        for output in cell["outputs"]:
            size = len(json.dumps(output))
            assert size <= OUTPUT_LIMIT, f"an output of {size} characters from:\n{source}"
            assert output.get("name") != "stderr", f"something was written to stderr by:\n{source}"
            shown = {**output.get("data", {}), "stream": output.get("text", "")}
            for kind in ("text/plain", "text/html", "stream"):
                text = text_of(shown.get(kind, ""))
                assert not re.search(r"(?<![\w.])/(?:home|root|tmp|Users|work|opt|var)/|[A-Z]:\\\\", text), text
                assert not re.search(r"\bat 0x[0-9a-f]{6,}", text), f"an address in memory: {text}"
            plain = text_of(shown.get("text/plain", ""))
            stray = re.match(r"\[?<matplotlib|\(?array\(|Text\(|\[?Text\(|<Figure(?! size)", plain)
            assert not stray, f"a stray representation, {plain[:60]!r}, from:\n{source}"


@each_notebook
def test_cells_are_short(path):
    for cell in code_cells(path):
        lines = text_of(cell["source"]).splitlines()
        assert len(lines) <= CELL_LINES, "\n".join(lines)
        assert max(map(len, lines)) <= LINE_LENGTH, max(lines, key=len)


@each_notebook
def test_every_figure_says_what_it_shows(path):
    for cell in code_cells(path):
        images = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
        if not images:
            continue
        assert len(images) == 1, "one figure a cell"
        described = cell["metadata"].get("mystnb", {})
        source = text_of(cell["source"])
        assert len(described.get("image", {}).get("alt", "")) >= 30, f"no alternative text:\n{source}"
        assert len(described.get("figure", {}).get("caption", "")) >= 20, f"no caption:\n{source}"
        assert described["figure"].get("name", "").startswith("fig-"), f"no name:\n{source}"


@each_notebook
def test_no_number_is_typed_into_prose(path):
    for number, text in prose_of(path):
        found = re.findall(r"(?<![\w.:/-])\d+[.,]\d+(?![\w/])|\d(?:\.\d+)?\s*\\times\s*10", text)
        assert not found, f"cell {number}: {found} should come from a cell, through glue"


@each_notebook
def test_glued_names_exist_and_are_used(path):
    cells = load(path)["cells"]
    prose = "\n".join(text_of(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    used = set(re.findall(r"\{glue:\w+\}`([\w-]+)", prose))
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    glued = {output["metadata"]["scrapbook"]["name"] for output in outputs if "scrapbook" in output.get("metadata", {})}
    assert used - glued == set(), "named in prose and glued nowhere"
    assert glued - used == set(), "glued and named nowhere"


@each_notebook
def test_chapter_has_its_parts(path):
    cells = load(path)["cells"]
    prose = "\n".join(text_of(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    code = "\n".join(text_of(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert prose.startswith("# ")
    assert len(re.findall(r"^# ", re.sub(r"^(`{3,}).*?^\1", "", prose, flags=re.S | re.M), flags=re.M)) == 1
    for number in range(1, 6):
        label = f"{path.stem}-{number}"
        assert f":label: ex-{label}" in prose, f"exercise {label} is missing"
        assert code.count(f'check("{label}"') >= 2, f"exercise {label} needs its check and a solution"
    assert re.search(r"^## (?:Summary|What to take away|In five lines)", prose, flags=re.M)
    assert "{footbibliography}" in prose
    for cell in cells:
        if cell["cell_type"] == "code" and re.search(r'check\("[\w-]+", (?!answer|\.\.\.)', text_of(cell["source"])):
            assert "hide-cell" in cell["metadata"].get("tags", []), "a solution that is not hidden"
    outputs = json.dumps([cell["outputs"] for cell in code_cells(path)])
    for number in range(1, 6):
        assert f"{path.stem}-{number}: right." in outputs, f"the solution of exercise {number} is not right"


def test_glued_names_are_unique_in_the_book():
    seen = {}
    for path in NOTEBOOKS:
        for cell in code_cells(path):
            for output in cell["outputs"]:
                name = output.get("metadata", {}).get("scrapbook", {}).get("name")
                if name:
                    assert name not in seen, f"{name} is glued in {seen[name]} and {path.stem}"
                    seen[name] = path.stem


def test_every_chapter_is_in_the_table_of_contents():
    listed = re.findall(r"file: (chapters/[\w-]+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == [f"chapters/{path.stem}" for path in NOTEBOOKS]
