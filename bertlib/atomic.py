"""A file is there whole or not at all: a temporary neighbour is written, and takes its place at the end."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open `path` for writing bytes; it changes only when the block ends without an error.

    A reader sees the old file or the new one, even when the machine stops in between. After an error the old file is as
    it was and the temporary is gone; after a kill the temporary, `.NAME.*.tmp` beside `path`, stays behind.

    Raises:
        OSError: when the folder is missing or cannot be written, or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
