"""DosCond: gradient matching in one step (Jin et al., KDD 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcsr.methods.gradient_matching import StructuredGradientCondenser
from gcsr.utils.errors import Count, Rate, Whole


@dataclass(frozen=True, kw_only=True)
class DosCond(StructuredGradientCondenser):
    """GCond with one match per network, at its initial weights, which are never trained."""

    name: ClassVar[str] = "doscond"
    summary: ClassVar[str] = "gradient matching at initial weights, with generated edges (KDD 2022)"

    model: str = "gcn"
    distance: Literal["cosine", "squared", "relative"] = "relative"
    epochs: Whole = 1000
    feature_lr: Rate = 0.1
    outer: Count = 1
    inner: Whole = 0
