"""DCG: dataset condensation by gradient matching, blind to the graph (Zhao et al., 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcsr.methods.gradient_matching import GradientCondenser


@dataclass(frozen=True, kw_only=True)
class DCG(GradientCondenser):
    """Gradients of a network that sees features alone, on the real nodes and on the condensed ones."""

    name: ClassVar[str] = "dcg"
    summary: ClassVar[str] = "gradient matching of features, without any edges"

    @property
    def _real_edges(self) -> bool:
        return False
