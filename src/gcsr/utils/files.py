"""Files that are complete or absent, and POSIX locks on files that end with their process.

Where the system has no such locks (Windows), taking one raises ``OSError``.
"""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gcsr.utils.safe_io import accessing

_UMASK = threading.Lock()


def write_atomically(path: Path, blob: bytes) -> None:
    """Write a file that is either complete or absent, whatever happens meanwhile."""
    with accessing(f"{path}: cannot be written"), replacing(path) as stream:
        stream.write(blob)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when the block ends without an error."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o666 & ~current_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def current_umask() -> int:
    """The file mode mask of this process."""
    # It can only be read by changing it, and threads write too.
    with _UMASK:
        current = os.umask(0)
        os.umask(current)
    return current


def lock_file(handle: int, *, wait: bool) -> None:
    """Lock an open file until it is closed; ``BlockingIOError`` where another has it.

    Not the kind of lock that SQLite takes, nor that of :func:`lock_byte`: they do not meet.
    """
    fcntl = _fcntl()
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_byte(handle: int, place: int, *, wait: bool) -> None:
    """Lock one byte of an open file, there or not; ``BlockingIOError`` where another process has it.

    Closing the file anywhere in this process drops every such lock of the process.
    """
    fcntl = _fcntl()
    fcntl.lockf(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)


def unlock_byte(handle: int, place: int) -> None:
    """Let go of one byte."""
    fcntl = _fcntl()
    fcntl.lockf(handle, fcntl.LOCK_UN, 1, place)


def _fcntl() -> Any:
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no POSIX file locks") from None
    return fcntl
