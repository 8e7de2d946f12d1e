"""How much an input may cost: memory in proportion to its bytes, and seconds."""

from __future__ import annotations

import resource
import time
from pathlib import Path

from fuzz.target import FindingError, Target, survives
from gcsr.utils.safe_io import allowed_bytes

# A reader unfolds what it may, checks it and copies it to the type it computes in.
COPIES = 3
MOST_SECONDS = 10
# Beyond the memory of the process as it stands: the machine survives whatever is found.
_ROOM = 6 * 2**30
_CLEAR = Path("/proc/self/clear_refs")


def limit_memory() -> None:
    """Let allocations fail far beyond what any input may take."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def peak() -> int:
    """Largest resident memory since it was last forgotten."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Count the peak anew from the memory that is resident now (Linux)."""
    _CLEAR.write_text("5", encoding="ascii")


class Guard:
    """Runs inputs and keeps what the worst of them cost."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.executions = self.accepted = 0
        self.slowest = 0.0
        self.largest = 0
        self._base = 0

    def __call__(self, data: bytes) -> None:
        """Run one input; what must not happen raises."""
        if not self.executions:
            # Not before: the fuzzer's own tables are no input's memory.
            forget_peak()
            self._base = peak()
        elif peak() > self._base:
            # What was allocated since the last input was the fuzzer's, which changes inputs.
            forget_peak()
            self._base = peak()
        start = time.perf_counter()
        self.accepted += survives(self.target, data)
        seconds = time.perf_counter() - start
        self.executions += 1
        self.slowest = max(self.slowest, seconds)
        grown = peak() - self._base
        if grown > 0:
            self.largest = max(self.largest, grown)
            forget_peak()
            self._base = peak()
        if grown > COPIES * allowed_bytes(len(data)):
            raise FindingError(f"{grown:,} bytes of memory for an input of {len(data):,}")
        if seconds > MOST_SECONDS:
            raise FindingError(f"{seconds:.1f} s for an input of {len(data):,} bytes")
