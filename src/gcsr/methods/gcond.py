"""GCond: gradient matching with a structure that is generated from features (Jin et al., ICLR 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcsr.methods.gradient_matching import StructuredGradientCondenser


@dataclass(frozen=True, kw_only=True)
class GCond(StructuredGradientCondenser):
    """Features and an edge generator learn in turns; ``num_hops`` above 0 is the paper's GCond+MPI."""

    name: ClassVar[str] = "gcond"
    summary: ClassVar[str] = "gradient matching with generated edges (ICLR 2022)"
