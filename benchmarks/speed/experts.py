"""One epoch of one expert."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import torch

from benchmarks.speed.cases import Case
from benchmarks.speed.reference import expert_loss, train_expert
from benchmarks.speed.row import BenchRow, relative_error, synchronize
from benchmarks.speed.standin import graph_of
from gcsr.data.views import View, VisibleGraph
from gcsr.methods.gcsr import GCSR
from gcsr.models.base import Params, init_batch
from gcsr.models.registry import condensing_model
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.experts import train_experts
from gcsr.training.trajectories import Trajectories
from gcsr.utils.devices import make_generator
from gcsr.utils.parallel import single_threaded

# A CUDA device trains them as one batch, a CPU one after the other on the one thread it has here.
TOGETHER = {"cpu": 4, "cuda": 20}
EPOCHS = 20


def bench_experts(
    name: str, shape: Case, device: torch.device, *, repeats: int, root: Path | None = None
) -> BenchRow:
    """Milliseconds per expert and epoch, preparation left out on both sides.

    The loss is the training loss after the last epoch. The other error is the distance between the
    final weights, relative to how far the reference moved.
    """
    graph, origin = graph_of(shape, root)
    visible = View(graph).condensing().visible
    recipe = expert_recipe(shape, TOGETHER[device.type])
    model = condensing_model("sgc")
    batch = init_batch(
        model, graph.num_features, graph.num_classes, [make_generator(recipe.seed, "expert 0")]
    )
    initial: Params = tuple(p[0].to(device) for p in batch)
    with single_threaded():
        plain = train_expert(visible, initial, recipe, device)
        runs = [_timed(visible, recipe, device) for _ in range(repeats + 1)][1:]
        trajectories = runs[-1][2]
        _, reached = trajectories.pairs([0], [recipe.kept_epochs - 1], 1)
        ours, theirs = tuple(p[0] for p in reached), plain.snapshots[-1]
        losses = [expert_loss(visible, params, device) for params in (ours, theirs)]
    way, missed = (
        torch.cat([(a - b).flatten() for a, b in zip(theirs, other, strict=True)])
        for other in (initial, ours)
    )
    prepared = median(run[0] for run in runs)
    return BenchRow(
        bench="experts",
        case=name,
        device=device.type,
        reference_ms=median(plain.epoch_ms),
        engine_ms=median(run[1] for run in runs) / (recipe.count * recipe.trained_epochs),
        loss_error=relative_error(losses[0], losses[1]),
        gradient_error=float(missed.norm() / way.norm()),
        unit="one expert, one epoch",
        note=f"{origin}; {recipe.count} together, {recipe.trained_epochs} epochs;"
        f" preparing once: {prepared:.0f} ms",
    )


def expert_recipe(shape: Case, count: int) -> ExpertRecipe:
    """A short training at the authors' rate, all of it kept."""
    return ExpertRecipe(
        count=count,
        epochs=EPOCHS,
        trained_epochs=EPOCHS,
        kept_epochs=EPOCHS,
        lr=float(shape.settings["expert_lr"]),
        weight_decay=GCSR.expert_weight_decay,
        seed=0,
    )


def _timed(
    visible: VisibleGraph, recipe: ExpertRecipe, device: torch.device
) -> tuple[float, float, Trajectories]:
    """Milliseconds before the first epoch and from there on, and the result."""
    first: list[float] = []

    def report(stage: str, done: int, total: int) -> None:
        if not first:
            synchronize(device)
            first.append(time.perf_counter())

    synchronize(device)
    began = time.perf_counter()
    request = ExpertRequest(condensing_model("sgc"), recipe)
    trajectories = train_experts(request, visible, device=device, progress=report)
    synchronize(device)
    ended = time.perf_counter()
    return 1e3 * (first[0] - began), 1e3 * (ended - first[0]), trajectories
