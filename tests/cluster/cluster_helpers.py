"""What the tests of clusters share: graphs, bytes that must agree, and a killer of workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from gcsr import CondensedGraph
from gcsr.models.sparse import SparseTopology
from helpers import CPU

UNIT = b"ray::execute"


def content(graphs: Sequence[CondensedGraph]) -> list[Any]:
    """All of condensed graphs but what was measured with a clock."""
    return [
        (
            g.x.numpy().tobytes(),
            g.adjacency.numpy().tobytes(),
            g.y.numpy().tobytes(),
            {name: value for name, value in g.provenance.items() if name != "measured"},
        )
        for g in graphs
    ]


def random_matrix(nodes: int, neighbors: int, features: int) -> tuple[SparseTopology, np.ndarray]:
    """A random graph's topology, and features."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, nodes, (2, nodes * neighbors // 2), dtype=np.int32)
    half = sp.coo_array((np.ones(ends.shape[1], np.float32), tuple(ends)), shape=(nodes, nodes))
    adjacency = sp.csr_array(half + half.T)
    return SparseTopology(adjacency, CPU), rng.standard_normal((nodes, features), dtype=np.float32)


def units_at_work() -> Iterator[int]:
    """Worker processes below this one that are at a unit."""
    parents, titles = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            titles[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    for process, title in titles.items():
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if title.startswith(UNIT) and above == os.getpid():
            yield process


class Killer:
    """Kills, while its block runs, as many workers as it was told to, each in the middle of a unit."""

    def __init__(self, kills: int = 1, after: float = 0.3) -> None:
        self._kills, self._after = kills, after
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hunt, daemon=True)
        self.killed: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _hunt(self) -> None:
        while not self._over.is_set() and len(self.killed) < self._kills:
            seen = set(units_at_work())
            time.sleep(self._after)
            still = seen & set(units_at_work()) - set(self.killed)
            if still and not self._over.is_set():
                victim = min(still)
                os.kill(victim, signal.SIGKILL)
                self.killed.append(victim)
