"""After how many trainings condensing will have paid, before anything is condensed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import torch

from gcsr.auto.automatic import Automatic
from gcsr.auto.costs import Costs
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.engines.iterates import QuickScore
from gcsr.evaluation.cost import break_even, decision
from gcsr.evaluation.trial import Batch, Trial
from gcsr.methods.base import Condenser
from gcsr.methods.bilevel import QUICK, QUICK_HIDDEN, QUICK_NETWORKS, Bilevel
from gcsr.models.registry import testing_model
from gcsr.training.classification import targets_of
from gcsr.training.fit import RECORDED_EPOCHS, TrainingRecipe, topology_of
from gcsr.utils.devices import make_generator
from gcsr.utils.parallel import single_threaded
from gcsr.utils.progress import silent

# Seconds that are spent on each of the three measurements on a CPU.
MEASURED_SECONDS = 0.25


@dataclass(frozen=True)
class Forecast:
    """Expected seconds on this machine.

    Attributes:
        condense_seconds: the estimate of condensing, times ``slowdown``.
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

    def compared(epochs: int) -> None:
        few = replace(QUICK, epochs=epochs, validate_every=min(epochs, QUICK.validate_every))
        quick.score(x, identity, targets, networks, 0, hidden_channels=QUICK_HIDDEN, recipe=few)

    costs = Costs(condensing, nodes, device.type, Bilevel(nodes=nodes), labeler=False)
    trial = Trial(testing_model("gcn"), graph, device, recipe, 0)
    prepared = trial.model.prepare(x, topology_of(identity))
    small = Batch(prepared, targets, range(1))
    whole = trial.real_batches(trial.view.training(), range(1))[0]

    def train(batch: Batch, epochs: int) -> None:
        trial.train(batch, replace(recipe, epochs=epochs), silent).validation.cpu()

    with single_threaded():
        slowdown = projected(compared, QUICK.epochs, device) / costs.comparison()
        each = [projected(partial(train, batch), recipe.epochs, device) for batch in (small, whole)]
    condense = condenser.estimate(graph, device.type).seconds * slowdown
    evaluation = runs * each[0]
    sentence = decision(condense, evaluation, 0.0, *each, expected=True)
    if device.type != "cpu" and not isinstance(condenser, Automatic):
        sentence += "; the seconds to condense are an order of magnitude, of one CPU core"
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


def projected(train: Callable[[int], object], epochs: int, device: torch.device) -> float:
    """Seconds of so many epochs, from few of them.

    On CUDA the first epochs record the others, so that two measurements are extrapolated.
    """

    def timed(count: int) -> float:
        began = time.perf_counter()
        train(count)
        return time.perf_counter() - began

    if device.type == "cpu":
        timed(1)
        count = max(1, min(epochs, int(MEASURED_SECONDS / max(timed(1), 1e-6))))
        return timed(count) / count * epochs
    first, second = RECORDED_EPOCHS + 5, 4 * RECORDED_EPOCHS
    timed(first)
    short, long = timed(first), timed(second)
    return long + (epochs - second) * max(0.0, long - short) / (second - first)
