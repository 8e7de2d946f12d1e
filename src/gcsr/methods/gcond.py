"""Gradient matching: DCG (Zhao et al., 2021), GCond (Jin et al., ICLR 2022), DosCond (KDD 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gcsr.methods.gradient_matching import GradientCondenser, StructuredGradientCondenser
from gcsr.utils.errors import Count, Rate, Whole


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
