"""The paper's whole protocol: experts, five condensed graphs, ten test networks for each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.speed.cases import Case
from benchmarks.speed.evaluate import bench_evaluate
from benchmarks.speed.experts import bench_experts
from benchmarks.speed.row import BenchRow, synchronize
from benchmarks.speed.standin import graph_of
from benchmarks.speed.step import bench_step
from gcsr.evaluation.protocol import evaluate
from gcsr.methods.gcsr import GCSR
from gcsr.training.fit import TrainingRecipe
from gcsr.training.obtain_experts import forget_experts
from gcsr.utils.errors import require
from gcsr.utils.parallel import single_threaded

GRAPHS, RUNS = 5, 10
# What is run unless told otherwise: on one CPU thread the whole would take hours.
FRACTION = {"cpu": 0.01, "cuda": 1.0}


@dataclass(frozen=True)
class Work:
    """How much of the protocol is run."""

    experts: int
    expert_epochs: int
    iterations: int
    epochs: int

    @classmethod
    def of(cls, shape: Case, fraction: float) -> Work:
        """A fraction of the experts, iterations and test epochs; never none of them."""
        require(0 < fraction <= 1, f"fraction: {fraction} is not accepted; above 0 up to 1 is.")
        s = shape.settings

        def part(whole: int) -> int:
            return max(1, round(fraction * whole))

        return cls(
            experts=part(int(s["experts"])),
            expert_epochs=int(s.get("expert_epochs", GCSR.expert_epochs)),
            iterations=part(int(s["iterations"])),
            epochs=part(TrainingRecipe.epochs),
        )


def bench_protocol(
    name: str,
    shape: Case,
    device: torch.device,
    *,
    repeats: int,
    root: Path | None = None,
    fraction: float | None = None,
) -> BenchRow:
    """Milliseconds of the protocol, or of a fraction of it; errors are those of an iteration.

    The engine is timed end to end. The reference is what the same work would take at its measured
    times per iteration, expert epoch and test epoch.
    """
    share = FRACTION[device.type] if fraction is None else fraction
    work = Work.of(shape, share)
    step = bench_step(name, shape, device, dtype=torch.float32, repeats=repeats)
    expert = bench_experts(name, shape, device, repeats=1, root=root)
    test = bench_evaluate(name, shape, device, repeats=1, root=root)
    reference_ms = (
        work.experts * work.expert_epochs * expert.reference_ms
        + GRAPHS * work.iterations * step.reference_ms
        + GRAPHS * RUNS * work.epochs * test.reference_ms
    )
    engine_ms, origin = _engine_ms(shape, work, device, root)
    part = "whole protocol" if share == 1 else f"{100 * share:g} % of the protocol"
    return BenchRow(
        bench="protocol",
        case=name,
        device=device.type,
        reference_ms=reference_ms,
        engine_ms=engine_ms,
        loss_error=step.loss_error,
        gradient_error=step.gradient_error,
        unit=part,
        note=f"{origin}; {work.experts} experts, {GRAPHS} graphs x {work.iterations} iterations,"
        f" {GRAPHS * RUNS} networks x {work.epochs} epochs; reference extrapolated from"
        f" {step.reference_ms:.3g} ms per iteration, {expert.reference_ms:.3g} per expert epoch,"
        f" {test.reference_ms:.3g} per test epoch",
    )


def _engine_ms(
    shape: Case, work: Work, device: torch.device, root: Path | None
) -> tuple[float, str]:
    graph, origin = graph_of(shape, root)
    settings = {**shape.settings, "iterations": work.iterations, "experts": work.experts}
    condenser = GCSR(nodes=shape.nodes, **settings)
    # Experts of an earlier run must not be found.
    forget_experts()
    with single_threaded():
        synchronize(device)
        began = time.perf_counter()
        made = condenser.condense_many(graph, seeds=range(GRAPHS), device=device)
        recipe = TrainingRecipe(epochs=work.epochs)
        evaluate(made, graph, runs=RUNS, recipe=recipe, device=device)
        synchronize(device)
        elapsed = time.perf_counter() - began
    forget_experts()
    return 1e3 * elapsed, origin
