"""What a result cost and what it saves: seconds, memory, bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from gcsr.analysis.analysis import Analysis, OrderedMatrices, analyze, ordered_matrices
from gcsr.analysis.statistics import LabeledGraph, Portrait, portrait
from gcsr.api import condense_many
from gcsr.data.condensed import CondensedGraph, stored_adjacency_bytes
from gcsr.data.graph import Graph
from gcsr.evaluation.cost import verdict
from gcsr.evaluation.evaluation import Evaluation
from gcsr.evaluation.origin import labeler_of, used_pseudo_labels
from gcsr.evaluation.protocol import evaluate, evaluate_full
from gcsr.reporting.text import NOTHING, byte_count, number, part, seconds
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted
from gcsr.utils.progress import Progress, silent

# -- All that a page about one result is drawn from, measured here -----------------------------------


NEAREST = 3
SMALL, RANDOM, WHOLE = "condensed", "random", "whole"
PSEUDO, LABELS = "pseudo", "labels"


@dataclass(frozen=True)
class Trial:
    """How accuracies are measured.

    Attributes:
        model: the network that is trained and tested.
        runs: networks per graph.
        recipe: how they are trained.
        subsets: random subsets of the same size that a result is compared with.
        seed: of the networks.
        device: where they are trained.
    """

    model: str
    runs: int
    recipe: TrainingRecipe
    subsets: int
    seed: int
    device: torch.device

    def __post_init__(self) -> None:
        fine = isinstance(self.subsets, int) and not isinstance(self.subsets, bool)
        require(
            fine and self.subsets >= 1,
            f"subsets: {self.subsets!r} is not accepted; a whole number >= 1 is.",
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """Networks trained on one thing: a condensed graph, random subsets, the whole graph.

    Of ``LABELS``, the pseudo-labels themselves, no network is trained: the one score is theirs.
    """

    name: str
    kind: str
    evaluation: Evaluation
    nbytes: int
    condensing: float | None = None

    @property
    def seconds_each(self) -> float:
        """Seconds per trained network, validation on the real graph included."""
        return self.evaluation.seconds / len(self.evaluation.scores)

    @property
    def size(self) -> str:
        """How many networks on how many graphs."""
        one = self.evaluation
        graphs = f"{counted(one.graphs, 'graph')} x " if one.graphs > 1 else ""
        return f"{graphs}{counted(one.runs, 'run')}"


@dataclass(frozen=True, eq=False)
class Evidence:
    """One result, what it looks like, and beside which graph it was held.

    ``absent`` says why there is no real graph; ``untested`` why there are no accuracies.
    """

    name: str
    small: CondensedGraph
    condensed: Portrait
    matrices: OrderedMatrices
    analysis: Analysis | None
    scores: tuple[Scored, ...]
    absent: str = ""
    untested: str = ""

    @property
    def own(self) -> Scored | None:
        """Accuracy of this very result."""
        return next((one for one in self.scores if one.kind == SMALL), None)

    def rivals(self, kind: str) -> Scored | None:
        """Accuracy of one of the things that results are compared with."""
        return next((one for one in self.scores if one.kind == kind), None)


def look(
    name: str,
    small: CondensedGraph,
    graph: Graph | None,
    scores: Sequence[Scored],
    *,
    tsne_nodes: int,
    seed: int,
    check_origin: bool,
    absent: str,
    untested: str,
    progress: Progress,
) -> Evidence:
    """Analyze one result, beside the real graph where there is one."""
    if graph is None:
        bare = portrait(LabeledGraph.of_condensed(small), 0.01)
        return Evidence(
            name, small, bare, ordered_matrices(small), None, (), absent, untested or absent
        )
    analysis = analyze(
        small,
        graph,
        nearest=min(NEAREST, int(graph.train.numel())),
        tsne_nodes=tsne_nodes,
        seed=seed,
        check_origin=check_origin,
        progress=progress,
    )
    return Evidence(
        name,
        small,
        analysis.condensed,
        analysis.matrices,
        analysis,
        tuple(scores),
        untested=untested,
    )


def tested(
    results: Sequence[tuple[str, CondensedGraph]],
    graph: Graph,
    trial: Trial,
    *,
    check_origin: bool,
    progress: Progress,
) -> list[Scored]:
    """Accuracy of every result, of random subsets of each size, and of the whole graph.

    Where a result was condensed with pseudo-labels, those are compared with as well.
    """
    scores = []
    # The first network of a process waits for what is loaded on demand: that is nobody's time.
    warm = replace(trial, runs=1, recipe=TrainingRecipe(epochs=3))
    _train([results[0][1]], graph, warm, check_origin, silent)
    for name, small in results:
        found = _train([small], graph, trial, check_origin, _named(progress, name))
        scores.append(Scored(name, SMALL, found, small.stored_bytes, _condensing(small)))
    for nodes in sorted({min(small.num_nodes, _visible(graph)) for _, small in results}):
        subsets = condense_many(
            graph, nodes=nodes, method="random", seeds=range(trial.subsets), device=trial.device
        )
        found = _train(subsets, graph, trial, check_origin, _named(progress, f"random, {nodes}"))
        said = f"random subset, {counted(nodes, 'node')}"
        scores.append(Scored(said, RANDOM, found, subsets[0].stored_bytes))
    scores.append(
        Scored("whole graph", WHOLE, _train_whole(graph, trial, progress), graph.stored_bytes)
    )
    # Every visible node of an inductive graph has a label.
    helped = [small for _, small in results if used_pseudo_labels(small)]
    if helped and not graph.inductive:
        found = _train_whole(graph, trial, progress, pseudo_labels=labeler_of(helped[0]))
        scores.append(Scored("whole graph with pseudo-labels", PSEUDO, found, graph.stored_bytes))
        scores.append(_pseudo_labels(found))
    return scores


def _train_whole(
    graph: Graph, trial: Trial, progress: Progress, *, pseudo_labels: str | None = None
) -> Evaluation:
    what = "whole graph with pseudo-labels" if pseudo_labels else "whole graph"
    return evaluate_full(
        graph,
        model=trial.model,
        runs=trial.runs,
        recipe=trial.recipe,
        seed=trial.seed,
        device=trial.device,
        progress=_named(progress, what),
        pseudo_labels=pseudo_labels or False,
    )


def _pseudo_labels(found: Evaluation) -> Scored:
    """The pseudo-labels themselves, with which networks were trained."""
    labels = found.pseudo_labels or {}
    test, validation = labels["test"], labels["validation"]
    alone = replace(
        found, mean=test, std=0.0, scores=[test], validation=[validation], runs=1, seconds=0.0
    )
    return Scored("pseudo-labels themselves", LABELS, alone, 0)


def _train(
    made: Sequence[CondensedGraph],
    graph: Graph,
    trial: Trial,
    check_origin: bool,
    progress: Progress,
) -> Evaluation:
    return evaluate(
        made,
        graph,
        model=trial.model,
        runs=trial.runs,
        recipe=trial.recipe,
        seed=trial.seed,
        device=trial.device,
        check_origin=check_origin,
        progress=progress,
    )


def _visible(graph: Graph) -> int:
    return int(graph.train.numel()) if graph.inductive else graph.num_nodes


def _condensing(small: CondensedGraph) -> float | None:
    return number(part(small.provenance, "measured"), "seconds")


def _named(progress: Progress, what: str) -> Progress:
    def report(stage: str, done: int, total: int) -> None:
        progress(f"{what}: {stage}", done, total)

    return report


COLUMNS = ("condensed", "random subset", "whole graph")


@dataclass(frozen=True)
class CostSheet:
    """Rows of a label and one text per column, and remarks below them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    remarks: tuple[str, ...] = ()


def cost_sheet(found: Evidence) -> CostSheet:
    """Everything known about the cost of one result."""
    return CostSheet(COLUMNS, tuple(_rows(found)), tuple(_remarks(found)))


def _rows(found: Evidence) -> Iterator[tuple[str, tuple[str, ...]]]:
    small, made = found.small, found.small.provenance
    measured = part(made, "measured")
    own, random, whole = found.own, found.rivals(RANDOM), found.rivals(WHOLE)
    original = number(part(made, "bytes"), "original")
    if original is None and whole is not None:
        original = whole.nbytes
    yield "condensing, once", (seconds(number(measured, "seconds")), "none", "none")
    memory = byte_count(number(measured, "peak_memory_bytes"))
    yield "peak memory until it was done", (memory, NOTHING, NOTHING)
    if own is not None and random is not None and whole is not None:
        each = tuple(seconds(one.seconds_each) for one in (own, random, whole))
        yield "training one network", each
    yield "bytes in the file", (byte_count(small.stored_bytes), NOTHING, byte_count(original))
    for name, itemsize in (("float32", 4), ("float16", 2)):
        features = small.x.numel() * itemsize
        dense = small.adjacency.numel() * itemsize
        sparse = stored_adjacency_bytes(small.adjacency, itemsize, features + small.y.nbytes)
        yield f"… features, {name}", (byte_count(features), NOTHING, NOTHING)
        yield f"… A' dense, {name}", (byte_count(dense), NOTHING, NOTHING)
        yield f"… A' without its zeros, {name}", (byte_count(sparse), NOTHING, NOTHING)


def _remarks(found: Evidence) -> Iterator[str]:
    measured = part(found.small.provenance, "measured")
    together = number(measured, "graphs_together")
    if together is not None and together > 1:
        yield f"{together:.0f} graphs were condensed together; seconds are per graph."
    experts = part(measured, "experts")
    if experts.get("cached") is True:
        yield "The experts were trained before and are not part of the seconds."
    own, whole = found.own, found.rivals(WHOLE)
    spent = number(measured, "seconds")
    if own is None or whole is None:
        return
    yield (
        "Training includes validation on the real graph after every epoch, which costs the same"
        " whatever was trained on. Seconds are of the machine that made this page."
    )
    yield verdict(spent, own.seconds_each, whole.seconds_each)
    yield (
        "`gcsr cost` measures more: a random subset of the same bytes, sparsified and half precision"
        " forms with their accuracy, and training without validation."
    )
