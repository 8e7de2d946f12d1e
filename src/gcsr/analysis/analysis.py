"""A condensed graph compared with the real one."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch

from gcsr.analysis.nearest import (
    FeatureSpace,
    Nearest,
    NodeMap,
    Space,
    nearest_training_nodes,
    sample_nodes,
    tsne,
)
from gcsr.analysis.statistics import (
    CcnsDistance,
    ClassBalance,
    GraphStatistics,
    LabeledGraph,
    ccns_distance,
    paper_sparsity,
    silhouette,
    silhouette_of_first,
    statistics_of,
    total_variation,
)
from gcsr.data.condensed import CondensedGraph
from gcsr.data.features import select_rows, take_rows
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.evaluation.origin import require_origin
from gcsr.utils.errors import require, require_integer
from gcsr.utils.formatting import counted
from gcsr.utils.progress import ProgressOption, shows_progress
from gcsr.utils.safe_io import is_number, known

logger = logging.getLogger(__name__)
# Real nodes in a map: some seconds of t-SNE.
TSNE_NODES = 1000


@dataclass(frozen=True, eq=False)
class OrderedMatrices:
    """Matrices whose rows and columns go class by class, nodes without a label last.

    Attributes:
        order: the condensed node behind every row.
        classes: its class, -1 for none.
        adjacency: A', diagonal included.
        gram: X'X'ᵀ.
        starts: the row where each class that is present starts.
    """

    order: np.ndarray
    classes: np.ndarray
    adjacency: np.ndarray
    gram: np.ndarray
    starts: np.ndarray


def ordered_matrices(small: CondensedGraph) -> OrderedMatrices:
    """A' and X'X'ᵀ with rows and columns sorted by class; within a class the order stays."""
    classes = small.classes.detach().cpu()
    last = torch.where(classes >= 0, classes, small.num_classes)
    order = last.argsort(stable=True)
    x = small.x.detach().cpu().double()[order]
    adjacency = small.adjacency.detach().cpu().double()[order][:, order]
    _, starts = np.unique(last[order].numpy(), return_index=True)
    return OrderedMatrices(
        order=order.numpy(),
        classes=classes[order].numpy(),
        adjacency=adjacency.numpy(),
        gram=(x @ x.T).numpy(),
        starts=starts,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """Numbers and plain arrays about a condensed graph; :mod:`gcsr.analysis.figures` draws them.

    Attributes:
        dataset: name of the real graph.
        method: of the condensed graph, if it is recorded.
        seed: of the condensed graph, if it is recorded.
        leaks_test_labels: whether test labels went into it.
        original_part: ``whole graph``, or ``training nodes`` where only they were condensed
            (inductive); labels of every split are read.
        original, condensed: statistics of both graphs.
        paper_sparsity: 2m/N² of the whole real graph, as in the paper's Table 1.
        ccns_distance: between the two CCNS matrices.
        training_balance: classes of the training nodes, which a class budget follows.
        class_distance: total variation between the classes of condensed and training nodes.
        silhouette: of X' by class, every class.
        silhouette_three: of the first three classes present (the paper plots three, unnamed).
        space: which features ``nearest`` and ``map`` compare.
        nearest: the real training nodes that condensed nodes are nearest to.
        matrices: A' and X'X'ᵀ class by class.
        map: t-SNE of sampled real and all condensed nodes; ``None`` where none was asked for.
    """

    dataset: str
    method: str | None
    seed: int | None
    leaks_test_labels: bool
    original_part: str
    original: GraphStatistics
    condensed: GraphStatistics
    paper_sparsity: float
    ccns_distance: CcnsDistance
    training_balance: ClassBalance
    class_distance: float
    silhouette: float | None
    silhouette_three: float | None
    space: FeatureSpace
    nearest: Nearest
    matrices: OrderedMatrices
    map: NodeMap | None

    def to_dict(self, *, matrices: bool = False) -> dict[str, Any]:
        """Plain values, ready for JSON; what is not defined is ``None``.

        The n' x n' matrices are large and come only when asked for.
        """
        names = [field.name for field in fields(self) if matrices or field.name != "matrices"]
        return {name: plain(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        made = f" by {self.method}" if self.method else ""
        return f"Analysis({counted(self.condensed.nodes, 'node')}{made} against {self.dataset})"


@shows_progress
def analyze(
    small: CondensedGraph,
    graph: Graph,
    *,
    threshold: float = 0.01,
    space: Space = "features",
    hops: int = 2,
    nearest: int = 1,
    tsne_nodes: int = TSNE_NODES,
    seed: int = 0,
    check_origin: bool = True,
    progress: ProgressOption = None,
) -> Analysis:
    """Compare a condensed graph with the real one, without training.

    Args:
        small: the condensed graph.
        graph: the real one; another than it was made from is an error unless ``check_origin=False``.
        threshold: entries of A' above it count as edges where edges are counted.
        space: features in which nearest nodes and the map are found (:class:`FeatureSpace`).
        hops: hops of message passing in that space.
        nearest: how many nearest training nodes to find per condensed node.
        tsne_nodes: at most so many real nodes in the map; 0 makes no map.
        seed: of the sample and of t-SNE.
        check_origin: ``False`` accepts a graph that ``small`` was not made from.
        progress: as in :func:`gcsr.condense`.
    """
    graph = require_origin([small], graph, check_origin)
    graph.require_single_label("an analysis")
    compared = FeatureSpace(space, hops)
    fine = is_number(threshold) and threshold >= 0
    require(fine, f"threshold must be a finite number >= 0, got {threshold!r}.")
    require_integer("tsne_nodes", tsne_nodes)
    view = View(graph).condensing(leak_every_label=True)
    visible, labels = view.visible, view.every_label
    assert labels is not None
    ids = graph.train if graph.inductive else torch.arange(graph.num_nodes)

    progress("structure", 0, 1)
    real = LabeledGraph.of_classes(visible.adjacency, labels.numpy(), graph.num_classes)
    made = LabeledGraph.of_condensed(small)
    original, condensed = statistics_of(real), statistics_of(made, threshold)
    training = ClassBalance.of(real.shares[visible.train.numpy()])
    progress("structure", 1, 1)

    classes = small.classes.detach().cpu()
    rows, queries = compared.real(visible), compared.condensed(small)
    found = nearest_training_nodes(
        queries,
        classes,
        select_rows(rows, visible.train),
        visible.train_labels,
        ids[visible.train],
        nearest,
        progress=progress,
    )
    node_map = None
    if tsne_nodes:
        sampled = sample_nodes(visible.num_nodes, tsne_nodes, seed)
        stage = f"t-SNE map of {sampled.numel() + small.num_nodes:,} nodes"
        progress(stage, 0, 1)
        logger.info("computing a %s; fewer are faster (tsne_nodes)", stage)
        both = torch.cat([take_rows(rows, sampled).double(), queries.double()])
        places = tsne(both.numpy(), seed)
        node_map = NodeMap(
            real_nodes=ids[sampled].numpy(),
            real=places[: sampled.numel()],
            real_classes=labels[sampled].numpy(),
            condensed=places[sampled.numel() :],
            condensed_classes=classes.numpy(),
        )
        progress(stage, 1, 1)
    x = small.x.detach().cpu().numpy()
    return Analysis(
        dataset=graph.name,
        method=known(small.provenance, "method", str),
        seed=known(small.provenance, "seed", int),
        leaks_test_labels=small.leaks_test_labels,
        original_part="training nodes" if graph.inductive else "whole graph",
        original=original,
        condensed=condensed,
        paper_sparsity=paper_sparsity(graph),
        ccns_distance=ccns_distance(original.ccns, condensed.ccns),
        training_balance=training,
        class_distance=total_variation(training.shares, condensed.balance.shares),
        silhouette=silhouette(x, classes.numpy()),
        silhouette_three=silhouette_of_first(x, classes.numpy()),
        space=compared,
        nearest=found,
        matrices=ordered_matrices(small),
        map=node_map,
    )


def plain(value: Any) -> Any:
    """Dataclasses, arrays and numbers as dictionaries, lists and numbers; NaN as ``None``."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | list):
        value = value if isinstance(value, list) else value.tolist()
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
