"""What a condensed graph costs and saves, as plain numbers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gcsr.wording import accuracy, counted


@dataclass(frozen=True)
class Accuracy:
    """Test accuracy in percent of every run, their mean and population deviation."""

    mean: float
    std: float
    scores: list[float]

    @classmethod
    def of(cls, scores: list[float]) -> Accuracy:
        """From the runs."""
        return cls(float(np.mean(scores)), float(np.std(scores)), scores)

    def __str__(self) -> str:
        return accuracy(self.mean, self.std, len(self.scores))


@dataclass(frozen=True)
class StoredForm:
    """One way to store the condensed graph, and how well networks trained on it then do.

    Attributes:
        structure: ``dense``, A' as it is with all its n' x n' numbers; or ``sparsified``.
        dtype: of features and adjacency.
        features_bytes, adjacency_bytes, labels_bytes, bytes: what it takes; the last is all of it.
        accuracy: of networks trained on what is then stored.
        in_file: whether the file at hand is stored this way (a file leaves out zeros too, so it
            never takes more).
    """

    structure: str
    dtype: str
    features_bytes: int
    adjacency_bytes: int
    labels_bytes: int
    bytes: int
    accuracy: Accuracy
    in_file: bool


@dataclass(frozen=True)
class TrainedOn:
    """Training on one graph.

    Attributes:
        nodes, bytes: size of that graph, in a file.
        seconds: to train one network by the test protocol, which validates on the real graph.
        seconds_alone: the same epochs, validating once at the end.
        accuracy: on the real test nodes.
    """

    nodes: int
    bytes: int
    seconds: float
    seconds_alone: float
    accuracy: Accuracy


@dataclass(frozen=True)
class CostSheet:
    """Seconds, bytes and accuracy of condensing, against the whole graph and a random subset.

    Attributes:
        condense_seconds, condense_memory_bytes, condensed_on: as the file tells them: the seconds
            include sparsifying; memory is the peak of the device or, on a CPU, the largest that the
            process had taken by then, whatever for.
        file_bytes: features, adjacency and labels of the file at hand.
        original_features_bytes, original_adjacency_bytes, original_bytes: the real graph's, stored
            sparsely where that is smaller; the last includes labels.
        sparsified_by: the rule behind the sparsified forms.
        forms: the ways to store the condensed graph.
        condensed, random, whole: training on the file, on a random class-balanced subset of the
            training nodes of the same bytes, and on the whole graph.
        whole_with_pseudo_labels: where the file was condensed with pseudo-labels, training on the
            whole graph with pseudo-labels on every node.
        pseudo_labels: then also ``test`` and ``validation`` accuracy in percent of the pseudo-labels
            themselves.
        break_even: after how many trainings by the protocol condensing has paid for itself.
        break_even_alone: the same for epochs without validation.
        verdict: ``break_even`` in words, or why there is none.
        notes: what a reader should know beside the numbers.
        seconds: what measuring took.
    """

    dataset: str
    method: str | None
    model: str
    runs: int
    recipe: dict[str, Any]
    seed: int
    device: str
    machine: str
    leaks_test_labels: bool
    condense_seconds: float | None
    condense_memory_bytes: int | None
    condensed_on: str | None
    file_bytes: int
    original_features_bytes: int
    original_adjacency_bytes: int
    original_bytes: int
    sparsified_by: str
    forms: tuple[StoredForm, ...]
    condensed: TrainedOn
    random: TrainedOn
    whole: TrainedOn
    break_even: int | None
    break_even_alone: int | None
    verdict: str
    notes: tuple[str, ...]
    seconds: float
    whole_with_pseudo_labels: TrainedOn | None = None
    pseudo_labels: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        told = asdict(self)
        if self.pseudo_labels is None:
            del told["whole_with_pseudo_labels"], told["pseudo_labels"]
        return told

    def __str__(self) -> str:
        return (
            f"{self.condensed.accuracy} on {self.dataset} from {self.file_bytes:,} bytes, the whole"
            f" graph {self.whole.accuracy} from {self.original_bytes:,}; {self.verdict}"
        )


def break_even(condense: float | None, small: float, whole: float) -> int | None:
    """The smallest t > 0 with ``condense + t * small <= t * whole``, if there is one."""
    if condense is None or small >= whole:
        return None
    trainings = max(1, math.ceil(condense / (whole - small)))
    # The quotient is rounded; the sentence in the docstring is not.
    while condense + trainings * small > trainings * whole:
        trainings += 1
    return trainings


def verdict(condense: float | None, small: float, whole: float) -> str:
    """:func:`break_even` in words."""
    if condense is None:
        return "the file does not say how long condensing took, so nobody knows when it has paid"
    trainings = break_even(condense, small, whole)
    if trainings is None:
        return (
            f"condensing does not pay for itself in time: a training on the small graph takes"
            f" {small:.3g} s, on the whole one {whole:.3g} s"
        )
    return (
        f"condensing ({condense:.3g} s) has paid for itself after"
        f" {counted(trainings, 'training')} ({small:.3g} s each instead of {whole:.3g} s)"
    )
