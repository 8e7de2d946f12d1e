"""Ctrl-C: files are written whole or not at all, and the last message is true."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_written: list[Path] = []
_unfinished: list[Path] = []


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and a polite kill wait until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    arrived: list[int] = []
    previous = {
        number: signal.signal(number, lambda got, _: arrived.append(got))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    for late in arrived:
        signal.raise_signal(late)


def remember_written(paths: Iterable[Path]) -> None:
    """These files are complete, whatever comes next."""
    _written.extend(paths)


def remember_unfinished(folder: Path) -> None:
    """The state of the run is here, once there is one."""
    _unfinished.append(folder)


def forget_written() -> None:
    """A new command begins."""
    _written.clear()
    _unfinished.clear()


def interrupted() -> str:
    """What Ctrl-C left behind."""
    # States; the room that knows their names is behind a second of imports.
    left = [folder for folder in _unfinished if any(folder.glob("*.part"))]
    if left and not _written:
        return f"interrupted; the same command continues from {left[0]}"
    if not _written:
        return "interrupted; nothing was written"
    return f"interrupted; written before that: {', '.join(map(str, _written))}"
