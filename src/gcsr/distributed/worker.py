"""What runs in a worker process: one unit, with the threads and versions of the submitting process."""

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
class Environment:
    """What must be the same in every process for results to be the same bytes."""

    versions: dict[str, str]
    threads: int

    @classmethod
    def here(cls) -> Environment:
        """That of this process."""
        versions = {"gcsr": __version__, "torch": torch.__version__}
        versions |= {name: version(name) for name in ("numpy", "scipy")}
        return cls(versions, torch.get_num_threads())

    def apply(self) -> None:
        """Use the same number of threads; refuses a machine with other versions."""
        for name, found in Environment.here().versions.items():
            wanted = self.versions[name]
            require(
                wanted == found,
                f"cluster: workers must have {name} {wanted}, got {found}; install the same versions on"
                " every machine, so that results are the same bytes.",
            )
        # Sums over large tensors depend on the number of threads.
        torch.set_num_threads(self.threads)
        # The other cores have units of their own.
        limit_jobs(1)


class Kept:
    """The last value that this process made, for units that need it again."""

    def __init__(self) -> None:
        self._key: object = None
        self._value: Any = None

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        """The value of ``key``, made if it is not the last one."""
        if self._key != key:
            self.clear()  # free the memory first
            self._value = make()
            self._key = key
        return self._value

    def clear(self) -> None:
        """Keep nothing."""
        self._key = self._value = None


_LAST = Kept()


@dataclass(frozen=True, eq=False)
class Shared:
    """An object of the store that units read."""

    ref: Any

    def get(self) -> Any:
        """The object itself, kept for the next unit of this process."""
        return _LAST.get(self.ref.hex(), self.read)

    def forget(self) -> None:
        """The next unit reads it again: a method may have changed it in place."""
        _LAST.clear()

    def read(self) -> Any:
        """The object itself; arrays in it are in the store and read-only."""
        import ray  # noqa: PLC0415 - an extra

        return ray.get(self.ref)


def execute(
    environment: Environment,
    function: Callable[..., Any],
    number: int,
    actor: Any,
    arguments: tuple[Any, ...],
    *near: Any,
) -> tuple[bool, Any]:
    """The Ray task; returns ``True`` and ``function(*near, *arguments, progress)``."""
    environment.apply()
    report: Progress = silent if actor is None else _Reports(actor, number)
    return True, function(*near, *arguments, report)


@dataclass
class _Reports:
    """Progress for the submitting process, at most a few times per second."""

    actor: Any
    number: int
    last: float = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - self.last >= REPORT_EVERY:
            self.last = now
            sent = self.actor.report.remote(self.number, stage, done, total)
            if done == total:
                # The report must arrive before the unit's result.
                import ray  # noqa: PLC0415 - an extra

                with suppress(Exception):
                    ray.get(sent, timeout=1.0)


def ask(report: Progress, question: Any) -> Any:
    """The answer of the submitting process; the unit waits for it."""
    if not isinstance(report, _Reports):
        raise InputError("cluster: this works inside a cluster task only.")
    import ray  # noqa: PLC0415 - an extra

    return ray.get(report.actor.ask.remote(report.number, question))
