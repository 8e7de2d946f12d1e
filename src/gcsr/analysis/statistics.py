"""Statistics of one graph, real or condensed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.equations.prior import cross_class_similarity


@dataclass(frozen=True, eq=False)
class LabeledGraph:
    """A real or condensed graph: edges without self-loops, and the class shares of every node.

    Attributes:
        adjacency: CSR, non-negative, its diagonal empty and no zero stored.
        shares: ``(n, C)``; one-hot for a hard label, zeros for none.
    """

    adjacency: sp.csr_array
    shares: np.ndarray

    @classmethod
    def of_classes(
        cls, adjacency: sp.csr_array, labels: np.ndarray, num_classes: int
    ) -> LabeledGraph:
        """From one class per node, -1 where it is not known."""
        shares = np.zeros((labels.size, num_classes))
        known = np.flatnonzero(labels >= 0)
        shares[known, labels[known]] = 1
        return cls(_without_diagonal(adjacency), shares)

    @classmethod
    def of_condensed(cls, small: CondensedGraph) -> LabeledGraph:
        """A' without its diagonal, which is no edge to a neighbor."""
        adjacency = sp.csr_array(small.adjacency.detach().cpu().double().numpy())
        return cls(_without_diagonal(adjacency), small.targets.detach().cpu().double().numpy())

    @cached_property
    def labeled(self) -> np.ndarray:
        """Which nodes have a label."""
        return np.asarray(self.shares.sum(1) > 0)

    @cached_property
    def weighted_histograms(self) -> np.ndarray:
        """``(n, C)``: summed edge weight to neighbors of each class; unlabeled ones do not count."""
        return np.asarray(self.adjacency.astype(np.float64) @ self.shares)

    @cached_property
    def histograms(self) -> np.ndarray:
        """``(n, C)``: a node's neighbors of each class, every edge counted as one."""
        a = self.adjacency
        ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
        return np.asarray(ones @ self.shares)


def _without_diagonal(adjacency: sp.csr_array) -> sp.csr_array:
    coo = adjacency.tocoo()
    kept = (coo.row != coo.col) & (coo.data != 0)
    if kept.all():
        return adjacency
    return sp.csr_array((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=coo.shape)


def silhouette(x: np.ndarray, classes: np.ndarray) -> float | None:
    """Mean silhouette coefficient (Rousseeuw, 1987) of rows grouped by class, Euclidean.

    Each row scores (b - a) / max(a, b): a is its mean distance to the others of its class, b that to
    the nearest other class. The only row of a class scores 0; rows of class -1 are left out. ``None``
    where there are fewer than two classes.
    """
    known = classes >= 0
    x, classes = x[known].astype(np.float64), classes[known]
    groups = np.unique(classes).size
    if groups < 2:
        return None
    if groups == classes.size:
        return 0.0  # nothing but singletons, which scikit-learn refuses
    from sklearn.metrics import silhouette_score  # noqa: PLC0415 - takes a second to import

    return float(silhouette_score(x, classes))


def silhouette_of_first(x: np.ndarray, classes: np.ndarray, count: int = 3) -> float | None:
    """The same over the first ``count`` classes that have a node.

    The paper plots three of seven classes and does not say which.
    """
    first = np.unique(classes[classes >= 0])[:count]
    return silhouette(x, np.where(np.isin(classes, first), classes, -1))


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


def ccns(graph: LabeledGraph) -> np.ndarray:
    """Cross-class neighborhood similarity with weighted histograms.

    NaN for absent classes, and everywhere in a graph without edges.
    """
    if not graph.adjacency.nnz:
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
    off_a, off_b = a[pairs], b[pairs]
    correlation = None
    if off_a.size >= 2 and np.ptp(off_a) > 0 and np.ptp(off_b) > 0:
        correlation = float(np.corrcoef(off_a, off_b)[0, 1])
    frobenius = float(np.linalg.norm(a - b)) if both.any() else None
    return CcnsDistance(frobenius, correlation, int(both.sum()))


def edge_homophily(graph: LabeledGraph, *, weighted: bool = False) -> float | None:
    r"""Share of the edges (or of their weight) that join equal labels.

    Only edges between labeled nodes count. For class shares p an edge counts
    :math:`p_i^\top p_j`: how often two labels drawn from them agree.
    """
    histograms = graph.weighted_histograms if weighted else graph.histograms
    total = histograms[graph.labeled].sum()
    return float((graph.shares * histograms).sum() / total) if total > 0 else None


def node_homophily(graph: LabeledGraph) -> float | None:
    """Mean over nodes of the weight share of their neighbors that have their label.

    Nodes without a label, or without a labeled neighbor, do not count.
    """
    totals = graph.weighted_histograms.sum(1)
    counted = graph.labeled & (totals > 0)
    if not counted.any():
        return None
    same = (graph.shares * graph.weighted_histograms).sum(1)
    return float((same[counted] / totals[counted]).mean())


def paper_sparsity(graph: Graph) -> float:
    """2m / N² of the whole graph, m as the paper lists it (for other graphs: undirected edges)."""
    edges = LISTED_EDGES.get(graph.name, graph.num_edges / 2)
    return 2 * edges / graph.num_nodes**2


@dataclass(frozen=True, eq=False)
class ClassBalance:
    """Nodes per class (class shares added up), and how many nodes have no label."""

    nodes: np.ndarray
    shares: np.ndarray
    unlabeled: int

    @classmethod
    def of(cls, shares: np.ndarray) -> ClassBalance:
        """From ``(n, C)`` class shares."""
        nodes = shares.sum(0)
        return cls(nodes, nodes / nodes.sum(), int((shares.sum(1) == 0).sum()))


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """Half the summed absolute difference of two distributions: 0 where equal, at most 1."""
    return float(np.abs(first - second).sum() / 2)


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

    @classmethod
    def of(cls, values: np.ndarray, edges: np.ndarray | None = None) -> Distribution:
        """Of some values; by default in equal bins from 0 to the largest."""
        if not values.size:
            return cls(0, np.nan, np.nan, np.full(5, np.nan), np.zeros(0), np.zeros(0, int))
        if edges is None:
            high = float(values.max())
            edges = np.linspace(0, high if high > 0 else 1, BINS + 1)
        return cls(
            count=int(values.size),
            mean=float(values.mean()),
            deviation=float(values.std()),
            quartiles=np.quantile(values, [0, 0.25, 0.5, 0.75, 1]),
            edges=edges,
            counts=np.histogram(values, edges)[0],
        )


def _degree_bins(degrees: np.ndarray) -> np.ndarray:
    """Bins of whole numbers, which double where a few nodes have very many neighbors."""
    most = int(degrees.max())
    if most > HEAVY_TAIL * degrees.mean() and most > BINS:
        powers = 2.0 ** np.arange(most.bit_length() + 1)
        return np.concatenate([[0.0], powers]) - 0.5
    width = most // BINS + 1
    return np.arange(0, most + width + 1, width) - 0.5


@dataclass(frozen=True, eq=False)
class GraphStatistics:
    """Statistics of a graph without its diagonal.

    Attributes:
        nodes: how many there are.
        entries: entries of the adjacency that are not zero; an undirected edge has two.
        density: ``entries`` by nodes².
        threshold: the weight above which an entry counts as an edge in the next three.
        density_above: the same density of edges above the threshold.
        degrees: neighbors per node, over edges above the threshold.
        weights: entries above the threshold.
        strengths: summed weight per node, over all entries.
        edge_homophily: share of the entries that join equal labels.
        weighted_edge_homophily: share of the weight that does.
        node_homophily: mean over nodes of the weight share of neighbors that have their label.
        ccns: cross-class neighborhood similarity, ``(C, C)``; NaN for absent classes.
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


def statistics_of(graph: LabeledGraph, threshold: float = 0.0) -> GraphStatistics:
    """Measure one graph."""
    weights, nodes = graph.adjacency.data, graph.shares.shape[0]
    above = weights > threshold
    degrees = np.diff(np.concatenate([[0], np.cumsum(above)])[graph.adjacency.indptr])
    return GraphStatistics(
        nodes=nodes,
        entries=int(graph.adjacency.nnz),
        density=int((weights > 0).sum()) / nodes**2,
        threshold=threshold,
        density_above=int(above.sum()) / nodes**2,
        degrees=Distribution.of(degrees, _degree_bins(degrees)),
        # The weight of an undirected edge is there twice.
        weights=Distribution.of(weights[above].astype(np.float64)),
        strengths=Distribution.of(np.asarray(graph.adjacency.sum(1, dtype=np.float64))),
        edge_homophily=edge_homophily(graph),
        weighted_edge_homophily=edge_homophily(graph, weighted=True),
        node_homophily=node_homophily(graph),
        ccns=ccns(graph),
        balance=ClassBalance.of(graph.shares),
    )
