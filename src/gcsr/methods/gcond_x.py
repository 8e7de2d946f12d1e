"""GCond-X: gradient matching with the real graph on one side and features on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcsr.methods.gradient_matching import GradientCondenser


@dataclass(frozen=True, kw_only=True)
class GCondX(GradientCondenser):
    """GCond (Jin et al., 2022) with A' = I: what edges say goes into the features."""

    name: ClassVar[str] = "gcond-x"
    summary: ClassVar[str] = "gradient matching of features against the real graph"

    def _check_structure(self) -> None:
        """There is no structure to check."""
