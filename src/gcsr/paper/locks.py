"""Locks between processes that share a folder; they die with their process, whatever kills it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcsr.errors import InputError

# The first bytes of the file stand for things of which there is one; the others for names.
_RESERVED = 1024
_HIGHEST = 2**62


class Locks:
    """Locks by name, each of them one byte of one file (POSIX record locks).

    The file stays empty and stays there: removing it would let two processes lock two files. The
    operating system drops the locks of a process that ends, so nothing can be left locked.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    @contextmanager
    def held(self, place: int) -> Iterator[None]:
        """Wait for one of the numbered locks, and hold it in the block."""
        self._lock(place, wait=True)
        try:
            yield
        finally:
            self._unlock(place)

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Whether the lock of that name could be had; if so it is held in the block."""
        digest = hashlib.sha256(name.encode()).digest()
        place = _RESERVED + int.from_bytes(digest[:8], "little") % (_HIGHEST - _RESERVED)
        mine = self._lock(place, wait=False)
        try:
            yield mine
        finally:
            if mine:
                self._unlock(place)

    def _lock(self, place: int, *, wait: bool) -> bool:
        try:
            # Never closed before the process ends: closing drops every lock of the process.
            if self._handle is None:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.lockf(self._handle, how, 1, place)
        except BlockingIOError:
            return False
        except OSError as error:
            raise InputError(f"{self._path}: cannot be locked ({error.strerror}).") from None
        return True

    def _unlock(self, place: int) -> None:
        if self._handle is not None:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, place)
