"""The cost sheet: seconds, bytes and accuracy, measured on this machine in one run."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gcsr.data.condensed import STORED_DTYPES, CondensedGraph, size_note
from gcsr.data.features import StoredParts, real_bytes, select_rows
from gcsr.data.graph import Graph
from gcsr.data.views import Target, VisibleGraph
from gcsr.evaluation.intervals import Accuracy, compare
from gcsr.evaluation.origin import (
    PSEUDO_LABELS_NOTE,
    labeler_of,
    require_origin,
    used_pseudo_labels,
)
from gcsr.evaluation.sparsify import Sparsifier
from gcsr.evaluation.trial import Batch, Measured, NetworkTester
from gcsr.starts.sample import class_budget
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputWarning
from gcsr.utils.formatting import counted
from gcsr.utils.parallel import single_threaded
from gcsr.utils.progress import Progress, ProgressOption, shows_progress, silent
from gcsr.utils.safe_io import known, part


@dataclass(frozen=True)
class StoredForm:
    """One way to store the condensed graph, and the accuracy of networks trained on it.

    ``structure`` is ``dense``, with all n' x n' numbers, or ``sparsified``. ``bytes`` is the sum of the
    other three. ``in_file``: the given file is stored this way (without zeros, so it never takes more).
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
    """Training on one graph: its size in a file, and the accuracy on the real test nodes.

    ``seconds`` are for one network by the test protocol, which validates on the real graph after every
    epoch; ``seconds_alone`` for the same epochs with one validation at the end.
    """

    nodes: int
    bytes: int
    seconds: float
    seconds_alone: float
    accuracy: Accuracy


@dataclass(frozen=True)
class CostSheet(Measured):
    """Seconds, bytes and accuracy of condensing, against the whole graph and a random subset.

    Attributes:
        condense_seconds, condense_memory_bytes, condensed_on: from the file. The seconds include
            sparsifying; memory is the peak of the device or, on a CPU, of the process.
        file_bytes: features, adjacency and labels of the file at hand.
        original_features_bytes, original_adjacency_bytes, original_bytes: of the real graph (of an
            inductive one, its training nodes), sparse where that is smaller; the last includes labels.
        sparsified_by: the rule behind the sparsified forms.
        forms: the ways to store the condensed graph.
        condensed, random, whole: training on the file, on a random class-balanced subset of the
            training nodes of the same bytes, and on the whole graph.
        whole_with_pseudo_labels, pseudo_labels: if the file was condensed with pseudo-labels, training
            on the whole graph with pseudo-labels on every node, and their own accuracy in percent on
            ``test`` and ``validation`` nodes.
        break_even, break_even_alone: after how many trainings condensing has paid for itself, by the
            protocol and for epochs without validation.
        verdict: ``break_even`` in words, or why there is none.
        evaluation_seconds, storage_seconds: of training ``runs`` networks on the file to test it, and
            of writing and reading it.
        paid_after: trainings by the protocol until condensing, evaluation and storage are paid.
        decision: the same in words, or that it never pays in time.
        seconds: of measuring.
        made_by: revisions, settings and versions that the file was condensed with.
    """

    method: str | None
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
    evaluation_seconds: float
    storage_seconds: float
    paid_after: int | None
    decision: str
    notes: tuple[str, ...]
    seconds: float
    made_by: dict[str, Any]
    whole_with_pseudo_labels: TrainedOn | None = None
    pseudo_labels: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = super().to_dict()
        if self.pseudo_labels is None:
            del values["whole_with_pseudo_labels"], values["pseudo_labels"]
        return values

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
    # The quotient is rounded.
    while condense + trainings * small > trainings * whole:
        trainings += 1
    return trainings


# Two measurements of the same training vary by some percent.
NOISE = 0.1


def distinguishable(small: float, whole: float) -> bool:
    """Whether the seconds of two trainings differ by more than measurements vary.

    The break-even has their difference in its denominator: below, it may as well be many times larger.
    """
    return abs(whole - small) > NOISE * max(small, whole)


def verdict(condense: float | None, small: float, whole: float) -> str:
    """:func:`break_even` in words."""
    if condense is None:
        return "the file does not say how long condensing took, so the break-even is unknown"
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


def decision(
    condense: float | None,
    evaluation: float,
    storage: float,
    small: float,
    whole: float,
    *,
    expected: bool = False,
) -> str:
    """After how many trainings condensing, testing the result and storing it are paid for."""
    if condense is None:
        return "it is unknown when it has paid: the file does not say how long condensing took"
    each = (
        f"a training takes {small:.3g} s on the condensed graph and {whole:.3g} s on the whole one"
    )
    trainings = break_even(condense + evaluation + storage, small, whole)
    if trainings is None:
        return (
            f"it {'will never pay' if expected else 'never pays'} in time on this machine: {each}"
        )
    if not distinguishable(small, whole):
        return (
            "when it pays in time is not distinguishable from never on this machine: the two trainings"
            f" differ by less than measurements vary; {each}"
        )
    when = "will have paid after about" if expected else "has paid after"
    stored = "" if expected else f" and {storage:.2g} s to store it"
    spent = f"{condense:.3g} s to condense, {evaluation:.3g} s to evaluate{stored}"
    return f"it {when} {counted(trainings, 'training')} on this machine: {spent}; {each}"


ROUNDS = 3
# What takes longer than this, all repetitions together, is not repeated again.
LONG_SECONDS = 10.0
# Enough for a CUDA device to record an epoch.
WARM_UP = 25
STAGE = "measuring time"


def training_seconds(
    tester: NetworkTester,
    batches: Mapping[str, Batch],
    recipes: Mapping[str, TrainingRecipe],
    progress: Progress,
) -> dict[tuple[str, str], float]:
    """Median seconds to train one network, by graph and recipe.

    Every training is warmed up, then they take turns, so that whatever else the machine does meets all
    of them. On a CPU a network is trained on one thread. What is computed once per graph, whatever
    the number of networks, is not counted.
    """
    cases = [(graph, recipe) for recipe in recipes for graph in batches]
    seconds: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    steps = len(cases) * (ROUNDS + 1)
    with single_threaded():
        for done, (graph, recipe) in enumerate(cases):
            short = min(WARM_UP, recipes[recipe].epochs)
            _timed(tester, batches[graph], replace(recipes[recipe], epochs=short))
            progress(STAGE, done, steps)
        for turn in range(1, ROUNDS + 1):
            for done, case in enumerate(cases):
                if sum(seconds[case]) < LONG_SECONDS:
                    graph, recipe = case
                    seconds[case].append(_timed(tester, batches[graph], recipes[recipe]))
                progress(STAGE, turn * len(cases) + done, steps)
    progress(STAGE, steps, steps)
    return {case: statistics.median(measured) for case, measured in seconds.items()}


def _timed(tester: NetworkTester, batch: Batch, recipe: TrainingRecipe) -> float:
    began = time.perf_counter()
    fitted = tester.train(replace(batch, networks=range(1)), recipe, silent)
    fitted.validation.cpu()  # waits for the device
    return time.perf_counter() - began


@dataclass(frozen=True, eq=False)
class Subset:
    """Some training nodes and the edges among them; ``note``: why its size differs."""

    target: Target
    size: StoredParts
    note: str | None = None


def random_subsets(
    small: CondensedGraph, visible: VisibleGraph, seed: int, count: int
) -> list[Subset]:
    """Subsets of as many bytes, of several seeds; of all training nodes there is only one."""
    subset = partial(random_subset, visible, small.stored_bytes, itemsize=2 if small.half else 4)
    first = subset(seed=seed)
    if first.target.nodes.numel() == visible.train.numel():
        return [first] * count
    others = range(seed + 1, seed + count)
    return [first, *(subset(seed=other) for other in others)]


def random_subset(visible: VisibleGraph, budget: int, *, itemsize: int, seed: int) -> Subset:
    """As many random training nodes, class by class, as fit into ``budget`` bytes.

    Classes share them as in :func:`~gcsr.starts.sample.class_budget`, that is as Random does.
    """
    generator = make_generator(seed, "random subset of the same bytes")
    order = visible.train[torch.randperm(visible.train.numel(), generator=generator)]
    by_class = [order[visible.labels[order] == c] for c in range(visible.num_classes)]

    def of_size(nodes: int) -> Subset:
        shares = class_budget(visible.train_labels, visible.num_classes, nodes)
        parts = [own[:count] for own, count in zip(by_class, shares.tolist(), strict=True)]
        chosen = torch.cat(parts).sort().values
        adjacency, x = visible.among(chosen), select_rows(visible.x, chosen)
        if itemsize == 2:
            # The condensed graph is stored in half precision too.
            x = x.half().float()
        target = Target(x, adjacency, torch.arange(chosen.numel()), visible.labels[chosen])
        return Subset(target, real_bytes(x, adjacency, itemsize=itemsize))

    least = sum(ids.numel() > 0 for ids in by_class)
    fits, beyond = least, visible.train.numel() + 1
    # Bytes grow with the nodes, apart from the random draw in a class; the result is checked below.
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        fits, beyond = (middle, beyond) if of_size(middle).size.total <= budget else (fits, middle)
    subset, note = of_size(fits), None
    total = subset.size.total
    if total > budget:
        note = (
            f"a random subset of {budget:,} bytes does not exist: a node of every class takes"
            f" {total:,}"
        )
    elif fits == visible.train.numel():
        note = (
            f"the random subset is all {fits:,} training nodes: they take {total:,} bytes, and"
            f" {budget:,} were allowed"
        )
    return replace(subset, note=note)


def random_batches(tester: NetworkTester, subsets: Sequence[Subset]) -> list[Batch]:
    """One network for every subset."""
    return [
        batch
        for run, subset in enumerate(subsets)
        for batch in tester.real_batches(subset.target, range(run, run + 1))
    ]


# What networks are trained on: pages and rows have these names.
SMALL, RANDOM, WHOLE, PSEUDO = "condensed", "random", "whole", "pseudo"
PROTOCOL, ALONE = "protocol", "alone"


@shows_progress
def cost(
    small: CondensedGraph,
    graph: Graph,
    *,
    model: str = "gcn",
    runs: int = 5,
    sparsify: str = "auto",
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: ProgressOption = None,
) -> CostSheet:
    """What a condensed graph costs and saves: seconds, bytes, accuracy and break-even.

    Seconds and memory of condensing come from the file. The rest is measured: one network after the
    other for time, ``runs`` networks per graph for accuracy. ``sparsify`` is the rule of the sparsified
    forms (see :func:`gcsr.sparsify`); a file that is sparsified already keeps its own. Every run of the
    random subset has a subset of its own.
    """
    graph = require_origin([small], graph, check_origin)
    sparsifier = Sparsifier(rule=sparsify, seed=seed)
    began = time.perf_counter()
    tester = NetworkTester.of(
        "a cost sheet", graph, model, runs, recipe, hidden_channels, seed, device
    )
    recipe, target = tester.recipe, tester.device
    condensing = tester.view.condensing()

    sparsified, own = small, "sparsified"
    rule = known(part(small.provenance, "stored"), "rule", str)
    if rule in (None, "none"):
        sparsified = sparsifier(small, condensing, target, progress)
        rule = str(sparsified.provenance["stored"]["rule"])
        # Where nothing is cut the second form has no zeros, and neither has a file that is smaller so.
        if rule != "none" or small.describe()["stored_adjacency"] != "sparse":
            own = "dense"
    ways = {
        (shape, dtype): stored.stored_as(dtype)
        for shape, stored in (("dense", small), ("sparsified", sparsified))
        for dtype in STORED_DTYPES
    }
    in_file = (own, "float16" if small.half else "float32")

    subsets = random_subsets(small, condensing.visible, seed, runs)
    groups: dict[Any, list[Batch]] = {}
    # Forms that are the same graph are trained once.
    twins: dict[tuple[str, str], tuple[str, str]] = {}
    for way, stored in ways.items():
        twins[way] = next(other for other in ways if _same_numbers(ways[other], stored))
        if twins[way] == way:
            groups[way] = tester.condensed_batches([stored], runs)
    groups[RANDOM] = random_batches(tester, subsets)
    groups[WHOLE] = tester.real_batches(tester.view.training(), range(runs))
    shares = None
    # Every visible node of an inductive graph has a label.
    if used_pseudo_labels(small) and not graph.inductive:
        shares = tester.pseudo_labels(labeler_of(small), progress)
        groups[PSEUDO] = tester.pseudo_labeled_batches(shares, range(runs))
    # Every run of the random subset has a graph of its own, if there are several.
    graphs = {RANDOM: runs if subsets[0] is not subsets[-1] else 1}
    accuracy = {
        group: Accuracy.of(scores, graphs.get(group, 1))
        for group, scores in tester.percents(groups, progress).items()
    }
    accuracy |= {way: accuracy[twin] for way, twin in twins.items()}
    timed = {SMALL: groups[twins[in_file]][0]}
    timed |= {what: groups[what][0] for what in (RANDOM, WHOLE, PSEUDO) if what in groups}
    recipes = {PROTOCOL: recipe, ALONE: replace(recipe, validate_every=recipe.epochs)}
    seconds = training_seconds(tester, timed, recipes, progress)

    original = tester.view.stored_parts

    first, measured = subsets[0], part(small.provenance, "measured")

    def trained(what: str, nodes: int, size: int) -> TrainedOn:
        scores = accuracy[in_file if what == SMALL else what]
        return TrainedOn(nodes, size, seconds[what, PROTOCOL], seconds[what, ALONE], scores)

    whole = condensing.visible.num_nodes, original.total
    took = condense_seconds(small)
    times = {r: (took, seconds[SMALL, r], seconds[WHOLE, r]) for r in recipes}
    each = seconds[SMALL, PROTOCOL], seconds[WHOLE, PROTOCOL]
    tested, stored_in = runs * each[0], _storage_seconds(small)
    described = tester.described(model, runs)
    described["machine"] += f", torch {torch.__version__}"
    return CostSheet(
        method=known(small.provenance, "method", str),
        leaks_test_labels=small.leaks_test_labels,
        condense_seconds=took,
        condense_memory_bytes=known(measured, "peak_memory_bytes", int),
        condensed_on=known(small.provenance, "device", str),
        file_bytes=small.stored_bytes,
        original_features_bytes=original.features,
        original_adjacency_bytes=original.adjacency,
        original_bytes=original.total,
        sparsified_by=rule,
        forms=tuple(
            _form(stored, shape, dtype, accuracy[shape, dtype], (shape, dtype) == in_file)
            for (shape, dtype), stored in ways.items()
        ),
        condensed=trained(SMALL, small.num_nodes, small.stored_bytes),
        random=trained(RANDOM, first.target.nodes.numel(), first.size.total),
        whole=trained(WHOLE, *whole),
        whole_with_pseudo_labels=None if shares is None else trained(PSEUDO, *whole),
        pseudo_labels=None if shares is None else tester.pseudo_label_accuracies(shares),
        break_even=break_even(*times[PROTOCOL]),
        break_even_alone=break_even(*times[ALONE]),
        verdict=verdict(*times[PROTOCOL]),
        evaluation_seconds=tested,
        storage_seconds=stored_in,
        paid_after=break_even(None if took is None else took + tested + stored_in, *each),
        decision=decision(took, tested, stored_in, *each),
        notes=tuple(
            _notes(small, original.total, target, first, accuracy[in_file], accuracy[RANDOM])
        ),
        seconds=time.perf_counter() - began,
        made_by={key: small.provenance.get(key) for key in ("revisions", "settings", "versions")},
        **described,
    )


def _same_numbers(first: CondensedGraph, second: CondensedGraph) -> bool:
    return torch.equal(first.adjacency, second.adjacency) and torch.equal(first.x, second.x)


def _form(
    stored: CondensedGraph, shape: str, dtype: str, accuracy: Accuracy, in_file: bool
) -> StoredForm:
    size = stored.stored_parts
    if shape == "dense":
        size = replace(size, adjacency=stored.adjacency.numel() * (2 if stored.half else 4))
    parts = size.features, size.adjacency, size.labels
    return StoredForm(shape, dtype, *parts, size.total, accuracy, in_file)


def condense_seconds(small: CondensedGraph) -> float | None:
    """Seconds that condensing and sparsifying took, if the file says so."""
    measured = part(small.provenance, "measured")
    seconds = known(measured, "seconds", float)
    return None if seconds is None else seconds + (known(measured, "storing_seconds", float) or 0)


def _storage_seconds(small: CondensedGraph) -> float:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the notes of the sheet say the same
        began = time.perf_counter()
        CondensedGraph.load(small.save(Path(folder) / "graph.safetensors"))
        return time.perf_counter() - began


def _notes(
    small: CondensedGraph,
    original: int,
    device: torch.device,
    subset: Subset,
    condensed: Accuracy,
    random: Accuracy,
) -> Iterator[str]:
    if used_pseudo_labels(small):
        yield PSEUDO_LABELS_NOTE
    if subset.note is not None:
        yield subset.note
    against = compare(condensed, random)
    if against.sign < 0:
        yield (
            f"real nodes of the same bytes test better ({random}) than the condensed ones"
            f" ({condensed}; difference {against}): condensing was not worth it"
        )
    elif against.interval is None:
        yield (
            f"one run is too few to compare the condensed graph ({condensed}) with real nodes of the"
            f" same bytes ({random})"
        )
    elif against.sign == 0:
        yield (
            "the condensed graph and real nodes of the same bytes are not distinguishable:"
            f" {condensed} and {random}, difference {against} points with its 95 % interval"
        )
    yield from size_note(small.stored_bytes, original)
    made_on = known(small.provenance, "device", str)
    if made_on is not None and made_on != device.type:
        yield f"condensed on {made_on}, trained on {device.type}: seconds are of two devices"
    measured = part(small.provenance, "measured")
    if part(measured, "experts").get("cached"):
        yield "the experts were trained earlier: their seconds are not part of condensing's"
    together = known(measured, "graphs_together", int) or 1
    if together > 1:
        yield f"{together} graphs were condensed together: each has its share of the seconds"
    if device.type == "cpu":
        yield "on a CPU every network is trained on one thread"
