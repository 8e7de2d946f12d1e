"""What runs in a worker process: one unit, with the threads and the versions of who asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import torch

from gcsr.utils.errors import InputError, require
from gcsr.utils.parallel import limit_jobs
from gcsr.utils.progress import Progress, silent
from gcsr.version import __version__

# Seconds between two reports of one unit.
REPORT_EVERY = 0.2


@dataclass(frozen=True)
class Terms:
    """What must be the same in every process for results to be the same bytes."""

    gcsr: str
    torch: str
    numpy: str
    scipy: str
    threads: int

    @classmethod
    def here(cls) -> Terms:
        """Those of this process."""
        numpy, scipy = version("numpy"), version("scipy")
        return cls(__version__, torch.__version__, numpy, scipy, torch.get_num_threads())

    def accept(self) -> None:
        """Compute as the one who asks would; refuses where this machine has other versions."""
        for name in ("gcsr", "torch", "numpy", "scipy"):
            wanted, found = getattr(self, name), getattr(Terms.here(), name)
            require(
                wanted == found,
                f"cluster: a worker has {name} {found} and not {wanted}, so its results would not be"
                " the same bytes; install the same versions on every machine.",
            )
        # Sums over large tensors depend on how many threads share them.
        torch.set_num_threads(self.threads)
        # The other cores have units of their own.
        limit_jobs(1)


@dataclass(frozen=True, eq=False)
class Shared:
    """An object of the store that a unit reads; a process keeps the last one it read."""

    ref: Any

    def get(self) -> Any:
        """The object itself, kept for the next unit."""
        return _LAST.get(self.ref.hex(), self.read)

    def read(self) -> Any:
        """The object itself; arrays in it lie in the store and cannot be written to."""
        import ray  # noqa: PLC0415 - an extra

        return ray.get(self.ref)


class Kept:
    """The last thing of its kind that this process made, for the units that want it again."""

    def __init__(self) -> None:
        self._key: object = None
        self._value: Any = None

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        """What was made for ``key``, or what ``make`` makes."""
        if self._key != key:
            self._key = self._value = None  # room first
            self._value = make()
            self._key = key
        return self._value


_LAST = Kept()


def execute(
    terms: Terms,
    function: Callable[..., Any],
    number: int,
    desk: Any,
    arguments: tuple[Any, ...],
    *near: Any,
) -> tuple[bool, Any]:
    """The Ray task: ``function(*near, *arguments, progress)``, after a word that it is done."""
    terms.accept()
    report: Progress = silent if desk is None else _Reports(desk, number)
    return True, function(*near, *arguments, report)


class _Reports:
    """Progress for the one who asked, not more often than somebody can read."""

    def __init__(self, desk: Any, number: int) -> None:
        self._desk, self._number, self._last = desk, number, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - self._last >= REPORT_EVERY:
            self._last = now
            told = self._desk.tell.remote(self._number, stage, done, total)
            if done == total:
                # Before the unit's result is there, or nobody would read it.
                import ray  # noqa: PLC0415 - an extra

                with suppress(Exception):
                    ray.get(told, timeout=1.0)


def ask(report: Progress, question: Any) -> Any:
    """The answer of the process that gave this unit, which is asked while the unit waits."""
    if not isinstance(report, _Reports):
        raise InputError("cluster: this works inside a cluster task only.")
    import ray  # noqa: PLC0415 - an extra

    return ray.get(report._desk.ask.remote(report._number, question))
