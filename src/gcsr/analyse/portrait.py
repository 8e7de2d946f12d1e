"""All numbers about one graph, real or condensed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcsr.analyse.labelled import LabelledGraph
from gcsr.analyse.statistics import (
    ClassBalance,
    Distribution,
    ccns,
    class_balance,
    degree_distribution,
    density,
    edge_homophily,
    node_homophily,
    strength_distribution,
    weight_distribution,
)


@dataclass(frozen=True, eq=False)
class Portrait:
    """What one graph looks like; its diagonal is left out everywhere.

    Attributes:
        nodes: how many there are.
        entries: entries of the adjacency that are not zero; an undirected edge has two.
        density: ``entries`` by nodes².
        threshold: the weight above which an entry counts as an edge in the next three.
        density_above: the same density of edges above the threshold.
        degrees: neighbours per node, over edges above the threshold.
        weights: entries above the threshold.
        strengths: summed weight per node, over all entries.
        edge_homophily: share of the entries that join equal labels.
        weighted_edge_homophily: share of the weight that does.
        node_homophily: mean over nodes of the weight share of neighbours that have their label.
        ccns: cross-class neighbourhood similarity, ``(C, C)``; NaN for absent classes.
        balance: nodes per class.
    """

    nodes: int
    entries: int
    density: float
    threshold: float
    density_above: float
    degrees: Distribution
    weights: Distribution
    strengths: Distribution
    edge_homophily: float | None
    weighted_edge_homophily: float | None
    node_homophily: float | None
    ccns: np.ndarray
    balance: ClassBalance


def portrait(graph: LabelledGraph, threshold: float = 0.0) -> Portrait:
    """Measure one graph."""
    return Portrait(
        nodes=graph.num_nodes,
        entries=graph.num_entries,
        density=density(graph),
        threshold=threshold,
        density_above=density(graph, threshold),
        degrees=degree_distribution(graph, threshold),
        weights=weight_distribution(graph, threshold),
        strengths=strength_distribution(graph),
        edge_homophily=edge_homophily(graph),
        weighted_edge_homophily=edge_homophily(graph, weighted=True),
        node_homophily=node_homophily(graph),
        ccns=ccns(graph),
        balance=class_balance(graph.shares),
    )
