"""One iteration of condensing."""

from __future__ import annotations

import torch

from benchmarks.speed.cases import Case, StepInputs, step_inputs
from benchmarks.speed.reference import ReferenceStep
from benchmarks.speed.row import BenchRow, median_ms, relative_error, synchronize
from gcsr.engines.structure import SelfExpressiveStructure
from gcsr.engines.trajectory.engine import Matching, Step
from gcsr.engines.trajectory.students import student_for
from gcsr.equations.self_expression import self_expression
from gcsr.models.registry import condensing_model
from gcsr.utils.devices import record, warm_up
from gcsr.utils.formatting import counted
from gcsr.utils.parallel import single_threaded

# Graphs of the paper's protocol that a CUDA device advances together.
TOGETHER = {"cpu": 1, "cuda": 5}


def bench_step(
    name: str, shape: Case, device: torch.device, *, dtype: torch.dtype, repeats: int
) -> BenchRow:
    """Milliseconds per graph and iteration; on a CPU both on one thread.

    Errors are against the published loop in float64: in float32 its explicit inverse alone is off by
    up to a thousandth in the gradient. A' = (|Z| + |Z|ᵀ)/2 has a kink where an entry of Z is zero; of
    hundreds of thousands of entries a few are so small that float32 cannot tell their sign, and either
    side's gradient is right. The reference takes the engine's side, and the note tells how often.
    """
    graphs = TOGETHER[device.type]
    inputs = step_inputs(shape, graphs, device, dtype)
    with single_threaded():
        step = engine_step(shape, inputs)
        loss, (gradient,), _ = step.loss_and_gradients(inputs.start, inputs.goal)
        reference = reference_step(shape, inputs)
        first = [(p[0], g[0]) for p, g in zip(inputs.start, inputs.goal, strict=True)]
        start, goal = tuple(p for p, _ in first), tuple(g for _, g in first)
        reference_ms = median_ms(lambda: reference(start, goal), device, repeats=repeats)
        exact_loss, exact_gradient, kinks = _exact(shape, inputs)
        if device.type == "cuda":
            engine_ms = _replayed_ms(step, inputs, repeats)
        else:
            engine_ms = median_ms(lambda: step(inputs.start, inputs.goal), device, repeats=repeats)
    return BenchRow(
        bench="step",
        case=name,
        device=device.type,
        reference_ms=reference_ms,
        engine_ms=engine_ms / graphs,
        loss_error=relative_error(loss[0], exact_loss),
        gradient_error=relative_error(gradient[0], exact_gradient),
        unit="one graph, one iteration",
        note=f"{counted(graphs, 'graph')} together, {dtype}".replace("torch.", "")
        + (f"; {kinks} of {shape.nodes**2} signs of Z as the engine rounds them" if kinks else ""),
    )


def engine_step(shape: Case, inputs: StepInputs) -> Step:
    """The engine's iteration with the authors' settings."""
    s = shape.settings
    unit = torch.ones((inputs.x.shape[0], 1, 1)).to(inputs.x)
    structure = SelfExpressiveStructure(
        float(s["alpha"]) * unit, float(s["beta"]) * unit, float(s["tau"]), float(s["gamma"])
    )
    matching = Matching(
        iterations=1,
        student_steps=int(s["student_steps"]),
        student_lr=float(s["student_lr"]),
        expert_steps=int(s["expert_steps"]),
        max_start=int(s["max_start"]),
    )
    return Step(
        inputs.x.clone(),
        (inputs.prior.clone(), inputs.history.clone()),
        inputs.targets,
        structure,
        student_for(condensing_model("sgc"), shape.nodes, shape.features),
        matching,
        float(s["feature_lr"]) * unit,
    )


def reference_step(
    shape: Case, inputs: StepInputs, signs: torch.Tensor | None = None
) -> ReferenceStep:
    """The published iteration of the first graph."""
    s = shape.settings
    return ReferenceStep(
        inputs.x[0],
        inputs.targets[0].argmax(-1),
        inputs.prior[0],
        inputs.history[0],
        alpha=float(s["alpha"]),
        beta=float(s["beta"]),
        tau=float(s["tau"]),
        gamma=float(s["gamma"]),
        feature_lr=float(s["feature_lr"]),
        steps=int(s["student_steps"]),
        rate=float(s["student_lr"]),
        signs=signs,
    )


def _exact(shape: Case, inputs: StepInputs) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Loss and gradient of the first graph by the published loop in float64 on the CPU.

    On the side of the kinks where the engine's arithmetic is; also how many entries that concerns.
    """
    wide = inputs.to(torch.device("cpu"), torch.float64)
    signs, exact_signs = (_expression(shape, each)[0].sign().cpu() for each in (inputs, wide))
    kinks = int((signs != exact_signs).sum())
    plain = reference_step(shape, wide, signs.double() if kinks else None)
    loss = plain(tuple(p[0] for p in wide.start), tuple(p[0] for p in wide.goal))
    if plain.x.grad is None:
        raise RuntimeError("the reference left no gradient")
    return loss, plain.x.grad, kinks


def _expression(shape: Case, inputs: StepInputs) -> torch.Tensor:
    """Z of every graph."""
    alpha, beta = float(shape.settings["alpha"]), float(shape.settings["beta"])
    return self_expression(inputs.x, inputs.prior, inputs.history, alpha, beta)


def _replayed_ms(step: Step, inputs: StepInputs, repeats: int) -> float:
    """The iteration as the engine runs it on CUDA: captured once, replayed."""

    def body() -> None:
        # The engine looks the expert's weights up on the device; so does this.
        step(tuple(p.clone() for p in inputs.start), tuple(p.clone() for p in inputs.goal))

    warm_up(body)
    replay = record(body)
    many = 20

    def work() -> None:
        for _ in range(many):
            replay()

    synchronize(inputs.x.device)
    return median_ms(work, inputs.x.device, repeats=repeats) / many
