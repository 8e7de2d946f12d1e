"""Coarsening: groups of neighbors as super-nodes (Loukas, 2019; Huang et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from gcsr.data.features import csr_matrix, is_sparse
from gcsr.data.views import CondensingView
from gcsr.engines.coarsening import (
    Coarse,
    Labels,
    Projection,
    Rules,
    coarsen_graph,
    projected,
    super_labels,
)
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import class_budget
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require
from gcsr.utils.parallel import part_of
from gcsr.utils.progress import Progress

# Directions with a larger residual leave the choice of neighborhoods to chance.
UNSETTLED = 1e-4


@dataclass(frozen=True, kw_only=True)
class Coarsening(Rules, Condenser):
    """Neighborhoods contracted so that the smoothest signals on the graph change least.

    Super-nodes without a label (see ``labels``) stay in the result as unlabeled context.

    Args:
        directions: how many of the Laplacian's smallest eigenpairs count (K).
        levels: how many levels may contract neighborhoods; single edges do the rest.
        reduction: the largest share of its nodes that a level may remove.
        projection: features of super-nodes: ``sum`` (scaled to one), ``mean``, or ``auto``: ``sum``
            where the rows of the real graph sum to one, as bags of words do.
        labels: which super-nodes are labeled: ``pure``, those whose training nodes are of one class;
            ``majority``, all that hold training nodes, by the most frequent class.
        weights: whether edges keep their summed weights; otherwise all weigh one.
    """

    name = "coarsening"
    summary = "neighborhoods contracted with little loss of smooth signals"
    reference = 'Huang et al., "Scaling Up Graph Neural Networks Via Graph Coarsening", KDD 2021'
    # Labels fall where the training nodes fall.
    exact_class_budget = False
    # Only where an iterative eigensolver starts is random.
    seed_matters = False

    projection: Projection = "auto"
    labels: Labels = "pure"
    weights: bool = False

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=1)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        view, nodes, seeds, progress = ctx.view, ctx.nodes, ctx.seeds, ctx.progress
        # With fewer nodes than classes not all could have a label.
        class_budget(view.visible.train_labels, view.visible.num_classes, nodes)
        return [
            self._graph(view, nodes, seed, part_of(progress, done, len(seeds)))
            for done, seed in enumerate(seeds)
        ]

    def _graph(
        self, view: CondensingView, nodes: int, seed: int, progress: Progress
    ) -> CondensationResult:
        visible = view.visible
        # Validation nodes are nodes of the visible graph only where that is the whole graph.
        whole = view.validation.adjacency is visible.adjacency
        coarse = coarsen_graph(
            visible.adjacency,
            nodes,
            np.asarray(visible.train),
            np.asarray(view.validation.nodes) if whole else np.empty(0, np.int64),
            self,
            make_generator(seed, "smooth directions"),
            progress,
        )
        labels = super_labels(
            coarse.matrix, visible.labels.numpy(), visible.num_classes, self.labels
        )
        require(
            bool((labels >= 0).any()),
            f"labels must be 'majority' for nodes={nodes}, got 'pure': no super-node has training nodes"
            " of one class only.",
        )
        # In blocks by class like every other method's; what has no label comes last.
        order = np.argsort(np.where(labels < 0, visible.num_classes, labels), kind="stable")
        features = csr_matrix(visible.x) if is_sparse(visible.x) else visible.x.numpy()
        x = projected(features, coarse.matrix[order], self.projection)
        adjacency = torch.from_numpy(coarse.weights[order][:, order].toarray()).float()
        return CondensationResult(
            torch.from_numpy(x).float(),
            adjacency if self.weights else (adjacency > 0).float(),
            torch.from_numpy(labels[order]),
            tuple(_notes(coarse, labels, view)),
            details={"nodes_by_level": list(coarse.sizes), "eigen_residual": coarse.residual},
        )


def _notes(coarse: Coarse, labels: np.ndarray, view: CondensingView) -> Iterator[str]:
    nodes, visible = labels.size, view.visible
    missing = sorted({*visible.train_labels.tolist()} - {*labels.tolist()})
    if missing:
        names = ", ".join(str(label) for label in missing)
        yield f"no super-node has a label of class {names}"
    if (labels < 0).any():
        yield f"{int((labels < 0).sum())} of {nodes} super-nodes have no label: they are context only"
    dropped = visible.num_nodes - coarse.matrix.nnz
    if dropped:
        yield (
            f"{dropped} of {visible.num_nodes} nodes were dropped: their components are too small for"
            " a super-node"
        )
    if coarse.residual > UNSETTLED:
        yield (
            f"the eigensolver stopped at a residual of {coarse.residual:.1g}: which neighborhoods are"
            " contracted depends on where it started"
        )
    if coarse.edges:
        yield (
            f"{coarse.edges} of {visible.num_nodes} nodes went by contracting single edges, as no"
            " neighborhood was left"
        )
