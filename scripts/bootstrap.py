"""Make `.venv` and install the pinned requirements into it. Runs on the standard library alone.

    python scripts/bootstrap.py book    what building the site needs (no torch)
    python scripts/bootstrap.py all     that, the library, the notebooks and the tests
    python scripts/bootstrap.py lab     all, and JupyterLab
    python scripts/bootstrap.py bench   all, and the peers that the benchmarks time

A stamp in `.venv` remembers what was installed, so a second call does nothing. The file keeps to words that every
Python can read, so that an old one answers with the version that is needed instead of a syntax error.
"""

import sys

NEEDED = (3, 11)
if sys.version_info[:2] < NEEDED:
    sys.exit(
        "This book needs Python %d.%d or newer; %s is Python %d.%d. Name a newer one: make PYTHON=python3.12 ..."
        % (NEEDED + (sys.executable,) + tuple(sys.version_info[:2]))
    )

import hashlib  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import subprocess  # noqa: E402
import tomllib  # noqa: E402
import venv  # noqa: E402
from pathlib import Path  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
CONSTRAINTS = ROOT / "constraints.txt"
SETS = {
    "book": ["book"],
    "all": ["book", "notebooks", "test"],
    "lab": ["book", "notebooks", "test", "lab"],
    "bench": ["book", "notebooks", "test", "bench"],
}


def requirements(name):
    """The pinned requirements of a set, from pyproject.toml; the library itself goes with every set but `book`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = [pin for extra in SETS[name] for pin in project["optional-dependencies"][extra]]
    return pins if name == "book" else project["dependencies"] + pins + ["--editable", str(ROOT)]


def stamp(name):
    """The file whose presence says that exactly these requirements are installed."""
    key = "\n".join(requirements(name) + [CONSTRAINTS.read_text(encoding="utf-8")])
    return VENV / ("installed-" + name + "-" + hashlib.sha256(key.encode()).hexdigest()[:16])


def make_venv():
    made = VENV / ("made-by-python-" + platform.python_version())
    if made.exists() and PYTHON.exists():
        return
    sys.stdout.write("Making a virtual environment in .venv\n")
    venv.create(str(VENV), with_pip=True, clear=True)
    made.touch()


def install(name):
    make_venv()
    larger = [other for other in SETS if set(SETS[name]) <= set(SETS[other])]
    if any(stamp(other).exists() for other in larger):
        return
    sys.stdout.write("Installing the pinned requirements ('" + name + "') into .venv\n")
    sys.stdout.flush()
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    if subprocess.call(pip + ["--constraint", str(CONSTRAINTS)] + requirements(name)):
        sys.exit("pip could not install the requirements ('" + name + "'): see above. Then run the same make again.")
    for old in VENV.glob("installed-" + name + "-*"):
        old.unlink()
    stamp(name).touch()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SETS:
        sys.exit("usage: python scripts/bootstrap.py " + "|".join(SETS))
    install(sys.argv[1])
