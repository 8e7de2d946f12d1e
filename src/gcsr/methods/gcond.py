"""Gradient matching: DCG, GCond, DosCond and SGDD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.gradient.structures import GraphonGenerator, TransportTerm
from gcsr.methods.gradient_matching import GradientCondenser, StructuredGradientCondenser
from gcsr.utils.errors import Count, Rate, Weight, Whole


@dataclass(frozen=True, kw_only=True)
class DCG(GradientCondenser):
    """Gradients of a network that sees features alone, on the real nodes and on the condensed ones."""

    name = "dcg"
    summary = "gradient matching of features, without any edges"
    reference = 'Zhao, Mopuri and Bilen, "Dataset Condensation with Gradient Matching", ICLR 2021'
    real_edges = False


@dataclass(frozen=True, kw_only=True)
class GCondX(GradientCondenser):
    """GCond (Jin et al., 2022) with A' = I: the features carry the information of the edges."""

    name = "gcond-x"
    summary = "gradient matching of features against the real graph"
    reference = 'Jin et al., "Graph Condensation for Graph Neural Networks", ICLR 2022'


@dataclass(frozen=True, kw_only=True)
class GCond(StructuredGradientCondenser):
    """Features and an edge generator are trained in turns.

    ``num_hops`` above 0 is the GCSR paper's GCond+MPI.
    """

    name = "gcond"
    summary = "gradient matching with generated edges (ICLR 2022)"
    reference = 'Jin et al., "Graph Condensation for Graph Neural Networks", ICLR 2022'


@dataclass(frozen=True, kw_only=True)
class DosCond(StructuredGradientCondenser):
    """GCond with one match per network, at its initial weights, which are never trained."""

    name = "doscond"
    summary = "gradient matching at initial weights, with generated edges (KDD 2022)"
    reference = 'Jin et al., "Condensing Graphs via One-Step Gradient Matching", KDD 2022'

    model: str = "gcn"
    distance: Literal["cosine", "squared", "relative"] = "relative"
    epochs: Whole = 1000
    feature_lr: Rate = 0.1
    outer: Count = 1
    inner: Whole = 0


@dataclass(frozen=True, kw_only=True)
class SGDD(StructuredGradientCondenser):
    """GCond with another generator and an optimal-transport term (Yang et al., 2023).

    Args:
        structure_loss: ``stabilized``: on Laplacians with a scaled plan, smooth gradients and steps
            that are clipped and skipped where they are not finite; ``released``: the formula of the
            authors' code, which raises an error when it is not finite any more; or ``off``.
        structure_weight: its weight.
        samples: maximal number of real nodes in it.
        sinkhorn: rounds of scaling the plan.
    """

    name = "sgdd"
    summary = "gradient matching with a graphon and a structure loss (NeurIPS 2023)"
    reference = (
        'Yang et al., "Does Graph Distillation See Like Vision Dataset Counterpart?", NeurIPS 2023'
    )
    generator = GraphonGenerator

    smoothness: Weight = 0.01
    structure_loss: Literal["stabilized", "released", "off"] = "stabilized"
    structure_weight: Weight = 1e-6
    samples: Count = 500
    sinkhorn: Whole = 5

    def _term(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> TransportTerm | None:
        if self.structure_loss == "off":
            return None
        return TransportTerm(
            view.visible.adjacency,
            x,
            seeds,
            form=self.structure_loss,
            weight=self.structure_weight,
            samples=self.samples,
            rounds=self.sinkhorn,
        )
