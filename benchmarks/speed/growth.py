"""How time grows with size: measured exponents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks.speed.cases import Case, step_inputs
from benchmarks.speed.evaluate import quick_condensed
from benchmarks.speed.row import median_ms
from benchmarks.speed.standin import standin
from benchmarks.speed.step import engine_step
from gcsr.data.views import View
from gcsr.evaluation.protocol import evaluate
from gcsr.models.registry import condensing_model
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.experts import train_experts
from gcsr.training.fit import TrainingRecipe
from gcsr.utils.parallel import single_threaded
from gcsr.utils.progress import Progress, silent

REPEATS = 3


@dataclass(frozen=True)
class GrowthRow:
    """Times at growing sizes, and the slope of their logarithms."""

    what: str
    against: str
    sizes: list[int]
    ms: list[float]
    exponent: float
    fixed: str
    device: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Growth:
    """One quantity that grows: its field in :class:`Case`, and what stays."""

    what: str
    against: str
    sizes: Sequence[int]
    fixed: str
    shape: Callable[[int], Case]


# A step's shapes: the span form for n' and d, the weights form for N.
_WIDE = Case("cora", 64, 1024, 7, 140, 500, 1000, 2708, 10556)
_TALL = Case("ogbn-arxiv", 128, 64, 20, 500, 500, 500, 4000, 20000)
_GRAPH = Case("ogbn-arxiv", 40, 64, 10, 4000, 1000, 1000, 8000, 200_000)


def _nodes(nodes: int) -> Case:
    """Half of the nodes train, as on the large graphs."""
    return replace(_GRAPH, graph_nodes=nodes, train=nodes // 2, val=nodes // 8, test=nodes // 8)


GROWTHS = (
    Growth("step", "n'", (32, 64, 128, 256), "d = 1024, N = 5", lambda n: replace(_WIDE, nodes=n)),
    Growth(
        "step", "d", (512, 1024, 2048, 4096), "n' = 64, N = 5", lambda d: replace(_WIDE, features=d)
    ),
    Growth(
        "step",
        "N",
        (10, 20, 40, 80),
        "n' = 128, d = 64",
        lambda n: replace(_TALL, changed={"student_steps": n}),
    ),
    *(
        Growth(what, against, sizes, fixed, shape)
        for what in ("experts", "evaluate")
        for against, sizes, fixed, shape in (
            ("nodes", (8000, 16000, 32000, 64000), "200,000 edges, d = 64", _nodes),
            (
                "edges",
                (100_000, 200_000, 400_000, 800_000),
                "8,000 nodes, d = 64",
                lambda edges: replace(_GRAPH, graph_edges=edges),
            ),
        )
    ),
)


def bench_growth(
    device: torch.device, growths: Sequence[Growth] = GROWTHS, progress: Progress = silent
) -> list[GrowthRow]:
    """Every growth, one after the other; on a CPU on one thread."""
    rows = []
    for done, growth in enumerate(growths):
        progress("bench growth", done, len(growths))
        with single_threaded():
            ms = [_MEASURE[growth.what](growth.shape(size), device) for size in growth.sizes]
        slope = float(np.polyfit(np.log(growth.sizes), np.log(ms), 1)[0])
        rows.append(
            GrowthRow(
                growth.what,
                growth.against,
                list(growth.sizes),
                ms,
                slope,
                growth.fixed,
                device.type,
            )
        )
    progress("bench growth", len(growths), len(growths))
    return rows


def _step_ms(shape: Case, device: torch.device) -> float:
    inputs = step_inputs(shape, 1, device, torch.float32)
    step = engine_step(shape, inputs)
    return median_ms(lambda: step(inputs.start, inputs.goal), device, repeats=REPEATS)


def _experts_ms(shape: Case, device: torch.device) -> float:
    visible = View(standin(shape)).condensing().visible
    recipe = ExpertRecipe(
        count=2,
        epochs=10,
        trained_epochs=10,
        kept_epochs=10,
        lr=0.01,
        weight_decay=5e-4,
        seed=0,
    )
    request = ExpertRequest(condensing_model("sgc"), recipe)
    return median_ms(
        lambda: train_experts(request, visible, device=device), device, repeats=REPEATS
    )


def _evaluate_ms(shape: Case, device: torch.device) -> float:
    graph = standin(shape)
    small = quick_condensed(shape, graph, device)
    recipe = TrainingRecipe(epochs=5)
    return median_ms(
        lambda: evaluate(small, graph, runs=2, recipe=recipe, device=device),
        device,
        repeats=REPEATS,
    )


_MEASURE: dict[str, Callable[[Case, torch.device], float]] = {
    "step": _step_ms,
    "experts": _experts_ms,
    "evaluate": _evaluate_ms,
}
