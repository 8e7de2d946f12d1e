"""One epoch of one test network."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from benchmarks.speed.cases import Case
from benchmarks.speed.reference import ReferenceRun, train_and_test
from benchmarks.speed.row import BenchRow, median_ms
from benchmarks.speed.standin import graph_of
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.evaluation.protocol import evaluate
from gcsr.methods.gcsr import GCSR
from gcsr.models.base import init_batch
from gcsr.models.registry import testing_model
from gcsr.models.sparse import SparseTopology
from gcsr.training.fit import TrainingRecipe, fit, logits_of, networks_at_once, topology_of
from gcsr.utils.devices import make_generator
from gcsr.utils.parallel import single_threaded

RUNS = 10
# The whole protocol on CUDA. On a CPU a part of it: the engine's preparation weighs a little more.
EPOCHS = {"cpu": 100, "cuda": 600}
# An epoch of a large graph takes a CPU thread about a second.
LARGE_NODES, LARGE_EPOCHS = 20_000, 5
# Networks that are trained by the reference and compared one by one, and for how long: over hundreds
# of epochs the last bit of a sum decides which of two equally good epochs is the best.
COMPARED, COMPARED_EPOCHS = 2, 30


def bench_evaluate(
    name: str, shape: Case, device: torch.device, *, repeats: int, root: Path | None = None
) -> BenchRow:
    """Milliseconds per network and epoch, validation included.

    The engine's share of preparing and testing is included, the reference's is not. ``loss_error``
    is the difference in test accuracy, ``gradient_error`` the share of test nodes that are predicted
    differently, both after ``COMPARED_EPOCHS``.
    """
    graph, origin = graph_of(shape, root)
    large = device.type == "cpu" and shape.graph_nodes > LARGE_NODES
    epochs = LARGE_EPOCHS if large else EPOCHS[device.type]
    recipe = TrainingRecipe(epochs=epochs)
    with single_threaded():
        small = quick_condensed(shape, graph, device)

        def engine() -> None:
            evaluate(small, graph, runs=RUNS, recipe=recipe, device=device)

        engine_ms = median_ms(engine, device, repeats=repeats) / (RUNS * epochs)
        short = TrainingRecipe(epochs=min(epochs, COMPARED_EPOCHS))
        plain = [reference_run(small, graph, i, short, device) for i in range(COMPARED)]
        ours = engine_predictions(small, graph, range(COMPARED), short, device)
    theirs = torch.stack([run.predicted for run in plain])
    labels = View(graph).test().labels.to(device)
    difference = (ours == labels).double().mean() - (theirs == labels).double().mean()
    return BenchRow(
        bench="evaluate",
        case=name,
        device=device.type,
        reference_ms=median(ms for run in plain for ms in run.epoch_ms),
        engine_ms=engine_ms,
        loss_error=float(difference.abs()),
        gradient_error=float((ours != theirs).double().mean()),
        unit="one network, one epoch",
        note=f"{origin}; {RUNS} runs x {epochs} epochs, preparing and testing included;"
        f" compared after {short.epochs} epochs",
    )


def quick_condensed(shape: Case, graph: Graph, device: torch.device) -> CondensedGraph:
    """A condensed graph as iterations find it: propagated rows and the structure they express."""
    condenser = GCSR(
        nodes=shape.nodes,
        iterations=0,
        iterate="last",
        prior="train",
        experts=1,
        expert_epochs=1,
        max_start=1,
        expert_steps=1,
    )
    return condenser.condense(graph, device=device)


def reference_run(
    small: CondensedGraph, graph: Graph, network: int, recipe: TrainingRecipe, device: torch.device
) -> ReferenceRun:
    """One network by the published loop, from the weights that the engine gives this number."""
    model, view = testing_model("gcn"), View(graph)
    initial = init_batch(
        model,
        graph.num_features,
        graph.num_classes,
        [make_generator(0, f"weights of {model.name} {network}")],
    )
    return train_and_test(
        small.x.to(device),
        small.adjacency.to(device),
        small.classes.to(device),
        view.validation(),
        view.test(),
        tuple(p[0].to(device) for p in initial),
        recipe,
    )


def engine_predictions(
    small: CondensedGraph,
    graph: Graph,
    networks: range,
    recipe: TrainingRecipe,
    device: torch.device,
) -> Tensor:
    """Test predictions of networks that :func:`gcsr.evaluate` only scores."""
    model, view = testing_model("gcn"), View(graph)
    validation, test = (
        model.prepare(target.x.to(device), SparseTopology(target.adjacency, device), target.nodes)
        for target in (view.validation(), view.test())
    )
    fitted = fit(
        model,
        model.prepare(small.x.to(device), topology_of(small.adjacency.to(device))),
        small.targets.to(device),
        validation,
        view.validation().labels.to(device),
        features=graph.num_features,
        recipe=recipe,
        networks=networks,
        seed=0,
        purpose="test",
    )
    parts = logits_of(model, fitted.params, test, at_once=networks_at_once(model, test))
    return torch.cat([part.argmax(-1) for part in parts])
