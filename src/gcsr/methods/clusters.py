"""Clusters: class-wise centers of all visible nodes, by predicted class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.outofcore.estimate import Work
from gcsr.starts.clusters import Grouping, class_centers
from gcsr.starts.pseudo_labels import Labeler
from gcsr.starts.sample import block_labels, class_budget
from gcsr.utils.errors import Whole

# What a pseudo-labeler takes, about as many epochs of a GCN on the real graph.
LABELER_EPOCHS = 200


@dataclass(frozen=True, kw_only=True)
class Clusters(Condenser):
    """Centers of groups of Â^k X within each class, without edges (A' = I).

    It trains only the pseudo-labeler and takes seconds; GCSR and MTT can start from it
    (``init="clusters"``).

    Args:
        num_hops: hops of message passing before nodes are grouped.
        pseudo_labels: the labeler of nodes without a training label: ``consistent`` (perceptrons on
            randomly smoothed features, which learn from unlabeled nodes too), ``gcn`` or ``appnp``.
        tempered: whether predictions are brought to the temperature that fits validation labels best.
        grouping: ``bisection``: the nodes of a class are cut in halves, and these again, along
            directions of large variance, so that all groups have about the same size; or ``k-means``.
        soft_labels: whether Y' are the mean class shares of the nodes that are averaged in a center.
        expert_seed: the pseudo-labeler's seed.
    """

    name = "clusters"
    revision = 3
    summary = "class-wise centers of all visible nodes, labeled by pseudo-labels"
    # Dropout of the pseudo-labeler is another draw on another device.
    same_on_every_device = False
    beyond_training_nodes = True
    works_in_blocks = True

    num_hops: Whole = 1
    pseudo_labels: Labeler = "consistent"
    tempered: bool = True
    grouping: Grouping = "bisection"
    soft_labels: bool = True
    expert_seed: Whole = 0

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=self.num_hops, real_epochs=LABELER_EPOCHS, clustered=True)

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        budget = class_budget(visible.train_labels, visible.num_classes, ctx.nodes)
        starts = class_centers(ctx, budget, self)
        ctx.progress("clustering", 1, 1)
        labels, identity = block_labels(budget), torch.eye(ctx.nodes)
        return [
            CondensationResult(
                start.x,
                identity,
                start.targets if self.soft_labels and start.targets is not None else labels,
                start.notes,
                start.provenance,
            )
            for start in starts
        ]
