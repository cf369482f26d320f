"""A package index on this machine, for tests: tiny wheels, a PEP 503 server that can be slow, cut off or refuse."""

import hashlib
import io
import re
import threading
import time
import zipfile
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def make_wheel(folder: Path, package: str, members: dict[str, bytes], tags: str = "py3-none-any") -> Path:
    """Write the wheel of `package` 1.0 with these members, stored as they are, so that sizes can be counted on."""
    stem = f"{package.replace('-', '_')}-1.0"
    info = {
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
        f"{stem}.dist-info/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n".encode(),
        f"{stem}.dist-info/RECORD": b"",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in (info | members).items():
            archive.writestr(zipfile.ZipInfo(name), data)
    path = folder / f"{stem}-{tags}.whl"
    path.write_bytes(content.getvalue())
    return path


@dataclass
class Request:
    """What was asked for, from where on, by whom, and how many bytes went out."""

    file: str
    range: str | None
    by_pip: bool
    sent: int = 0


class PackageIndex(ThreadingHTTPServer):
    """Serves the wheels of a folder; `with PackageIndex(folder) as index: ... index.url`."""

    daemon_threads = True

    def __init__(self, folder: Path):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.ranges = True  # whether parts can be asked for
        self.shift = 0  # how far before the asked place a part begins
        self.rate = None  # bytes a second; None is as fast as it goes
        self.cut_at = None  # a wheel's connection ends after so many bytes
        self.only_pip = False  # whether a wheel is refused to any client but pip
        self.requests: list[Request] = []  # for wheels

    @cached_property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple/"

    def ranges_asked(self) -> list[str | None]:
        """The Range header of every request for a wheel that pip did not make: pip is stopped before it matters."""
        return [request.range for request in self.requests if not request.by_pip]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that was killed is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: PackageIndex

    def do_GET(self):
        place, _, file = self.path.strip("/").partition("/")
        if place == "simple":
            self._page(file)
        else:
            self._wheel(self.server.folder / file)

    def _page(self, package: str):
        wheels = sorted(self.server.folder.glob(f"{package.replace('-', '_')}-*.whl"))
        if not wheels:
            self.send_error(404)
            return
        links = [
            f'<a href="/files/{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">{wheel.name}</a>'
            for wheel in wheels
        ]
        self._send("".join(links).encode(), Content_Type="text/html")

    def _wheel(self, path: Path):
        wanted = self.headers.get("Range")
        self.request_made = Request(path.name, wanted, self.headers.get("User-Agent", "").startswith("pip/"))
        self.server.requests.append(self.request_made)
        if self.server.only_pip and not self.request_made.by_pip:
            self.send_error(401)
            return
        content = path.read_bytes()
        if not (wanted and self.server.ranges):
            self._send(content)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) - self.server.shift
        if start >= len(content):
            self.send_error(416)
            return
        self._send(content[start:], 206, Content_Range=f"bytes {start}-{len(content) - 1}/{len(content)}")

    def _send(self, content: bytes, status: int = 200, **headers: str):
        self.send_response(status)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        is_wheel = self.path.endswith(".whl")
        if is_wheel and self.server.cut_at is not None:
            content = content[: self.server.cut_at]
        step = 1 << 15
        for start in range(0, len(content), step):
            self.wfile.write(content[start : start + step])
            if is_wheel:
                self.request_made.sent += len(content[start : start + step])
                time.sleep(step / self.server.rate if self.server.rate else 0)

    def log_message(self, *_):
        """Nothing on stderr."""
