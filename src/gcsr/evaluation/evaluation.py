"""The outcome of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from gcsr.evaluation.intervals import Accuracy
from gcsr.evaluation.networks import Scores
from gcsr.utils.formatting import counted, nouns

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

    @classmethod
    def of(cls, found: Scores, **rest: Any) -> Evaluation:
        """From what the networks scored."""
        scores = (100 * found.test.double().cpu().numpy()).tolist()
        names = found.metrics[0] if found.metrics else {}
        return cls(
            mean=float(np.mean(scores)),
            std=float(np.std(scores)),
            scores=scores,
            validation=(100 * found.validation.double().cpu().numpy()).tolist(),
            metrics={name: [one[name] for one in found.metrics] for name in names} or None,
            predictions=found.predictions,
            models=found.models or None,
            **rest,
        )

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
