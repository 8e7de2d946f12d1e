"""DM (Zhao and Bilen, 2023) and GCDM (Liu et al., 2022): distribution matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from gcsr.engines.gradient.learners import ClassMeans, Network
from gcsr.engines.loop import PRECISIONS
from gcsr.engines.result import Context
from gcsr.methods.gradient_matching import GradientCondenser, StructuredGradientCondenser
from gcsr.methods.selection import KCenterStart
from gcsr.starts.sample import Start
from gcsr.utils.errors import Count, Rate, Whole


@dataclass(frozen=True, kw_only=True)
class DistributionCondenser(KCenterStart, GradientCondenser):
    """Distribution matching: class means of the embeddings of networks.

    For every class c: the squared distance of the mean embeddings of real and condensed nodes, divided
    by h; Σ_c |φ̄_c - φ̄'_c|² / h. An embedding is the input of the last layer, h numbers. The default
    model ``sgc`` has one layer: its embeddings are features after two hops and do not depend on the
    network's weights. Only ``model="sgc2"``, ``"sgc-relu"`` and ``"gcn"`` use the network. ``inner``
    steps train it by cross-entropy on the condensed graph; on the matching loss it would learn equal
    embeddings.

    It is a subclass of ``GradientCondenser`` because networks, epochs and batches of real nodes are the
    same as in gradient matching; only what is compared differs.
    """

    weighs_classes = False

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
    """One match per random network, which is not trained; A' = I.

    With the default ``model="sgc"`` the match does not depend on the network.
    """

    name = "dm"
    summary = "distribution matching of features under random networks (WACV 2023)"
    reference = 'Zhao and Bilen, "Dataset Condensation with Distribution Matching", WACV 2023'

    epochs: Whole = 300
    outer: Count = 1
    inner: Whole = 0


@dataclass(frozen=True, kw_only=True)
class GCDMX(DistributionCondenser):
    """Class means are matched while a network trains on the condensed graph; A' = I."""

    name = "gcdm-x"
    summary = "distribution matching of features along training (2022)"
    reference = 'Liu et al., "Graph Condensation via Receptive Field Distribution Matching", 2022'

    epochs: Whole = 60
    outer: Count = 5
    inner: Whole = 10


@dataclass(frozen=True, kw_only=True)
class GCDM(DistributionCondenser, StructuredGradientCondenser):
    """GCDM-X with generated edges: the first ten of every thirty epochs train the generator."""

    name = "gcdm"
    summary = "distribution matching with generated edges (2022)"
    reference = 'Liu et al., "Graph Condensation via Receptive Field Distribution Matching", 2022'
    period = 30

    epochs: Whole = 60
    outer: Count = 5
    inner: Whole = 10
