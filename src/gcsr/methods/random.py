"""Random: a class-balanced random subset of the training nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from gcsr.engines.result import Context
from gcsr.methods.selection import SelectionCondenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import Pick
from gcsr.utils.progress import Progress


@dataclass(frozen=True, kw_only=True)
class Random(SelectionCondenser):
    """Real training nodes, their features, and the edges among them."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a random subset of the training nodes, class by class"

    def _work(self, nodes: int) -> Work:
        return Work(nodes)

    def _picker(
        self, ctx: Context, seed: int, generator: torch.Generator, progress: Progress
    ) -> Pick:
        return lambda places, count: torch.randperm(places.numel(), generator=generator)[:count]
