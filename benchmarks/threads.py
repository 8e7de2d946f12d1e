"""Seconds of a condensation by the number of threads, alone and beside a busy process on each core.

    python benchmarks/threads.py --out results/bench/threads-cpu.json digits:50

A cell is ``graph:nodes``. The numbers of threads are what ``OMP_NUM_THREADS`` says, or nothing. They
take turns, so that a change of the machine's load meets all of them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rows import measure_cells

REPEATS = 3
THREADS = ("default", "1", "2")


def condensed(name: str, nodes: str, threads: str, root: str | None) -> float:
    """Seconds of the command, with the start of Python."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    if threads != "default":
        environment["OMP_NUM_THREADS"] = threads
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "small.safetensors")
        command = [sys.executable, "-m", "gcsr", "condense", name, "--nodes", nodes, "--out", out]
        command += ["--device", "cpu", "--quiet", *(["--root", root] if root else [])]
        began = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - began


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row without other processes, one with as many as there are cores."""
    name, nodes = cell.split(":")
    cores = os.cpu_count() or 1
    for busy in (0, cores):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
        try:
            turns = [
                [condensed(name, nodes, threads, arguments.root) for threads in THREADS]
                for _ in range(REPEATS)
            ]
        finally:
            for other in others:
                other.kill()
                other.wait()
        seconds = dict(zip(THREADS, zip(*turns, strict=True), strict=True))
        medians = {threads: statistics.median(times) for threads, times in seconds.items()}
        ratio = medians["default"] / medians["1"]
        print(f"{cell}, {busy} busy processes: {medians}, default to one thread {ratio:.2f}")
        yield {
            "cell": f"{cell}, {busy} busy",
            "cores": cores,
            "busy_processes": busy,
            "seconds": seconds,
            "ratio_to_one_thread": ratio,
        }


if __name__ == "__main__":
    measure_cells(argparse.ArgumentParser(description=__doc__), measured)
