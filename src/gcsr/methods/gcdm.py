"""GCDM: distribution matching along the training of networks (Liu et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.gradient.engine import Learned
from gcsr.methods.dm import DistributionCondenser
from gcsr.methods.gradient_matching import StructuredGradientCondenser
from gcsr.utils.errors import Count, Whole


@dataclass(frozen=True, kw_only=True)
class GCDMX(DistributionCondenser):
    """Class means are matched while a network trains on the condensed graph; A' = I."""

    name: ClassVar[str] = "gcdm-x"
    summary: ClassVar[str] = "distribution matching of features along training (2022)"

    epochs: Whole = 60
    outer: Count = 5
    inner: Whole = 10


@dataclass(frozen=True, kw_only=True)
class GCDM(DistributionCondenser, StructuredGradientCondenser):
    """GCDM-X with generated edges: of thirty epochs the first ten move the generator."""

    name: ClassVar[str] = "gcdm"
    summary: ClassVar[str] = "distribution matching with generated edges (2022)"

    epochs: Whole = 60
    outer: Count = 5
    inner: Whole = 10

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> Learned | None:
        learned = super()._structure(view, x, seeds)
        return None if learned is None else replace(learned, period=30)
