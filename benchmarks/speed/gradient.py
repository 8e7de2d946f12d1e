"""One epoch of GCond: outer steps that match gradients, and the training between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.speed.cases import Case
from benchmarks.speed.reference_gradient import PlainGenerator, PlainNeighborhoods, PlainStep
from benchmarks.speed.row import BenchRow, median_ms, relative_error
from benchmarks.speed.standin import graph_of
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.engines.gradient.blocks import chain
from gcsr.engines.gradient.engine import MatchGradients
from gcsr.engines.result import Context
from gcsr.methods.gcond import GCond
from gcsr.methods.presets import paper_settings
from gcsr.models.sparse import SparseOperator, SparseTopology
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted
from gcsr.utils.parallel import single_threaded
from gcsr.utils.products import csr_tensor

# Graphs of the paper's protocol that a CUDA device advances together.
TOGETHER = {"cpu": 1, "cuda": 5}
# Outer steps that are timed; an epoch is so many of them, the first without training.
STEPS = 3


def bench_gradient(
    name: str, shape: Case, device: torch.device, *, repeats: int, root: Path | None = None
) -> BenchRow:
    """Milliseconds per graph and epoch with the authors' settings; on a CPU both on one thread.

    The real side takes all neighbors of whole classes on both sides, so that both compute the same;
    errors are against the published loop in float64.
    """
    settings, _ = paper_settings("gcond", shape.dataset, shape.nodes)
    require(
        settings["model"] == "sgc" and not shape.inductive and shape.words,
        f"case: {name!r} is not measured by gradient, whose reference holds every training node of a"
        " small graph; accepted: cora-70, citeseer-60.",
    )
    graph, origin = graph_of(shape, root)
    graphs = TOGETHER[device.type]
    seeds = list(range(graphs))
    outer = int(settings["outer"])
    with single_threaded():
        step = engine_step(graph, shape.nodes, settings, seeds, device)
        exact = engine_step(graph, shape.nodes, settings | {"dtype": "float64"}, seeds, device)
        loss, (gradient,) = step.loss_and_gradients(structural=False, train=False)
        plain_loss, plain_gradient = _exact(graph, exact, settings)
        reference = plain_step(graph, step, settings)
        reference_ms = _epoch_ms(reference, outer, device, repeats)
        engine_ms = _epoch_ms(step.advance, outer, device, repeats)
    return BenchRow(
        bench="gradient",
        case=name,
        device=device.type,
        reference_ms=reference_ms,
        engine_ms=engine_ms / graphs,
        loss_error=relative_error(loss[0], plain_loss),
        gradient_error=relative_error(gradient[0], plain_gradient),
        unit="one graph, one epoch",
        note=f"{origin}; {counted(graphs, 'graph')} together; {outer} outer steps x"
        f" {settings['inner']} training steps, of which {STEPS} outer steps were timed; X' learns",
    )


def engine_step(
    graph: Graph, nodes: int, settings: dict[str, object], seeds: list[int], device: torch.device
) -> MatchGradients:
    """The engine's state at the beginning of the first epoch."""
    condenser = GCond(nodes=nodes, **settings)  # type: ignore[arg-type]
    step = condenser.initial_state(Context(View(graph).condensing(), nodes, seeds, device)).step(
        slice(None)
    )
    if not isinstance(step, MatchGradients):
        raise TypeError("GCond matches gradients")
    step.begin(0, structural=False)
    return step


def plain_step(graph: Graph, step: MatchGradients, settings: dict[str, object]) -> PlainStep:
    """The first graph's state for the published loop."""
    device, dtype = step.x.device, step.x.dtype
    real = PlainNeighborhoods(
        {c: _around(graph, c, device, dtype) for c in range(graph.num_classes)}
    )
    network = step.learner.init(
        graph.num_features, graph.num_classes, make_generator(0, "theta of epoch 0")
    )
    theta = [p[0].to(device, dtype) for p in network]
    return PlainStep(
        nn.Parameter(step.x[0].clone()),
        step.classes.targets.argmax(1),
        PlainGenerator.with_weights(tuple(p[0] for p in step.structure.params)),
        real,
        [nn.Parameter(p.flatten() if p.shape[0] == 1 else p) for p in theta],
        "sgc",
        int(str(settings["inner"])),
        "cosine",
        feature_lr=float(str(settings["feature_lr"])),
        structure_lr=float(str(settings["structure_lr"])),
    )


def _around(
    graph: Graph, label: int, device: torch.device, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """All neighbors within two hops of a class's training nodes; the published loop samples them."""
    operator = SparseTopology(graph.adjacency, device, dtype).normalized
    if not isinstance(operator, SparseOperator):
        raise TypeError("the real graph is sparse")
    nodes = graph.train[graph.y[graph.train] == label].numpy()
    way = chain(operator.matrix, nodes, (None, None), np.random.default_rng(0))
    near, far = (csr_tensor(hop, device, dtype) for hop in way.hops)
    return graph.x[torch.from_numpy(way.support)].to(device, dtype), far, near


def _exact(
    graph: Graph, step: MatchGradients, settings: dict[str, object]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and gradient of the first graph by the published loop in float64."""
    plain = plain_step(graph, step, settings)
    loss = plain.match()
    (gradient,) = torch.autograd.grad(loss, plain.x)
    return loss.detach(), gradient


def _epoch_ms(work: Callable[..., object], outer: int, device: torch.device, repeats: int) -> float:
    """An epoch from some of its steps: all but one of them train."""

    def steps(train: bool) -> Callable[[], None]:
        def several() -> None:
            for _ in range(STEPS):
                work(structural=False, train=train)

        return several

    with_training = median_ms(steps(True), device, repeats=repeats) / STEPS
    without = median_ms(steps(False), device, repeats=repeats) / STEPS
    return (outer - 1) * with_training + without
