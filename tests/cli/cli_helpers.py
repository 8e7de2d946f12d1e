"""What the tests of the command line share."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcsr import Graph

# Every setting that costs time, made small.
TINY = [
    "--method=gcsr",
    "--set=iterations=2",
    "--set=experts=1",
    "--set=expert-epochs=4",
    "--set=max-start=3",
    "--set=hidden_channels=8",
]
PROGRAM = str(Path(sysconfig.get_path("scripts")) / "gcsr")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def program(*argv: object, cwd: Path) -> Result:
    """The installed program in a process of its own, its output in pipes."""
    words = [PROGRAM, *(str(word) for word in argv)]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def small_graph(seed: int = 0) -> Graph:
    """60 nodes of 3 classes: features around a center per class, edges mostly within classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 20)
    x = np.eye(3, 8)[y] + 0.3 * rng.standard_normal((60, 8))
    chance = np.where(y[:, None] == y[None, :], 0.2, 0.02)
    upper = np.triu(rng.random((60, 60)) < chance, 1)
    edges = np.stack(np.nonzero(upper | upper.T))
    order = rng.permutation(60)
    return Graph.from_arrays(x, edges, y, train=order[:20], val=order[20:35], test=order[35:])


def unwrapped(shown: str) -> list[str]:
    """The rows of `gcsr inspect`, each on one line, with single spaces."""
    rows: list[str] = []
    for line in shown.splitlines():
        words = " ".join(line.split())
        if line.startswith(" "):
            rows[-1] += f" {words}"
        else:
            rows.append(words)
    return rows


def folder_content(folder: Path) -> dict[str, bytes]:
    """Every file, hidden ones included."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
