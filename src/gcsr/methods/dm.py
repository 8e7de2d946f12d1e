"""DM (Zhao and Bilen, 2023) and GCDM (Liu et al., 2022): distribution matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from gcsr.engines.gradient.learners import ClassMeans, Network
from gcsr.engines.loop import PRECISIONS
from gcsr.engines.result import Context
from gcsr.methods.gradient_matching import GradientCondenser, StructuredGradientCondenser
from gcsr.methods.kcenter import KCenterStart
from gcsr.starts.sample import Start
from gcsr.utils.errors import Count, Rate, Whole


@dataclass(frozen=True, kw_only=True)
class DistributionCondenser(KCenterStart, GradientCondenser):
    """Class means of embeddings should agree under random networks.

    The loss is Σ_c |φ̄_c - φ̄'_c|² / h: of the training nodes and of the condensed nodes of class c, the
    mean of what the last layer's weights multiply, h numbers. ``inner`` steps train the network by
    cross-entropy on the condensed graph; on the matching loss it would learn equal embeddings. The
    last layer of ``sgc`` is its only one: means of features after two hops are matched, and nothing
    depends on the network.
    """

    weighs_classes: ClassVar[bool] = False

    model: str = "sgc"
    feature_lr: Rate = 0.1
    distance: Literal["squared"] = "squared"

    def _matched(self, learner: Network) -> ClassMeans:
        return ClassMeans(learner)

    def _rows(self, ctx: Context, labels: Tensor) -> list[Start]:
        if self.selection == "random":
            return super()._rows(ctx, labels)
        return self._k_center_starts(ctx, labels, self.num_hops, PRECISIONS[self.dtype])


@dataclass(frozen=True, kw_only=True)
class DM(DistributionCondenser):
    """One match per random network, which is not trained; A' = I."""

    name: ClassVar[str] = "dm"
    summary: ClassVar[str] = "distribution matching of features under random networks (WACV 2023)"

    epochs: Whole = 300
    outer: Count = 1
    inner: Whole = 0


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
    period: ClassVar[int] = 30

    epochs: Whole = 60
    outer: Count = 5
    inner: Whole = 10
