"""What a run takes, stage by stage, told apart by the names under which work reports its progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from gcsr.utils.devices import peak_memory_bytes

CPU = torch.device("cpu")


@dataclass
class Stage:
    """Wall clock, processor time of all threads, and the most memory the process held meanwhile."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


class Stopwatch:
    """A progress callback that charges the time before a report to the stage that reports.

    ``names`` says to which stage work belongs, by the first words of what it reports; what nobody
    knows goes to the stage before it.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.stages: dict[str, Stage] = {}
        self._names, self._lock = names, threading.Lock()
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._current: str | None = None
        _forget_peak()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """A report of work."""
        found = [name for words, name in self._names.items() if stage.startswith(words)]
        with self._lock:
            self._charge(found[0] if found else self._current)

    def end(self, stage: str) -> None:
        """Charge what came since the last report to a stage."""
        with self._lock:
            self._charge(stage)

    def _charge(self, name: str | None) -> None:
        if name is None:
            return
        wall, cpu = time.perf_counter(), time.process_time()
        stage = self.stages.setdefault(name, Stage())
        stage.seconds += wall - self._wall
        stage.cpu_seconds += cpu - self._cpu
        self._wall, self._cpu = wall, cpu
        # Since it was last forgotten.
        stage.peak_bytes = max(stage.peak_bytes, peak_memory_bytes(CPU))
        if name != self._current:
            _forget_peak()
        self._current = name


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return
