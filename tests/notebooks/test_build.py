"""What the build refuses: an unknown macro, a dangling reference, and what it says then."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build(tmp_path, text):
    """Build a book of one page with the project's own settings; the exit status and what was printed."""
    for name in ("_config.yml", "extensions", "assets", "bertlib"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv", target_is_directory=True)
    (tmp_path / "reference").mkdir()
    shutil.copy(ROOT / "reference" / "references.bib", tmp_path / "reference")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (tmp_path / "intro.md").write_text(text, encoding="utf-8")
    tool = shutil.which("jupyter-book", path=str(Path(sys.executable).parent))
    command = [tool, "build", str(tmp_path), "-W", "-n", "--keep-going", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module", autouse=True)
def katex():
    sys.path.insert(0, str(ROOT / "scripts"))
    import build as script

    script.fetch_katex()


def test_sound_page_is_built_without_a_script_for_formulas(tmp_path):
    status, told = build(tmp_path, "# Page\n\nText $\\sqrt{d_k}$.\n\n$$ a = b $$ (eq-a)\n\nSee {eq}`eq-a`.\n")
    assert status == 0, told
    page = (tmp_path / "_build" / "html" / "intro.html").read_text(encoding="utf-8")
    assert 'class="katex"' in page and "<math" in page
    assert "mathjax" not in page.lower().replace("mathjax_ignore", "")


def test_unknown_macro_fails_and_names_the_file_and_the_macro(tmp_path):
    status, told = build(tmp_path, "# Page\n\nText $\\frobnicate{x}$.\n")
    assert status != 0
    assert "intro.md:3" in told and "\\frobnicate" in told


def test_dangling_reference_fails_and_names_the_file(tmp_path):
    status, told = build(tmp_path, "# Page\n\nSee {doc}`nowhere`.\n")
    assert status != 0
    assert "intro.md:3" in told and "nowhere" in told
