"""Locks between processes on files; they die with their process, whatever kills it.

They are POSIX locks. Where the system has none (Windows), taking one raises ``OSError``.
"""

from __future__ import annotations

import errno
from typing import Any


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
