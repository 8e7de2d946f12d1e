"""After how many trainings condensing will have paid, before anything is condensed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import torch

from gcsr.auto.automatic import Automatic
from gcsr.auto.costs import expected_costs
from gcsr.data.graph import Graph
from gcsr.data.views import CondensingView, View, known_nodes
from gcsr.engines.bilevel.engine import CHECK_EVERY
from gcsr.engines.iterates import QuickScore
from gcsr.engines.result import Context
from gcsr.evaluation.cost import break_even, decision
from gcsr.evaluation.trial import Batch, NetworkTester
from gcsr.methods.base import Condenser
from gcsr.methods.bilevel import (
    QUICK,
    QUICK_HIDDEN,
    QUICK_NETWORKS,
    Bilevel,
    labeler_of,
)
from gcsr.models.registry import testing_model
from gcsr.starts.pseudo_labels import LabelShares, class_shares, compared
from gcsr.starts.sample import Start
from gcsr.training.classification import targets_of
from gcsr.training.fit import RECORDED_EPOCHS, TrainingRecipe, topology_of
from gcsr.utils.devices import make_generator
from gcsr.utils.parallel import single_threaded
from gcsr.utils.progress import Progress, silent

# Seconds of each measurement on a CPU. There are several in turns, so that whatever else the machine
# does meets all trainings.
MEASURED_SECONDS, TURNS = 0.25, 3
# A part of condensing that is expected to take longer before it can be timed is not.
LONGEST_START = 2.0


@dataclass(frozen=True)
class Forecast:
    """Expected seconds on this machine.

    Attributes:
        condense_seconds: the estimate of condensing, an order of magnitude; of the automatic mode times
            ``slowdown``. On a CPU its pseudo-labels and outer steps are begun and timed instead.
        small_seconds, whole_seconds: one training by the test protocol on the condensed graph and on
            the whole one, from a few measured epochs.
        evaluation_seconds: of testing the condensed graph with ``runs`` networks.
        slowdown: seconds of a short training on this machine, divided by those that the cost model of
            the automatic mode expects.
        calibration_seconds: that these measurements took.
        paid_after: trainings until condensing and evaluation are paid; ``None``: never.
    """

    condense_seconds: float
    small_seconds: float
    whole_seconds: float
    evaluation_seconds: float
    runs: int
    slowdown: float
    calibration_seconds: float
    device: str
    paid_after: int | None
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def forecast(
    condenser: Condenser,
    graph: Graph,
    device: torch.device,
    *,
    runs: int = 5,
    recipe: TrainingRecipe | None = None,
) -> Forecast:
    """Expected break-even of a condensation; a stand-in of the condensed graph has random features."""
    began = time.perf_counter()
    recipe = recipe or TrainingRecipe()
    condensing = View(graph).condensing()
    visible = condensing.visible
    nodes = condenser.size(visible.num_nodes)
    generator = make_generator(0, "stand-in of a condensed graph")
    x = torch.rand(nodes, graph.num_features, generator=generator).to(device)
    labels = visible.train_labels[torch.arange(nodes) % visible.train.numel()]
    targets = targets_of(labels, graph.num_classes).to(device)
    identity = torch.eye(nodes, device=device)

    quick = QuickScore(condensing.validation, device)
    networks = range(QUICK_NETWORKS)

    def quickly(epochs: int) -> None:
        few = replace(QUICK, epochs=epochs)
        quick.score(x, identity, targets, networks, 0, hidden_channels=QUICK_HIDDEN, recipe=few)

    costs = expected_costs(condensing, nodes, device.type, Bilevel(nodes=nodes))
    tester = NetworkTester(testing_model("gcn"), graph, device, recipe, 0)
    prepared = tester.model.prepare(x, topology_of(identity))
    small = Batch(prepared, targets, range(1))
    whole = tester.real_batches(tester.view.training(), range(1))[0]

    def train(batch: Batch, epochs: int) -> None:
        tester.train(batch, replace(recipe, epochs=epochs), silent).validation.cpu()

    with single_threaded():
        trainings = [TimedTraining(quickly, QUICK.epochs, QUICK.validate_every)]
        trainings += [
            TimedTraining(partial(train, one), recipe.epochs, 1) for one in (small, whole)
        ]
        brief, *each = projected(trainings, device)
        slowdown = brief / costs.comparison
        condense = condenser.estimate(graph, device.type).seconds
        if isinstance(condenser, Automatic):
            condense *= slowdown
        if device.type == "cpu" and isinstance(condenser, Automatic):
            start = Start(x, torch.empty(0, dtype=torch.int64), targets=targets)
            condense = _automatic_seconds(condenser, condensing, start, slowdown)
    evaluation = runs * each[0]
    sentence = decision(condense, evaluation, 0.0, *each, expected=True)
    if not isinstance(condenser, Automatic):
        sentence += "; the seconds to condense are an order of magnitude, of one reference core"
    return Forecast(
        condense_seconds=condense,
        small_seconds=each[0],
        whole_seconds=each[1],
        evaluation_seconds=evaluation,
        runs=runs,
        slowdown=slowdown,
        calibration_seconds=time.perf_counter() - began,
        device=device.type,
        paid_after=break_even(condense + evaluation, *each),
        sentence=sentence,
    )


def _automatic_seconds(
    condenser: Automatic, view: CondensingView, start: Start, slowdown: float
) -> float:
    """Seconds of the automatic mode on this CPU.

    Pseudo-labelers and outer steps begin and are stopped, as the cost model is not equally far off for
    every kind of work. The rest is the estimate times ``slowdown``.
    """
    visible, device, nodes = view.visible, torch.device("cpu"), start.x.shape[0]
    plan, costs = condenser.expected(view, nodes, device.type)
    method = replace(costs.method, iterations=plan.iterations)
    labels = slowdown * costs.labels
    steps = 0.0
    if plan.iterations:
        steps = slowdown * (plan.iterations * costs.iteration + costs.preparation)
    rest = slowdown * plan.expected_seconds - labels - steps

    if costs.labels and slowdown * costs.smoothing < LONGEST_START:
        labeler = labeler_of(method, visible)
        names = compared(visible) if labeler == "auto" else (str(labeler),)

        def predict(name: str, progress: Progress) -> object:
            return class_shares(view, name, seed=0, device=device, progress=progress)

        labels = sum(begun(partial(predict, name), "training") for name in names)
    # Two checks of the losses are waited for.
    first = slowdown * (2 * CHECK_EVERY * costs.iteration + costs.preparation)
    if plan.iterations and method.structure == "none" and first < 2 * LONGEST_START:
        read = torch.arange(visible.num_nodes) if costs.labels else visible.train
        read = known_nodes(visible, read)
        shares = torch.full((read.numel(), visible.num_classes), 1 / visible.num_classes)
        known = LabelShares(read, shares)

        def improve(progress: Progress) -> object:
            context = Context(view, nodes, [0], device, progress)
            return replace(method, iterate="last").run(context, [start], known)

        steps = begun(improve, "condensing")
    return rest + labels + steps


class _EnoughError(Exception):
    """Raised by a progress callback: the work is stopped."""


def begun(work: Callable[[Progress], object], name: str) -> float:
    """Seconds of work, which is stopped after the first steps of stages whose names begin so."""
    began = time.perf_counter()
    marks: list[tuple[int, float]] = []
    whole = 0

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal whole
        if not stage.startswith(name):
            return
        marks.append((done, time.perf_counter()))
        whole = total
        if len(marks) > 1 and marks[-1][1] - marks[0][1] > MEASURED_SECONDS:
            raise _EnoughError

    try:
        work(progress)
    except _EnoughError:
        (first, at), (last, now) = marks[0], marks[-1]
        return now - began + (whole - last) * (now - at) / (last - first)
    return time.perf_counter() - began


class TimedTraining(NamedTuple):
    """A function of the number of epochs, how many there are, and after how many it validates."""

    train: Callable[[int], object]
    epochs: int
    validate_every: int


def projected(trainings: Sequence[TimedTraining], device: torch.device) -> list[float]:
    """Seconds of each training, from few of its epochs; trainings take turns.

    On CUDA the first epochs record the others, so that two measurements are extrapolated.
    """

    def timed(train: Callable[[int], object], count: int) -> float:
        began = time.perf_counter()
        train(count)
        return time.perf_counter() - began

    if device.type == "cpu":
        counts = []
        for train, epochs, every in trainings:
            timed(train, 1)
            fit = int(MEASURED_SECONDS / max(timed(train, every), 1e-6))
            counts.append(max(1, min(epochs // every, fit)) * every)
        turns = [
            [timed(one.train, count) / count for one, count in zip(trainings, counts, strict=True)]
            for _ in range(TURNS)
        ]
        each = [statistics.median(seconds) for seconds in zip(*turns, strict=True)]
        return [one.epochs * seconds for one, seconds in zip(trainings, each, strict=True)]
    found = []
    first, second = RECORDED_EPOCHS + 5, 4 * RECORDED_EPOCHS
    for train, epochs, _ in trainings:
        timed(train, first)
        short, long = timed(train, first), timed(train, second)
        found.append(long + (epochs - second) * max(0.0, long - short) / (second - first))
    return found
