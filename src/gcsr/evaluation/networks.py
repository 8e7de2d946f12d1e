"""Trained networks: what they score on test nodes, an evaluation as a whole, and the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from gcsr.evaluation.intervals import Accuracy
from gcsr.models.base import Model, Params
from gcsr.models.sparse import SparseTopology
from gcsr.training.classification import predicted, probabilities, score_of
from gcsr.utils.formatting import counted, nouns

# Bins of the confidence in the expected calibration error.
BINS = 15


@dataclass(frozen=True, eq=False)
class Scores:
    """Of some networks in their order: scores between 0 and 1, and what else was asked for.

    ``predictions`` are the classes of all test nodes, ``(networks, nodes)``, or truth values of all
    labels, ``(networks, nodes, C)``. ``metrics`` has a dictionary for every network.
    ``pseudo_labels`` are the accuracies in percent of pseudo-labels that networks were trained with.
    """

    test: Tensor
    validation: Tensor
    predictions: Tensor | None = None
    metrics: list[dict[str, float]] = field(default_factory=list)
    models: list[nn.Module] = field(default_factory=list)
    pseudo_labels: dict[str, float] | None = None

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, *, metrics: bool) -> Scores:
        """From class scores ``(networks, nodes, C)`` of test nodes."""
        multi_label = labels.ndim == 2
        found = predicted(logits, multi_label)
        test = score_of(found, labels)
        if not metrics:
            return cls(test, torch.empty(0))
        shares = probabilities(logits.double(), multi_label).cpu().numpy()
        measure = multi_label_metrics_of if multi_label else metrics_of
        measured = [measure(one, labels.cpu().numpy()) for one in shares]
        return cls(test, torch.empty(0), found.cpu(), measured)

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """Those of all parts, one after the other."""
        predictions = [part.predictions for part in parts if part.predictions is not None]
        return cls(
            torch.cat([part.test for part in parts]),
            torch.cat([part.validation for part in parts]),
            torch.cat(predictions) if predictions else None,
            [one for part in parts for one in part.metrics],
            [one for part in parts for one in part.models],
        )

    def cpu(self) -> Scores:
        """The same on the CPU."""
        models = [model.cpu() for model in self.models]
        return replace(self, test=self.test.cpu(), validation=self.validation.cpu(), models=models)


def metrics_of(shares: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Metrics in percent of class probabilities ``(nodes, C)``; classes without a node do not count.

    ``macro_f1``, ``balanced_accuracy`` (mean recall), ``auc`` (mean area under the ROC curve of each
    class against the others) and ``calibration_error`` (expected difference between the probability
    of the predicted class and the accuracy, in bins of that probability). Scores that are not finite,
    of a network that diverged, count as equal probabilities.
    """
    from sklearn.metrics import (  # noqa: PLC0415 - takes a second to import
        f1_score,
        recall_score,
        roc_auc_score,
    )

    shares = np.where(np.isfinite(shares), shares, 1 / shares.shape[1])
    present, predicted = np.unique(labels), shares.argmax(1)
    average = {"labels": present, "average": "macro", "zero_division": 0}
    confidence, right = shares.max(1), predicted == labels
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=confidence - right, minlength=BINS)
    found = {
        "macro_f1": f1_score(labels, predicted, **average),
        "balanced_accuracy": recall_score(labels, predicted, **average),
        "calibration_error": np.abs(gaps).sum() / labels.size,
    }
    if present.size > 1:
        areas = [roc_auc_score(labels == one, shares[:, one]) for one in present]
        found["auc"] = np.mean(areas)
    return {name: 100 * float(value) for name, value in found.items()}


def multi_label_metrics_of(shares: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Metrics in percent of probabilities of every label ``(nodes, C)``.

    ``micro_f1``, ``macro_f1`` (over labels that a node has) and ``auc`` (mean over labels that some
    nodes have and others do not).
    """
    from sklearn.metrics import f1_score, roc_auc_score  # noqa: PLC0415 - takes a second to import

    shares = np.nan_to_num(shares, nan=0.5)  # of a network that diverged
    had, lacked = (labels > 0).any(0), (labels == 0).any(0)
    found = {
        "micro_f1": f1_score(labels, shares > 0.5, average="micro", zero_division=0),
        "macro_f1": f1_score(
            labels[:, had], shares[:, had] > 0.5, average="macro", zero_division=0
        ),
    }
    both = had & lacked
    if both.any():
        found["auc"] = roc_auc_score(labels[:, both], shares[:, both])
    return {name: 100 * float(value) for name, value in found.items()}


WHOLE, WITH_PSEUDO_LABELS = "whole graph", "whole graph, pseudo-labels"


@dataclass(frozen=True)
class Evaluation:
    """Test accuracies, or micro-F1, in percent: every run of every graph, their mean and spread.

    Attributes:
        mean, std: of ``scores``; the population deviation over all runs, which papers report.
        scores: test accuracy of every network, graph by graph.
        validation: the best validation accuracy of each, which chose its epoch.
        nodes: number of nodes that the networks were trained on.
        graphs, runs: number of condensed graphs, and of networks on each.
        trained_on: ``condensed``, ``whole graph`` or ``whole graph, pseudo-labels``.
        leaks_test_labels: whether test labels went into a condensed graph; then this is no fair score.
        recipe: how networks were trained.
        seed: of their weights.
        seconds: what the evaluation took, without the start of a cluster.
        pseudo_labels: where networks were trained with pseudo-labels, ``test`` and ``validation``
            accuracy in percent of the pseudo-labels themselves.
        metrics: with ``metrics=True``, ``macro_f1``, ``balanced_accuracy``, ``auc`` and
            ``calibration_error`` of every network on the test nodes, in percent; of a multi-label
            graph ``micro_f1``, ``macro_f1`` and ``auc``.
        predictions: with ``metrics=True``, the predicted class of every test node in the order of
            ``graph.test``, ``(networks, nodes)``, or of a multi-label graph truth values of all labels.
        models: with ``return_models=True``, the trained networks.
        measure: what scores are: ``accuracy`` or, of a multi-label graph, ``micro-F1``.
    """

    mean: float
    std: float
    scores: list[float]
    validation: list[float]
    model: str
    dataset: str
    nodes: int
    graphs: int
    runs: int
    trained_on: str
    leaks_test_labels: bool
    recipe: dict[str, Any]
    seed: int
    seconds: float
    pseudo_labels: dict[str, float] | None = None
    metrics: dict[str, list[float]] | None = None
    predictions: Tensor | None = field(default=None, repr=False, compare=False)
    models: list[nn.Module] | None = field(default=None, repr=False, compare=False)
    measure: str = "accuracy"

    @property
    def accuracy(self) -> Accuracy:
        """The scores with the 95 % interval of their mean."""
        return Accuracy.of(self.scores, self.graphs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; with ``interval``, ``interval_over`` and ``spread``."""
        values = asdict(self.accuracy) | asdict(replace(self, predictions=None, models=None))
        del values["predictions"], values["models"]
        for name in ("pseudo_labels", "metrics"):
            if values[name] is None:
                del values[name]
        if self.measure == "accuracy":
            del values["measure"]
        return values

    def __str__(self) -> str:
        leak = ", prior leaks test labels" if self.leaks_test_labels else ""
        graphs = f"{counted(self.graphs, 'graph')} x " if self.graphs > 1 else ""
        what = f"{self.nodes} {nouns(self.nodes, 'node')}"
        if self.trained_on == WITH_PSEUDO_LABELS:
            what = "the whole graph with pseudo-labels"
        found = self.accuracy
        spread = f"; {found.explained}" if found.explained else ""
        measure = "" if self.measure == "accuracy" else f"{self.measure} "
        return (
            f"{measure}{found} on {self.dataset} ({self.model} trained on {what},"
            f" {graphs}{counted(self.runs, 'run')}{leak}{spread})"
        )


class TrainedNetwork(nn.Module):
    """A trained network of this library as a module: ``network(x, edge_index, edge_weight=None)``.

    Edges are those of a real graph, without self-loops; the network adds them where it needs them.
    """

    def __init__(self, model: Model, params: Params) -> None:
        super().__init__()
        self.model = model
        self.weights = nn.ParameterList(p.detach().clone() for p in params)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Class scores ``(n, C)``."""
        nodes = int(x.shape[0])
        weights = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
        sources, targets = edge_index.cpu().numpy()
        entries = (weights.detach().cpu().numpy(), (targets, sources))
        adjacency = sp.csr_array(sp.coo_array(entries, shape=(nodes, nodes)))
        prepared = self.model.prepare(x, SparseTopology(adjacency, x.device))
        scores: Tensor = self.model.logits(tuple(self.weights), prepared)[0]
        return scores

    def extra_repr(self) -> str:
        """The name of the model."""
        return self.model.name
