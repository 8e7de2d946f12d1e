"""The datasets and sizes of the published tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gcsr.errors import require

# Condensed nodes of the low, middle and high ratio.
SIZES: dict[str, tuple[int, int, int]] = {
    "citeseer": (30, 60, 120),
    "cora": (35, 70, 140),
    "ogbn-arxiv": (90, 454, 909),
    "flickr": (44, 223, 446),
    "reddit": (76, 153, 307),
}


@dataclass(frozen=True)
class Cell:
    """One dataset at one published size."""

    dataset: str
    nodes: int

    @classmethod
    def nearest(cls, dataset: str, nodes: int, *, preset: str = "paper") -> Cell:
        """The published size that is nearest in ratio."""
        require(
            dataset in SIZES,
            f"preset: {preset!r} has no settings for {dataset!r}; accepted: {', '.join(SIZES)}.",
        )
        return cls(dataset, min(SIZES[dataset], key=lambda size: abs(math.log(size / nodes))))

    @property
    def ratio(self) -> int:
        """0, 1 or 2 for the low, middle or high ratio."""
        return SIZES[self.dataset].index(self.nodes)

    def __str__(self) -> str:
        return f"{self.dataset}, {self.nodes} nodes"


# From a cell and the condensing model, if one was asked for, to a method's settings.
Table = Callable[[Cell, str | None], dict[str, Any]]
