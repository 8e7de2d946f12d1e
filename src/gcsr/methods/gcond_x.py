"""GCond-X: gradient matching with the real graph on one side and features on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcsr.methods.gradient_matching import GradientCondenser


@dataclass(frozen=True, kw_only=True)
class GCondX(GradientCondenser):
    """GCond (Jin et al., 2022) with A' = I: the features carry the information of the edges."""

    name: ClassVar[str] = "gcond-x"
    summary: ClassVar[str] = "gradient matching of features against the real graph"
