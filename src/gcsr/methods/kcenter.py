"""K-Center: training nodes that cover their class (Sener and Savarese, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from gcsr.engines.selection.coreset import k_center
from gcsr.methods.selection import EmbeddedSelection


@dataclass(frozen=True, kw_only=True)
class KCenter(EmbeddedSelection):
    """Real training nodes, chosen so that no node of their class is far from all of them."""

    name: ClassVar[str] = "kcenter"
    summary: ClassVar[str] = "training nodes that cover the embeddings of their class"

    def _choose(self, embeddings: Tensor, count: int) -> Tensor:
        return k_center(embeddings, count)
