"""Pseudo-labels of the whole graph: the fair references of a graph that was condensed with them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.data.graph import Graph
from gcsr.data.views import Target, VisibleGraph
from gcsr.evaluation.trial import Batch, Trial, batches_of
from gcsr.starts.pseudo_labels import class_shares
from gcsr.utils.errors import require
from gcsr.utils.parallel import suitable_threads
from gcsr.utils.progress import Progress

SEED = 0


def require_unlabeled_nodes(graph: Graph) -> None:
    """Refuse an inductive graph: there is no node without a label to predict."""
    require(
        not graph.inductive,
        f"pseudo_labels must be false for the inductive graph {graph.name}, got true: every visible"
        " node has a training label.",
    )


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """Class shares ``(n, C)`` of every visible node: one-hot on training nodes, else predicted.

    The networks that predict them are trained on training labels and choose their epoch by
    validation; test labels cannot be reached.
    """

    visible: VisibleGraph
    shares: Tensor

    @classmethod
    def of(cls, trial: Trial, progress: Progress, labeler: str) -> PseudoLabels:
        """Train the pseudo-labeler, whose seed is fixed, and predict every visible node."""
        condensing = trial.view.condensing()
        with suitable_threads(condensing.visible.x.numel(), trial.device):
            found = class_shares(
                condensing,
                labeler,
                seed=SEED,
                device=trial.device,
                tempered=True,
                everyone=True,
                progress=progress,
            )
        return cls(condensing.visible, found.shares)

    def batches(self, trial: Trial, networks: range) -> list[Batch]:
        """Networks trained on the whole graph with the shares as targets on every node."""
        visible = self.visible
        everyone = torch.arange(visible.num_nodes)
        target = Target(visible.x, visible.adjacency, everyone, visible.labels)
        return batches_of(trial, trial.prepare(target), self.shares, networks)

    def accuracies(self, trial: Trial) -> dict[str, float]:
        """Accuracy in percent of the most likely class on test and validation nodes.

        Asked for after all networks are trained: it reads the test labels.
        """
        targets = {"test": trial.tested, "validation": trial.validation}
        return {name: self._accuracy(target) for name, target in targets.items()}

    def _accuracy(self, target: Target) -> float:
        predicted = self.shares.argmax(-1).cpu()[target.nodes]
        return 100 * float((predicted == target.labels).double().mean())
