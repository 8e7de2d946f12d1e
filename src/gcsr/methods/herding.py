"""Herding: training nodes whose mean embedding follows that of their class (Welling, 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcsr.engines.selection.coreset import herd
from gcsr.methods.selection import EmbeddedSelection


@dataclass(frozen=True, kw_only=True)
class Herding(EmbeddedSelection):
    """Real training nodes, chosen so that their mean stays near the mean of their class."""

    name: ClassVar[str] = "herding"
    summary: ClassVar[str] = "training nodes whose mean embedding is that of their class"

    def _choose(self, embeddings: Tensor, count: int) -> Tensor:
        return herd(embeddings, count)
