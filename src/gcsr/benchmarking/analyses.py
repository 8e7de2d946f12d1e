"""Numbers of a graph itself: the statistics of Table 1, and what the pictures of graphs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from gcsr.analysis.analysis import Analysis, analyze
from gcsr.analysis.statistics import LabeledGraph, ccns, edge_homophily
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.engines.structure import State as StructureState
from gcsr.engines.structure import Structure
from gcsr.methods.base import Condenser
from gcsr.methods.gcsr import GCSR

CORRELATION, WITHIN = "correlation with the original", "mean over single classes"
SILHOUETTE, THREE = "silhouette", "silhouette of three classes"
GRAM, PRIOR, ADJACENCY = "X'X'ᵀ", "P", "A'"
AS_FIRST = ", no label as class 0"
# Real nodes in a t-SNE map, and in that of a quick run.
MAPPED, MAPPED_QUICK = 1000, 60


def graph_statistics(graph: Graph) -> dict[str, float]:
    """Table 1 for one graph.

    ``edges`` are undirected ones; ``sparsity`` is the percentage of entries of A that are not zero;
    ``homophily`` the share of edges between nodes of the same class, among the edges that may be seen
    while condensing and whose two classes are known.
    """
    homophily = edge_homophily(LabeledGraph.of_classes(*_visible(graph), graph.num_classes))
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges / 2,
        "classes": graph.num_classes,
        "features": graph.num_features,
        "sparsity": 100 * graph.num_edges / graph.num_nodes**2,
        "homophily": float("nan") if homophily is None else homophily,
    }


def whole_graph(graph: Graph) -> dict[str, Any]:
    """CCNS of the real graph, as far as condensing sees it; every label counts.

    Nodes without a label are left out; beside that, the same with them as class 0.
    """
    adjacency, labels = _visible(graph)
    values: dict[str, list[float | None]] = {}
    drawn: dict[str, Any] = {}
    for suffix, classes in (("", labels), (AS_FIRST, np.maximum(labels, 0))):
        matrix = ccns(LabeledGraph.of_classes(adjacency, classes, graph.num_classes))
        for i, j in zip(*np.triu_indices(len(matrix)), strict=True):
            values[f"s({i}, {j}){suffix}"] = [_finite(matrix[i, j])]
        drawn.setdefault("ccns", _rounded(matrix))
    return {"values": values, "drawn": drawn}


def _visible(graph: Graph) -> tuple[sp.csr_array, np.ndarray]:
    """Adjacency and labels that condensing sees, test labels included: nothing is trained here."""
    view = View(graph).condensing(leak_every_label=True)
    assert view.every_label is not None
    return view.visible.adjacency, view.every_label.numpy()


@dataclass(frozen=True, kw_only=True)
class WatchedGCSR(GCSR):
    """GCSR that also keeps the regularizers P as its last iteration left them."""

    regularizers: dict[int, Tensor] = field(
        default_factory=dict, compare=False, metadata={"resource": True}
    )

    @classmethod
    def watching(cls, condenser: Condenser) -> WatchedGCSR:
        """The same settings."""
        return cls(**{f.name: getattr(condenser, f.name) for f in fields(condenser)})

    def _structure(self, *args: Any, **options: Any) -> tuple[Structure, StructureState]:
        structure, state = super()._structure(*args, **options)
        seeds: Sequence[int] = args[0].seeds  # of the context
        # The engine updates the state in place: these stay what P is.
        self.regularizers.update(zip(seeds, state[0], strict=True))
        return structure, state


def condensed_graphs(
    analysis: str,
    small: Sequence[CondensedGraph],
    graph: Graph,
    regularizers: Mapping[int, Tensor],
    *,
    quick: bool,
) -> dict[str, Any]:
    """One value per condensed graph and number; what is drawn is of the first."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - needed by few

    found: list[tuple[dict[str, float | None], dict[str, Any]]] = []
    for one in small:
        mapped = 0
        if analysis == "tsne" and not found:
            mapped = MAPPED_QUICK if quick else MAPPED
        with threadpool_limits(1 if mapped else None):  # sums of a map in one order
            analyzed = analyze(one, graph, tsne_nodes=mapped, progress=False)
        if analysis == "adjacency":
            found.append(_adjacency(analyzed, regularizers[one.provenance["seed"]]))
        else:
            found.append({"ccns": _ccns, "tsne": _tsne}[analysis](analyzed))
    values, drawn = zip(*found, strict=True)
    return {
        "values": {name: [numbers[name] for numbers in values] for name in values[0]},
        "drawn": drawn[0],
    }


def _ccns(one: Analysis) -> tuple[dict[str, float | None], dict[str, Any]]:
    matrix = one.condensed.ccns
    values = {
        CORRELATION: one.ccns_distance.off_diagonal_correlation,
        WITHIN: _finite(np.nanmean(matrix.diagonal())),
    }
    return values, {"ccns": _rounded(matrix)}


def _adjacency(
    one: Analysis, regularizer: Tensor
) -> tuple[dict[str, float | None], dict[str, Any]]:
    """X'X'ᵀ, P and A': the share of their weight, diagonal aside, between nodes of a class."""
    ordered, prior = one.matrices, regularizer.detach().cpu().double().numpy()
    matrices = {
        GRAM: ordered.gram,
        PRIOR: prior[np.ix_(ordered.order, ordered.order)],
        ADJACENCY: ordered.adjacency,
    }
    values = {name: _share_within(matrix, ordered.classes) for name, matrix in matrices.items()}
    drawn = {name: _rounded(matrix) for name, matrix in matrices.items()}
    return values, {"matrices": drawn, "classes": ordered.classes.tolist()}


def _tsne(one: Analysis) -> tuple[dict[str, float | None], dict[str, Any]]:
    drawn, places = dict[str, Any](), one.map
    if places is not None:
        for name in ("real", "condensed"):
            drawn[name] = _rounded(getattr(places, name))
            drawn[f"{name}_classes"] = getattr(places, f"{name}_classes").tolist()
    return {SILHOUETTE: one.silhouette, THREE: one.silhouette_three}, drawn


def _share_within(matrix: np.ndarray, classes: np.ndarray) -> float | None:
    weight = np.abs(matrix)
    np.fill_diagonal(weight, 0)
    total = weight.sum()
    same = classes[:, None] == classes[None, :]
    return _finite(100 * weight[same].sum() / total) if total else None


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _rounded(values: np.ndarray) -> list[list[float | None]]:
    """Four digits: enough to draw, and a fifth of the bytes."""
    return [
        [float(f"{value:.4g}") if np.isfinite(value) else None for value in row] for row in values
    ]
