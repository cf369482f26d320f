"""Brings a wheel, by package name and version, into a folder without installing it.

pip knows where packages come from on this machine (its index, its mirrors, its folders), so pip is set to download the
wheel. It is stopped once it has named the address; the bytes are then read here, so that a download that was cut off
goes on where it stopped. Where only pip can read the address, because of a login or a certificate, pip is left to it.
"""

import errno
import hashlib
import http.client
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

PYTHON = "3.11"  # nothing of a wheel is imported, so the Python that it is asked for need not be the one that runs
CHUNK = 1 << 16  # bytes
TIMEOUT = 60  # seconds without a byte
ATTEMPTS = 3  # that bring nothing, one after the other
PAUSE = 1.0  # seconds before the second attempt, twice as many before the third
ADDRESS = re.compile(r"\s*Found link (\S+) \(from ")  # how pip 21 to 26 name what they have found, when asked with -vv


class WheelError(RuntimeError):
    """A wheel could not be had; the message says why."""


class _Interrupted(Exception):
    """The network failed, for the reason given."""


@dataclass(frozen=True)
class Wheel:
    """One wheel of a package: its file name, which carries version and platform, its size in bytes and its sha256."""

    package: str
    file: str
    size: int
    sha256: str

    @property
    def version(self) -> str:
        return self.file.split("-")[1]


def sha256_of(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(wheel: Wheel, folder: Path) -> Path:
    """The wheel as a file in `folder`, which must exist; its sha256 is right.

    A wheel that lies there already is used, and a download that was cut off goes on.

    Raises:
        WheelError: when pip is missing or finds no such wheel, the network fails, or the sha256 is wrong.
        OSError: when the folder cannot be written or the disk is full.
    """
    path = folder / wheel.file
    if path.exists():
        if sha256_of(path) == wheel.sha256:
            return path
        path.unlink()
    part = folder / f"{wheel.file}.part"
    if _size(part) > wheel.size:
        part.unlink()
    if _size(part) < wheel.size:
        address = _run_pip(wheel, part, stop_at_address=True)
        if address is not None and not _stream(address, part, wheel):
            _run_pip(wheel, part, stop_at_address=False)
    found = sha256_of(part)
    if found != wheel.sha256:
        part.unlink()
        raise WheelError(f"{wheel.file} was to have sha256 {wheel.sha256} and has {found}; it has been removed")
    part.replace(path)
    return path


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _run_pip(wheel: Wheel, part: Path, stop_at_address: bool) -> str | None:
    """Have pip download the wheel to `part`, under pip's own configuration; no code of the package ever runs.

    With `stop_at_address`, return the wheel's address as soon as pip names it; a pip that names none downloads.
    """
    if importlib.util.find_spec("pip") is None:
        raise WheelError(f"{sys.executable} has no pip; `{Path(sys.executable).name} -m ensurepip` gives it one")
    *_, abi, platforms = wheel.file.removesuffix(".whl").split("-")
    command = [sys.executable, "-P", "-m", "pip", "download", "-vv", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", "--abi", abi]
    for platform in platforms.split("."):
        command += ["--platform", platform]
    folder = part.with_suffix(".pip")
    temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))  # what a stopped pip leaves goes with the folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    try:
        with subprocess.Popen(
            [*command, "--dest", str(folder), f"{wheel.package}=={wheel.version}"],
            env=os.environ | temporary | {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "PIP_REQUIRE_VIRTUALENV": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as pip:
            said = []
            for line in pip.stdout:
                said.append(line.strip())
                found = ADDRESS.match(line) if stop_at_address else None
                if found and urllib.parse.urlsplit(found[1]).path.endswith(f"/{wheel.file}"):
                    pip.kill()
                    return found[1]
        if pip.returncode:
            raise WheelError(_pip_says(said))
        if not (folder / wheel.file).exists():
            raise WheelError(f"pip brought {', '.join(path.name for path in folder.glob('*.whl'))}, not {wheel.file}")
        (folder / wheel.file).replace(part)
        return None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pip_says(said: list[str]) -> str:
    """pip's own words for what went wrong: its errors, else its last line."""
    errors = [line for line in said if line.startswith("ERROR:")] or said
    trouble = "pip had trouble connecting, and says" if any("Retrying (" in line for line in said) else "pip says"
    return f"{trouble}: {' '.join(errors[-2:]) or 'nothing'}"


def _stream(address: str, part: Path, wheel: Wheel) -> bool:
    """Append what `part` lacks; False when not a byte could be read, so that pip may try.

    Raises:
        WheelError: when the connection broke, and broke again.
    """
    before = furthest = _size(part)
    received = False
    failures = 0
    while failures < ATTEMPTS:
        time.sleep(PAUSE * failures)
        try:
            _append(address, part, wheel)
            reason = "the server closed the connection"
        except _Interrupted as error:
            reason = str(error)
        have = _size(part)
        if have >= wheel.size:
            return True
        received = received or have != before
        failures = 0 if have > furthest else failures + 1
        before, furthest = have, max(have, furthest)
    if not received:
        return False
    raise WheelError(f"the download broke off after {have:,} of {wheel.size:,} bytes: {reason}; those are kept")


def _append(address: str, part: Path, wheel: Wheel) -> None:
    have = _size(part)
    try:
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the server's file ends where ours does: ours is no beginning of it
            part.unlink(missing_ok=True)
        raise _Interrupted(f"the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Interrupted(str(error)) from error
    with response:
        if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            part.unlink(missing_ok=True)
            raise _Interrupted("the server sent another range than it was asked for")
        mode = "ab" if response.status == 206 else "wb"
        with part.open(mode, buffering=0) as file, _progress(wheel, file.tell()) as progress:
            while file.tell() <= wheel.size:
                try:
                    chunk = response.read(CHUNK)
                except (OSError, http.client.HTTPException) as error:
                    raise _Interrupted(str(error)) from error
                if not chunk:
                    return
                _write(file, chunk)
                progress.update(len(chunk))


def _progress(wheel: Wheel, done: int) -> tqdm:
    """A progress bar on a terminal; nothing elsewhere, so that no notebook's output holds one."""
    return tqdm(
        total=wheel.size, initial=done, unit="B", unit_scale=True, desc=wheel.package, leave=False, disable=None
    )


def _write(file, data: bytes) -> None:
    """Write all of it; a full disk gets its room back before the error goes on."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        if error.errno == errno.ENOSPC:
            file.truncate(0)
        raise
