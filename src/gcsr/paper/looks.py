"""Cells that look at condensed graphs instead of testing them: numbers, and what a figure needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from torch import Tensor

from gcsr.analyse import Analysis, analyse
from gcsr.analyse.labelled import LabelledGraph
from gcsr.analyse.statistics import ccns
from gcsr.condense import GCSR, Condenser
from gcsr.condense.structure import State, Structure
from gcsr.condensed import CondensedGraph
from gcsr.graph import Graph
from gcsr.views import View

CORRELATION, WITHIN = "correlation with the original", "mean over single classes"
SILHOUETTE, THREE = "silhouette", "silhouette of three classes"
GRAM, PRIOR, ADJACENCY = "X'X'ᵀ", "P", "A'"
AS_FIRST = ", no label as class 0"
# Real nodes in a map, and in that of a smoke run.
MAPPED, FEW = 1000, 60

Values = dict[str, list[float | None]]


@dataclass(frozen=True, kw_only=True)
class WatchedGCSR(GCSR):
    """GCSR that also hands out the regularisers P as its last iteration left them."""

    regularisers: dict[int, Tensor] = field(
        default_factory=dict, compare=False, metadata={"resource": True}
    )

    @classmethod
    def watching(cls, condenser: Condenser) -> WatchedGCSR:
        """The same settings."""
        return cls(**{f.name: getattr(condenser, f.name) for f in fields(condenser)})

    def _structure(self, *args: Any, **options: Any) -> tuple[Structure, State]:
        structure, state = super()._structure(*args, **options)
        seeds: Sequence[int] = options["seeds"] if "seeds" in options else args[-1]
        # The engine updates the state in place: these stay what P is.
        self.regularisers.update(zip(seeds, state[0], strict=True))
        return structure, state


def whole_graph(graph: Graph) -> dict[str, Any]:
    """CCNS of the real graph, as far as condensing sees it; every label counts.

    Nodes without a label are nobody's neighbours; beside that, the same with them as class 0.
    """
    view = View(graph).condensing(leak_every_label=True)
    if view.every_label is None:  # asked for above: nothing is trained here
        raise RuntimeError("the view holds no labels")
    labels = view.every_label.numpy()

    def similarity(of: np.ndarray) -> np.ndarray:
        return ccns(LabelledGraph.of_classes(view.visible.adjacency, of, graph.num_classes))

    found = similarity(labels)
    values = _entries(found) | _entries(similarity(np.maximum(labels, 0)), AS_FIRST)
    return {"values": values, "drawn": {"ccns": _matrix(found)}}


def _entries(matrix: np.ndarray, suffix: str = "") -> Values:
    pairs = ((i, j) for i in range(len(matrix)) for j in range(i, len(matrix)))
    return {f"s({i}, {j}){suffix}": [_plain(matrix[i, j])] for i, j in pairs}


def condensed_graphs(
    look: str,
    small: Sequence[CondensedGraph],
    graph: Graph,
    regularisers: Mapping[int, Tensor],
    *,
    quick: bool,
) -> dict[str, Any]:
    """One value per condensed graph and number; what is drawn is of the first."""
    return _LOOKS[look](small, graph, regularisers, FEW if quick else MAPPED)


def _ccns(
    small: Sequence[CondensedGraph], graph: Graph, regularisers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    found = [analyse(one, graph, tsne_nodes=0) for one in small]
    values: Values = {
        CORRELATION: [one.ccns_distance.off_diagonal_correlation for one in found],
        WITHIN: [_plain(np.nanmean(one.condensed.ccns.diagonal())) for one in found],
    }
    return {"values": values, "drawn": {"ccns": _matrix(found[0].condensed.ccns)}}


def _adjacency(
    small: Sequence[CondensedGraph], graph: Graph, regularisers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    """X'X'ᵀ, P and A': the share of their weight, diagonal aside, between nodes of a class."""
    found = [_components(one, graph, regularisers) for one in small]
    values: Values = {
        name: [_share_within(matrices[name], classes) for matrices, classes in found]
        for name in found[0][0]
    }
    matrices, classes = found[0]
    drawn = {name: _matrix(matrix) for name, matrix in matrices.items()}
    return {"values": values, "drawn": {"matrices": drawn, "classes": classes.tolist()}}


def _components(
    small: CondensedGraph, graph: Graph, regularisers: Mapping[int, Tensor]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    ordered = analyse(small, graph, tsne_nodes=0).matrices
    prior = regularisers[small.provenance["seed"]].detach().cpu().double().numpy()
    matrices = {
        GRAM: ordered.gram,
        PRIOR: prior[np.ix_(ordered.order, ordered.order)],
        ADJACENCY: ordered.adjacency,
    }
    return matrices, ordered.classes


def _share_within(matrix: np.ndarray, classes: np.ndarray) -> float | None:
    weight = np.abs(matrix)
    np.fill_diagonal(weight, 0)
    total = weight.sum()
    same = classes[:, None] == classes[None, :]
    return _plain(100 * weight[same].sum() / total) if total else None


def _tsne(
    small: Sequence[CondensedGraph], graph: Graph, regularisers: Mapping[int, Tensor], nodes: int
) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - comes with scikit-learn

    with threadpool_limits(1):  # sums in one order, whatever the number of threads
        first = analyse(small[0], graph, tsne_nodes=nodes)
    found: list[Analysis] = [first, *(analyse(one, graph, tsne_nodes=0) for one in small[1:])]
    values: Values = {
        SILHOUETTE: [one.silhouette for one in found],
        THREE: [one.silhouette_three for one in found],
    }
    places = first.map
    if places is None:
        raise RuntimeError("a map was asked for")
    drawn = {
        "real": _matrix(places.real),
        "real_classes": places.real_classes.tolist(),
        "condensed": _matrix(places.condensed),
        "condensed_classes": places.condensed_classes.tolist(),
    }
    return {"values": values, "drawn": drawn}


_LOOKS: dict[str, Callable[..., dict[str, Any]]] = {
    "ccns": _ccns,
    "adjacency": _adjacency,
    "tsne": _tsne,
}
LOOKS = tuple(_LOOKS)


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _matrix(values: np.ndarray) -> list[list[float | None]]:
    """Four digits: enough to draw, and a fifth of the bytes."""
    return [
        [float(f"{value:.4g}") if np.isfinite(value) else None for value in row] for row in values
    ]
