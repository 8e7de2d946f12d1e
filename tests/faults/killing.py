"""Processes that are killed at some moment, and what they leave behind."""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gcsr import CondensedGraph

# A fresh process for every run, without a second of imports for each.
_FORKS = mp.get_context("forkserver")
_FORKS.set_forkserver_preload(["gcsr.auto.automatic", "gcsr.api", "gcsr.cli.app", "killing"])


def _command(argv: list[str], folder: str, said: str, largest: int, cache: str) -> None:
    """What the installed program does, in this process."""
    from gcsr.cli.app import main

    torch.set_num_threads(1)
    os.chdir(folder)
    os.environ["GCSR_CACHE"] = cache
    with Path(said).open("w") as errors, Path(os.devnull).open("w") as nowhere:
        os.dup2(errors.fileno(), 2)
        os.dup2(nowhere.fileno(), 1)
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    raise SystemExit(main(argv))


def begun(
    argv: Sequence[object],
    folder: Path,
    *,
    said: Path | None = None,
    largest: int = 0,
    cache: Path | None = None,
) -> Any:
    """The command, running in a process of its own that may write files of ``largest`` bytes."""
    words = [str(word) for word in argv]
    errors = os.devnull if said is None else str(said)
    more = (str(folder), errors, largest, "" if cache is None else str(cache))
    process = _FORKS.Process(target=_command, args=(words, *more))
    process.start()
    return process


def finished(argv: Sequence[object], folder: Path) -> float:
    """The command, run to its end; how long that took."""
    began = time.perf_counter()
    process = begun(argv, folder)
    process.join()
    assert process.exitcode == 0
    return time.perf_counter() - began


@dataclass
class Tally:
    """How often a process was really killed, and what came of it."""

    killed: int = 0
    resumed: int = 0
    same: int = 0

    def add(self, argv: Sequence[object], folder: Path, whole: list[Path], moment: float) -> None:
        """Kill the command at a moment, run it again, and compare its files with ``whole``."""
        process = begun(argv, folder)
        process.join(moment)
        process.kill()
        process.join()
        self.killed += process.exitcode != 0
        finished(argv, folder)
        ours = [folder / path.name for path in whole]
        self.resumed += any(loaded(path).provenance["measured"].get("resumed") for path in ours)
        self.same += all(content(a) == content(b) for a, b in zip(ours, whole, strict=True))
        assert sorted(folder.iterdir()) == sorted(ours), "something was left behind"


def loaded(path: Path) -> CondensedGraph:
    return CondensedGraph.load(path)


def content(path: Path) -> tuple[Any, ...]:
    """Everything in a file but what was measured."""
    graph = loaded(path)
    provenance = {name: value for name, value in graph.provenance.items() if name != "measured"}
    tensors = (graph.x, graph.adjacency, graph.y)
    return provenance, *((t.dtype, t.shape, t.numpy().tobytes()) for t in tensors)


def moments(count: int, seconds: float, seed: int = 0) -> list[float]:
    """Random moments of a run that takes so long."""
    generator = random.Random(seed)
    return [generator.uniform(0, seconds) for _ in range(count)]
