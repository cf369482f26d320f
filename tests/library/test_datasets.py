"""datasets: fetch against a package index on this machine. No test asks anything of the network."""

import contextlib
import errno
import gzip
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from package_index import PackageIndex, make_wheel

from bertlib import datasets, wheels
from bertlib.atomic import atomic_write
from bertlib.datasets import DatasetError

TEXT = b"one sentence\nand another\n" * 40
BIG = np.random.default_rng(0).bytes(1_500_000)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class House:
    """A package index, a registry that describes what it serves, and an empty cache."""

    def __init__(self, folder: Path, index: PackageIndex):
        self.index = index
        self.cache = folder / "cache"
        self.registry = folder / "registry.toml"
        self.downloads = self.cache / "downloads"

    def serve(self, package: str, members: dict[str, bytes], tags: str = "py3-none-any") -> Path:
        return make_wheel(self.index.folder, package, members, tags)

    def describe(self, wheels_by_package: dict[str, Path], entries: dict[str, tuple[bytes, dict[str, str]]]) -> None:
        """Write the registry: the wheels, and for each entry its true content and its path in each package."""
        lines = []
        for package, path in wheels_by_package.items():
            content = path.read_bytes()
            lines += [f"[wheels.{package}]", f'file = "{path.name}"', f"size = {len(content)}"]
            lines += [f'sha256 = "{sha256(content)}"']
        for name, (content, members) in entries.items():
            lines += [f"[entries.{name}]", 'about = "test"', 'licence = "MIT"', 'origin = "test"']
            lines += [f"size = {len(content)}", f'sha256 = "{sha256(content)}"']
            lines += [f'members.{package} = "{member}"' for package, member in members.items()]
        self.registry.write_text("\n".join(lines), encoding="utf-8")

    def put_by_hand(self, wheel: Path) -> None:
        self.downloads.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel, self.downloads)

    def start(self, name: str, stderr: int = subprocess.PIPE) -> subprocess.Popen:
        """Another process that fetches one name and prints where it is."""
        code = (
            "import sys, pathlib; from bertlib import datasets; datasets.REGISTRY = pathlib.Path(sys.argv[1]); "
            "datasets.PATIENCE = 0.2; print(datasets.fetch(sys.argv[2]))"
        )
        command = [sys.executable, "-c", code, str(self.registry), name]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8")

    def files(self) -> list[str]:
        """What the cache holds, locks aside."""
        found = [path for path in self.cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
        return sorted(path.relative_to(self.cache).as_posix() for path in found)


@pytest.fixture
def house(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith("PIP_") or name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.delenv(name)
    (tmp_path / "index").mkdir()
    with PackageIndex(tmp_path / "index") as index:
        house = House(tmp_path, index)
        settings = {
            "BERTLIB_CACHE": str(house.cache),
            "NO_PROXY": "127.0.0.1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": index.url,
            "PIP_RETRIES": "0",
            "PIP_NO_CACHE_DIR": "1",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(datasets, "REGISTRY", house.registry)
        monkeypatch.setattr(wheels, "PAUSE", 0.0)
        yield house


@pytest.fixture
def corpus(house):
    """One package with two registered files, `text` and `big`."""
    wheel = house.serve("toy-corpus", {"toy/data/text.txt": TEXT, "toy/big.bin": BIG})
    entries = {
        "text": (TEXT, {"toy-corpus": "toy/data/text.txt"}),
        "big": (BIG, {"toy-corpus": "toy/big.bin"}),
    }
    house.describe({"toy-corpus": wheel}, entries)
    return wheel


def unwanted(*_, **__):
    raise AssertionError("pip or the network was asked")


# What a fetch gives


def test_fetch_brings_the_file_and_the_package_s_other_files(house, corpus):
    path = datasets.fetch("text")
    assert path.read_bytes() == TEXT
    assert path.name == "text.txt"
    assert house.files() == ["toy-corpus-1.0/big.bin", "toy-corpus-1.0/text.txt"], "the wheel is not kept"
    assert datasets.fetch("big").read_bytes() == BIG
    assert house.index.ranges_asked() == [None]


def test_a_cached_file_needs_neither_pip_nor_network_nor_a_folder_that_can_be_written(house, corpus, monkeypatch):
    first = datasets.fetch("text")
    monkeypatch.setattr(subprocess, "Popen", unwanted)
    monkeypatch.setattr(wheels, "download", unwanted)
    monkeypatch.setattr(datasets, "FileLock", unwanted)
    assert datasets.fetch("text") == first
    assert datasets.fetch("text", verify=True) == first


def test_a_cached_file_of_the_wrong_size_is_fetched_anew(house, corpus):
    path = datasets.fetch("text")
    path.write_bytes(TEXT[:-1])
    assert not datasets.is_cached("text")
    assert datasets.fetch("text").read_bytes() == TEXT


def test_verify_finds_a_changed_byte_and_mends_it(house, corpus):
    path = datasets.fetch("text")
    path.write_bytes(TEXT[:-1] + b"!")
    assert datasets.fetch("text").read_bytes() != TEXT, "without verify the size alone is looked at"
    assert datasets.fetch("text", verify=True).read_bytes() == TEXT


def test_a_wheel_for_another_platform_and_python_is_fetched_all_the_same(house):
    wheel = house.serve("toy-built", {"toy/text.txt": TEXT}, tags="cp311-cp311-manylinux_2_24_s390x")
    house.describe({"toy-built": wheel}, {"text": (TEXT, {"toy-built": "toy/text.txt"})})
    assert datasets.fetch("text").read_bytes() == TEXT


def test_the_next_package_is_tried_and_the_file_lands_in_the_same_place(house, corpus):
    other = house.serve("toy-twin", {"elsewhere/text.txt": TEXT})
    members = {"toy-corpus": "toy/data/text.txt", "toy-twin": "elsewhere/text.txt"}
    house.describe({"toy-corpus": corpus, "toy-twin": other}, {"text": (TEXT, members)})
    corpus.unlink()
    assert datasets.fetch("text") == house.cache / "toy-corpus-1.0" / "text.txt"
    assert datasets.fetch("text").read_bytes() == TEXT


def test_a_wheel_that_was_put_there_by_hand_is_used(house, corpus, monkeypatch):
    house.put_by_hand(corpus)
    monkeypatch.setattr(subprocess, "Popen", unwanted)
    assert datasets.fetch("text").read_bytes() == TEXT


def test_a_folder_of_wheels_serves_as_well_as_an_index(house, corpus, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(house.index.folder))
    assert datasets.fetch("big").read_bytes() == BIG


# Downloads that do not go smoothly


def test_a_killed_download_is_resumed(house, corpus):
    house.index.rate = 600_000
    part = house.downloads / f"{corpus.name}.part"
    process = house.start("big")
    deadline = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size > 300_000):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode != 0
    assert house.files() == [f"downloads/{corpus.name}.part"], "no half file where a whole one is expected"
    had = part.stat().st_size

    house.index.rate = None
    assert datasets.fetch("big").read_bytes() == BIG
    assert house.index.ranges_asked() == [None, f"bytes={had}-"]


def test_a_connection_that_keeps_breaking_is_taken_up_again_each_time(house, corpus):
    house.index.cut_at = 400_000
    assert datasets.fetch("big").read_bytes() == BIG
    assert house.index.ranges_asked() == [
        None,
        *(f"bytes={have}-" for have in range(400_000, corpus.stat().st_size, 400_000)),
    ]


def test_a_server_without_ranges_starts_over_and_gives_up_with_a_reason(house, corpus):
    house.index.ranges = False
    house.index.cut_at = 400_000
    with pytest.raises(DatasetError, match=r"(?s)big could not.*broke off after 400,000 of .* bytes"):
        datasets.fetch("big")
    assert house.files() == [f"downloads/{corpus.name}.part"]
    house.index.cut_at = None
    assert datasets.fetch("big").read_bytes() == BIG


def test_a_part_that_does_not_begin_where_it_was_asked_to_is_not_appended(house, corpus):
    house.downloads.mkdir(parents=True)
    (house.downloads / f"{corpus.name}.part").write_bytes(corpus.read_bytes()[:1000])
    house.index.shift = 10
    assert datasets.fetch("big").read_bytes() == BIG
    assert house.index.ranges_asked() == ["bytes=1000-", None]


def test_a_part_that_the_server_has_nothing_after_is_thrown_away(house, corpus):
    house.downloads.mkdir(parents=True)
    content = corpus.read_bytes()
    shorter = make_wheel(house.index.folder, "toy-corpus", {"toy/data/text.txt": TEXT})  # the server's: ours is larger
    part = house.downloads / f"{corpus.name}.part"
    part.write_bytes(content[: shorter.stat().st_size])
    address = f"{house.index.url.replace('simple', 'files')}{shorter.name}"
    wheel = wheels.Wheel("toy-corpus", corpus.name, len(content), sha256(content))
    with pytest.raises(wheels.WheelError, match="broke off"):
        wheels._stream(address, part, wheel)
    assert house.index.ranges_asked()[:2] == [f"bytes={shorter.stat().st_size}-", None]


def test_garbage_in_a_part_is_found_out_and_the_next_fetch_succeeds(house, corpus):
    house.downloads.mkdir(parents=True)
    (house.downloads / f"{corpus.name}.part").write_bytes(b"x" * 1000)
    with pytest.raises(DatasetError, match=rf"sha256 {sha256(corpus.read_bytes())} and has \w{{64}}; it has been rem"):
        datasets.fetch("text")
    assert house.files() == []
    assert datasets.fetch("text").read_bytes() == TEXT


def test_a_part_larger_than_the_wheel_is_thrown_away(house, corpus):
    house.downloads.mkdir(parents=True)
    (house.downloads / f"{corpus.name}.part").write_bytes(b"x" * (corpus.stat().st_size + 1))
    assert datasets.fetch("text").read_bytes() == TEXT


def test_what_only_pip_can_read_pip_downloads(house, corpus):
    house.index.only_pip = True
    assert datasets.fetch("text").read_bytes() == TEXT
    assert house.files() == ["toy-corpus-1.0/big.bin", "toy-corpus-1.0/text.txt"]


def test_a_pip_that_names_no_address_downloads(house, corpus, monkeypatch):
    monkeypatch.setattr(wheels, "ADDRESS", re.compile("no line reads like this"))
    monkeypatch.setattr(wheels, "_stream", unwanted)
    assert datasets.fetch("text").read_bytes() == TEXT
    assert house.files() == ["toy-corpus-1.0/big.bin", "toy-corpus-1.0/text.txt"]


def test_pip_is_stopped_before_it_downloads_what_is_then_downloaded_here(house, corpus):
    house.index.rate = 1_000_000
    datasets.fetch("big")
    assert sum(request.sent for request in house.index.requests if request.by_pip) < corpus.stat().st_size / 4


def test_two_processes_download_once(house, corpus):
    house.index.rate = 1_000_000
    processes = [house.start("big"), house.start("text")]
    half_seen = False
    while any(process.poll() is None for process in processes):
        half_seen |= any(
            path.stat().st_size not in (len(TEXT), len(BIG)) for path in house.cache.glob("toy-corpus-1.0/[!.]*")
        )
        time.sleep(0.01)
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sorted(Path(out.strip()).name for out, _ in outputs) == ["big.bin", "text.txt"]
    assert house.index.ranges_asked() == [None]
    assert not half_seen
    assert sorted(err for _, err in outputs) == [
        "",
        "bertlib: another process is fetching from toy-corpus; waiting for it\n",
    ]


def test_a_notebook_s_output_shows_neither_progress_nor_waiting(house, corpus, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    monkeypatch.setattr(datasets, "PATIENCE", 0.05)
    house.downloads.mkdir(parents=True)
    lock = FileLock(house.downloads / "toy-corpus.lock")
    waited = []

    class Waiting(FileLock):
        def acquire(self, timeout=None, **options):
            if timeout is None and not waited:
                waited.append(True)
                lock.release()
            return super().acquire(timeout=timeout, **options)

    monkeypatch.setattr(datasets, "FileLock", Waiting)
    lock.acquire()
    assert datasets.fetch("big").read_bytes() == BIG
    assert waited
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_a_terminal_shows_progress(house, corpus):
    import termios

    reading, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    process = house.start("big", stderr=terminal)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that nobody holds the terminal any more
        while chunk := os.read(reading, 10_000):
            shown += chunk
    os.close(reading)
    assert process.wait(timeout=60) == 0
    assert b"toy-corpus:" in shown


# Errors say what, why and what to do


def test_an_unknown_name_lists_the_names(house, corpus):
    with pytest.raises(DatasetError, match="no data set 'txt'; the registry has text, big"):
        datasets.fetch("txt")
    with pytest.raises(DatasetError, match="no data set 'txt'"):
        datasets.entry("txt")


def test_a_wheel_that_turns_out_to_be_another_is_removed(house, corpus, monkeypatch):
    changed = bytearray(corpus.read_bytes())
    changed[-30] ^= 1
    right = sha256(corpus.read_bytes())
    corpus.write_bytes(changed)
    with pytest.raises(DatasetError, match=f"was to have sha256 {right} and has {sha256(changed)}"):
        datasets.fetch("text")
    assert house.files() == []


def test_a_wheel_put_there_by_hand_is_checked_too(house, corpus):
    house.downloads.mkdir(parents=True)
    (house.downloads / corpus.name).write_bytes(corpus.read_bytes()[:-1])
    assert datasets.fetch("text").read_bytes() == TEXT
    assert house.index.ranges_asked() == [None]


@pytest.mark.parametrize("content", [TEXT[:-1] + b"!", TEXT + b"!", TEXT[:-1]], ids=["changed", "longer", "shorter"])
def test_a_member_that_is_not_what_the_registry_says_is_not_kept(house, content):
    wheel = house.serve("toy-corpus", {"toy/text.txt": content})
    house.describe({"toy-corpus": wheel}, {"text": (TEXT, {"toy-corpus": "toy/text.txt"})})
    house.put_by_hand(wheel)
    with pytest.raises(DatasetError, match=f"text.txt was to have 1,000 bytes and sha256 {sha256(TEXT)}"):
        datasets.fetch("text")
    assert house.files() == []


def test_a_member_that_is_far_too_large_is_not_unpacked_to_its_end(house):
    wheel = house.serve("toy-corpus", {"toy/text.txt": bytes(5_000_000)})
    house.describe({"toy-corpus": wheel}, {"text": (TEXT, {"toy-corpus": "toy/text.txt"})})
    house.put_by_hand(wheel)
    with pytest.raises(DatasetError, match=r"what came has at least 1,048,576 bytes and is another file"):
        datasets.fetch("text")


def test_a_member_that_is_missing_is_named(house):
    wheel = house.serve("toy-corpus", {"toy/text.txt": TEXT})
    house.describe({"toy-corpus": wheel}, {"text": (TEXT, {"toy-corpus": "../../text.txt"})})
    house.put_by_hand(wheel)
    with pytest.raises(DatasetError, match=r"there is no \.\./\.\./text\.txt in toy_corpus-1\.0-py3-none-any\.whl"):
        datasets.fetch("text")


@pytest.mark.parametrize("damage", ["no zip at all", "compressed data"])
def test_a_damaged_zip_is_an_error_of_ours(house, damage):
    path = house.index.folder / "toy_corpus-1.0-py3-none-any.whl"
    if damage == "no zip at all":
        path.write_bytes(b"PK and no more")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("toy/text.txt", TEXT)
        content = bytearray(path.read_bytes())
        content[45:60] = b"\xff" * 15
        path.write_bytes(content)
    house.describe({"toy-corpus": path}, {"text": (TEXT, {"toy-corpus": "toy/text.txt"})})
    house.put_by_hand(path)
    with pytest.raises(DatasetError, match="is no readable zip file"):
        datasets.fetch("text")
    assert house.files() == []


def test_pip_is_quoted_when_it_finds_nothing(house, corpus):
    corpus.unlink()
    with pytest.raises(DatasetError) as caught:
        datasets.fetch("text")
    for part in (
        "toy-corpus 1.0: pip says: ERROR: ",
        "No matching distribution found for toy-corpus==1.0",
        f"copy\n{corpus.name}\ninto {house.downloads} and fetch again",
    ):
        assert part in str(caught.value)


def test_without_a_network_the_error_says_so(house, corpus, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(DatasetError, match=r"(?s)had trouble connecting.*If the network was away, fetch again"):
        datasets.fetch("text")


def test_without_pip_the_error_says_how_to_get_it(house, corpus, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DatasetError, match=r"has no pip; `.*python.* -m ensurepip` gives it one"):
        datasets.fetch("text")


class FullDisk:
    """A file on a disk with room for 100 kB more."""

    def __init__(self, file):
        self.file, self.room = file, 100_000

    def write(self, data):
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


NO_SPACE = r"big: no space left .*: 1\.5 MB to download and 1\.5 MB to unpack, .* are free"


def test_a_disk_that_fills_up_while_downloading_gets_its_room_back(house, corpus, monkeypatch):
    write, disks = wheels._write, {}
    with monkeypatch.context() as once:
        once.setattr(wheels, "_write", lambda file, data: write(disks.setdefault(id(file), FullDisk(file)), data))
        with pytest.raises(DatasetError, match=NO_SPACE):
            datasets.fetch("big")
    assert [path for path in house.downloads.iterdir() if path.stat().st_size] == []
    assert datasets.fetch("big").read_bytes() == BIG


def test_a_disk_that_fills_up_while_unpacking_leaves_no_half_file(house, corpus, monkeypatch):
    @contextlib.contextmanager
    def write_to_a_full_disk(path):
        with atomic_write(path) as file:
            yield FullDisk(file)

    house.put_by_hand(corpus)
    with monkeypatch.context() as once:
        once.setattr(datasets, "atomic_write", write_to_a_full_disk)
        with pytest.raises(DatasetError, match=NO_SPACE):
            datasets.fetch("big")
    assert house.files() == [f"downloads/{corpus.name}"]
    assert datasets.fetch("big").read_bytes() == BIG


def test_a_cache_folder_that_cannot_be_written_is_named(house, corpus, monkeypatch):
    house.cache.write_text("a file, not a folder")
    with pytest.raises(
        DatasetError, match=rf"cache folder {re.escape(str(house.cache))} cannot be used.*BERTLIB_CACHE"
    ):
        datasets.fetch("text")

    house.cache.unlink()

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DatasetError, match=r"cannot be used: \[Errno 13\] Permission denied"):
        datasets.fetch("text")


def test_what_a_killed_unpacking_left_behind_is_swept_away(house, corpus):
    folder = house.cache / "toy-corpus-1.0"
    folder.mkdir(parents=True)
    (folder / ".big.bin.0123abcd.tmp").write_bytes(BIG[:1000])
    house.put_by_hand(corpus)
    datasets.fetch("text")
    assert house.files() == ["toy-corpus-1.0/big.bin", "toy-corpus-1.0/text.txt"]


# The cache folder and the command line


def test_the_cache_folder_is_the_environment_s_or_the_system_s(monkeypatch, tmp_path):
    monkeypatch.setenv("BERTLIB_CACHE", str(tmp_path))
    assert datasets.cache_folder() == tmp_path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERTLIB_CACHE", "here")
    assert datasets.cache_folder() == tmp_path / "here"
    monkeypatch.setenv("BERTLIB_CACHE", "")
    assert "bertlib" in str(datasets.cache_folder())
    assert datasets.cache_folder().is_absolute()


def test_the_command_line_lists_and_fetches(house, corpus, capsys):
    assert datasets.main([]) == 0
    listed = capsys.readouterr().out
    assert str(house.cache) in listed
    assert re.search(r"^text +1\.0 kB +no +MIT$", listed, re.MULTILINE)
    assert re.search(r"^big +1\.5 MB +no +MIT$", listed, re.MULTILINE)

    assert datasets.main(["fetch", "all"]) == 0
    folder = house.cache / "toy-corpus-1.0"
    assert capsys.readouterr() == (f"text  {folder / 'text.txt'}\nbig  {folder / 'big.bin'}\n", "")

    assert datasets.main([]) == 0
    assert re.search(r"^big +1\.5 MB +yes +MIT$", capsys.readouterr().out, re.MULTILINE)

    (folder / "big.bin").write_bytes(BIG[:-1] + b"!")
    assert datasets.main(["fetch", "--verify", "big"]) == 0
    assert (folder / "big.bin").read_bytes() == BIG


def test_the_command_line_fetches_what_it_can_and_then_fails(house, corpus, capsys):
    assert datasets.main(["fetch", "nothing", "text"]) == 1
    written = capsys.readouterr()
    assert "no data set 'nothing'" in written.err
    assert written.out.startswith("text  ")


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "bertlib.datasets"]
    assert "wikitext2-train" in subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout


# The registry of the book


def test_the_registry_is_well_formed():
    names = datasets.names()
    assert {"minilm-weights", "bert-tiny-weights", "tatoeba-spa", "wikitext2-train", "film-reviews"} <= set(names)
    first_packages = {datasets.entry(name).package for name in names}
    places = set()
    for name in names:
        entry = datasets.entry(name)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
        assert re.fullmatch(r"[0-9a-f]{64}", entry.sha256)
        assert type(entry.size) is int and entry.size > 0
        assert all(text.strip() for text in (entry.about, entry.licence, entry.origin))
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", entry.file), "a file name for every operating system"
        for package, member in entry.members.items():
            wheel = datasets._wheel(package)
            assert re.fullmatch(r"[0-9a-f]{64}", wheel.sha256) and wheel.size > 0
            assert re.fullmatch(r"[^-]+-[0-9.]+-[^-]+-[^-]+-[^-]+\.whl", wheel.file)
            assert wheel.file.split("-")[0] == package.replace("-", "_")
            assert ".." not in member and "\\" not in member and not member.startswith("/")
            assert package == entry.package or package not in first_packages, "one lock guards one package"
        places.add((entry.package, entry.file))
    assert len(places) == len(names), "two entries have one place in the cache"


def test_the_registry_names_no_host():
    assert not re.search(r"://|\.(org|com|net|io)\b", datasets.REGISTRY.read_text(encoding="utf-8"))


def test_a_cached_registry_file_is_what_the_registry_says():
    """Reads what this machine has cached; on a machine with an empty cache there is nothing to compare."""
    cached = [name for name in datasets.names() if datasets.is_cached(name) and datasets.entry(name).size < 30e6]
    for name in cached:
        path = datasets.fetch(name)
        assert wheels.sha256_of(path) == datasets.entry(name).sha256
    if "wikitext2-valid" in cached:
        assert len(gzip.decompress(datasets.fetch("wikitext2-valid").read_bytes())) == 1_146_846
