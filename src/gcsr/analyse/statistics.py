"""What a labelled graph looks like, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gcsr.analyse.labelled import LabelledGraph
from gcsr.equations import cross_class_similarity
from gcsr.graph import Graph

# Edges as the paper's Table 1 lists them: before duplicates were merged (Cora, Citeseer), once per
# citation (ogbn-arxiv), in both directions (Flickr), or before they were thinned out (Reddit).
LISTED_EDGES = {
    "cora": 5_429,
    "citeseer": 4_732,
    "ogbn-arxiv": 1_166_243,
    "flickr": 899_756,
    "reddit": 57_307_946,
}
BINS = 20
# The largest degree, in mean degrees, from which equal bins would show nothing.
HEAVY_TAIL = 8


# -- structure and labels ----------------------------------------------------------------------------


def ccns(graph: LabelledGraph) -> np.ndarray:
    """Cross-class neighbourhood similarity with weighted histograms.

    NaN for absent classes, and everywhere in a graph without edges, where nobody has a neighbourhood.
    """
    if not graph.num_entries:
        return np.full((graph.shares.shape[1],) * 2, np.nan)
    similarity = cross_class_similarity(
        torch.from_numpy(graph.weighted_histograms), torch.from_numpy(graph.shares)
    )
    return similarity.numpy()


@dataclass(frozen=True)
class CcnsDistance:
    """How far two CCNS matrices are apart, over the classes that both have.

    Attributes:
        frobenius: root of the summed squared differences, diagonal included; ``None`` where there is
            no class to compare.
        off_diagonal_correlation: Pearson's, over pairs of different classes; ``None`` where there are
            fewer than two pairs or one side is constant.
        classes: how many classes were compared.
    """

    frobenius: float | None
    off_diagonal_correlation: float | None
    classes: int


def ccns_distance(first: np.ndarray, second: np.ndarray) -> CcnsDistance:
    """Compare two CCNS matrices."""
    both = ~(np.isnan(np.diag(first)) | np.isnan(np.diag(second)))
    a, b = first[np.ix_(both, both)], second[np.ix_(both, both)]
    pairs = np.triu_indices(a.shape[0], 1)
    return CcnsDistance(
        frobenius=float(np.linalg.norm(a - b)) if both.any() else None,
        off_diagonal_correlation=_correlation(a[pairs], b[pairs]),
        classes=int(both.sum()),
    )


def edge_homophily(graph: LabelledGraph, *, weighted: bool = False) -> float | None:
    r"""Share of the edges (or of their weight) that join equal labels.

    Only edges between labelled nodes count. For class shares p an edge counts
    :math:`p_i^\top p_j`: how often two labels drawn from them agree.
    """
    histograms = graph.weighted_histograms if weighted else graph.histograms
    total = histograms[graph.labelled].sum()
    return float((graph.shares * histograms).sum() / total) if total > 0 else None


def node_homophily(graph: LabelledGraph) -> float | None:
    """Mean over nodes of the weight share of their neighbours that have their label.

    Nodes without a label, or without a labelled neighbour, do not count.
    """
    totals = graph.weighted_histograms.sum(1)
    counted = graph.labelled & (totals > 0)
    if not counted.any():
        return None
    same = (graph.shares * graph.weighted_histograms).sum(1)
    return float((same[counted] / totals[counted]).mean())


def density(graph: LabelledGraph, threshold: float = 0.0) -> float:
    """Entries above ``threshold`` by all entries, nnz / N²; the diagonal holds none."""
    return int((graph.adjacency.data > threshold).sum()) / graph.num_nodes**2


def paper_sparsity(graph: Graph) -> float:
    """2m / N² of the whole graph, m as the paper lists it (for other graphs: undirected edges)."""
    edges = LISTED_EDGES.get(graph.name, graph.num_edges / 2)
    return 2 * edges / graph.num_nodes**2


@dataclass(frozen=True, eq=False)
class ClassBalance:
    """Nodes per class (class shares added up), and how many nodes have no label."""

    nodes: np.ndarray
    shares: np.ndarray
    unlabelled: int


def class_balance(shares: np.ndarray) -> ClassBalance:
    """Count classes from ``(n, C)`` class shares."""
    nodes = shares.sum(0)
    return ClassBalance(nodes, nodes / nodes.sum(), int((shares.sum(1) == 0).sum()))


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """Half the summed absolute difference of two distributions: 0 where equal, at most 1."""
    return float(np.abs(first - second).sum() / 2)


# -- distributions -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Distribution:
    """A histogram (``counts[i]`` values in ``edges[i] .. edges[i + 1]``) and its summary.

    The last bin includes its right edge. Nothing to count: ``count`` is 0 and the rest NaN or empty.
    """

    count: int
    mean: float
    deviation: float
    quartiles: np.ndarray  # least, lower quartile, median, upper quartile, largest
    edges: np.ndarray
    counts: np.ndarray


def degree_distribution(graph: LabelledGraph, threshold: float = 0.0) -> Distribution:
    """Neighbours per node over edges above ``threshold``; bins double where a few have very many."""
    above = graph.adjacency.data > threshold
    before = np.concatenate([[0], np.cumsum(above)])
    degrees = np.diff(before[graph.adjacency.indptr])
    most = int(degrees.max())
    if most > HEAVY_TAIL * degrees.mean() and most > BINS:
        powers = 2.0 ** np.arange(most.bit_length() + 1)
        return _distribution(degrees, np.concatenate([[0.0], powers]) - 0.5)
    width = most // BINS + 1
    return _distribution(degrees, np.arange(0, most + width + 1, width) - 0.5)


def strength_distribution(graph: LabelledGraph) -> Distribution:
    """Summed edge weight per node."""
    return _spread(np.asarray(graph.adjacency.sum(1, dtype=np.float64)))


def weight_distribution(graph: LabelledGraph, threshold: float = 0.0) -> Distribution:
    """Entries above ``threshold``: the weight of an undirected edge is there twice."""
    weights = graph.adjacency.data
    return _spread(weights[weights > threshold].astype(np.float64))


def _spread(values: np.ndarray) -> Distribution:
    if not values.size:
        return _distribution(values, np.zeros(0))
    high = float(values.max())
    return _distribution(values, np.linspace(0, high if high > 0 else 1, BINS + 1))


def _distribution(values: np.ndarray, edges: np.ndarray) -> Distribution:
    if not values.size:
        return Distribution(0, np.nan, np.nan, np.full(5, np.nan), np.zeros(0), np.zeros(0, int))
    counts, _ = np.histogram(values, edges)
    return Distribution(
        count=int(values.size),
        mean=float(values.mean()),
        deviation=float(values.std()),
        quartiles=np.quantile(values, [0, 0.25, 0.5, 0.75, 1]),
        edges=edges,
        counts=counts,
    )


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))
