"""Results with their analysis and with accuracies of networks trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from gcsr.analysis.analysis import Analysis
from gcsr.analysis.privacy import Privacy
from gcsr.analysis.statistics import GraphStatistics, LabeledGraph, statistics_of
from gcsr.api import condense_many
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.evaluation.cost import PSEUDO, RANDOM, SMALL, WHOLE
from gcsr.evaluation.networks import Evaluation
from gcsr.evaluation.origin import labeler_of, used_pseudo_labels
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.reporting.text import text
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress, prefixed, silent
from gcsr.utils.safe_io import part

LABELS = "labels"


@dataclass(frozen=True, eq=False)
class Score:
    """Accuracy of networks trained on a condensed graph, on random subsets or on the whole graph.

    No network is trained for the kind ``LABELS``: its one score is that of the pseudo-labels.
    """

    name: str
    kind: str
    evaluation: Evaluation
    nbytes: int

    @property
    def seconds_each(self) -> float:
        """Seconds per trained network, validation on the real graph included."""
        return self.evaluation.seconds / len(self.evaluation.scores)

    @property
    def validation(self) -> float:
        """Mean validation accuracy: what is best is decided by it, never by test accuracy."""
        return fmean(self.evaluation.validation)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"name": self.name, "kind": self.kind, "bytes": self.nbytes} | (
            self.evaluation.to_dict()
        )

    @property
    def plus_minus(self) -> str:
        """Half of the 95 % interval; empty for a single score."""
        half = self.evaluation.accuracy.plus_minus
        return "" if half is None else f"± {half:.1f}"

    @property
    def detail(self) -> str:
        """Nodes, graphs and networks."""
        if self.kind == LABELS:
            return "most likely class of each test node"
        return f"{counted(self.evaluation.nodes, 'node')} · {self.size}"

    @property
    def size(self) -> str:
        """How many networks on how many graphs."""
        one = self.evaluation
        graphs = f"{counted(one.graphs, 'graph')} x " if one.graphs > 1 else ""
        return f"{graphs}{counted(one.runs, 'run')}"


@dataclass(frozen=True, eq=False)
class Result:
    """A condensed graph, and where there is a real graph, how it compares.

    ``absent`` says why there is no real graph; ``untested`` why there are no accuracies.
    """

    name: str
    small: CondensedGraph
    analysis: Analysis | None = None
    scores: tuple[Score, ...] = ()
    absent: str = ""
    untested: str = ""
    privacy: Privacy | None = None

    @cached_property
    def condensed(self) -> GraphStatistics:
        """Statistics of the condensed graph."""
        if self.analysis is not None:
            return self.analysis.condensed
        return statistics_of(LabeledGraph.of_condensed(self.small), 0.01)

    @property
    def dataset(self) -> str:
        """The name of the graph that was condensed."""
        return text(part(self.small.provenance, "dataset"), "name", "an unnamed graph")

    @property
    def original_bytes(self) -> float | None:
        """Bytes of the graph that was condensed: measured now, or as the file says."""
        whole = self.score(WHOLE)
        return self.small.original_bytes if whole is None else whole.nbytes

    def score(self, kind: str) -> Score | None:
        """The first score of a kind."""
        return next((one for one in self.scores if one.kind == kind), None)


def train_and_test(
    results: Sequence[tuple[str, CondensedGraph]],
    graph: Graph,
    *,
    subsets: int,
    check_origin: bool,
    progress: Progress,
    **training: Any,
) -> list[Score]:
    """Accuracy of every result, of random subsets of each size, and of the whole graph.

    Where a result was condensed with pseudo-labels, those are compared with as well. ``training`` is
    ``model``, ``runs``, ``recipe``, ``seed`` and ``device``.
    """

    def on(graphs: Sequence[CondensedGraph], name: str, **changed: Any) -> Evaluation:
        named = prefixed(progress, name)
        options = {**training, "check_origin": check_origin, "progress": named, **changed}
        return evaluate(graphs, graph, **options)

    def on_whole(name: str, **options: Any) -> Evaluation:
        return evaluate_full(graph, progress=prefixed(progress, name), **training, **options)

    # The first network of a process includes the time of imports; it is not measured.
    on([results[0][1]], "", progress=silent, runs=1, recipe=TrainingRecipe(epochs=3))
    scores = [Score(name, SMALL, on([small], name), small.stored_bytes) for name, small in results]
    visible = int(graph.train.numel()) if graph.inductive else graph.num_nodes
    for nodes in sorted({min(small.num_nodes, visible) for _, small in results}):
        drawn = condense_many(
            graph, nodes=nodes, method="random", seeds=range(subsets), device=training["device"]
        )
        name = f"random subset, {counted(nodes, 'node')}"
        scores.append(Score(name, RANDOM, on(drawn, name), drawn[0].stored_bytes))
    name, size = "whole graph", View(graph).stored_parts.total
    scores.append(Score(name, WHOLE, on_whole(name), size))
    # Every visible node of an inductive graph has a label.
    helped = [small for _, small in results if used_pseudo_labels(small)]
    if helped and not graph.inductive:
        name = "whole graph with pseudo-labels"
        found = on_whole(name, pseudo_labels=labeler_of(helped[0]))
        scores.append(Score(name, PSEUDO, found, size))
        labels = found.pseudo_labels or {}
        test, validation = labels["test"], labels["validation"]
        alone = replace(
            found, mean=test, std=0.0, scores=[test], validation=[validation], runs=1, seconds=0.0
        )
        scores.append(Score("pseudo-labels themselves", LABELS, alone, 0))
    return scores
