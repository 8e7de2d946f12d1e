"""The trajectory engine: the loop of Algorithm 1 for several condensed graphs at once.

Graphs lie along a leading dimension and never see each other; each has its own schedule of experts
and its own random numbers. On CUDA a whole iteration, from looking up the expert's weights to writing
down the loss, is captured once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.divergence import MOST_ROLLBACKS, DivergenceGuard
from gcsr.engines.structure import State, Structure, SyntheticFeatures
from gcsr.engines.trajectory.students import MatchingInputs, Student
from gcsr.models.base import Model, Params
from gcsr.training.experts import ExpertRequest
from gcsr.training.obtain_experts import Experts, experts_for
from gcsr.training.trajectories import Trajectories
from gcsr.utils.capture import record, warm_up
from gcsr.utils.errors import InputError
from gcsr.utils.progress import Progress, silent

# -- The experts that a condensed graph's students are compared with ---------------------------------


@dataclass(frozen=True, eq=False)
class ExpertSource:
    """The condensing model and its trained experts."""

    model: Model
    experts: Experts
    device: torch.device
    progress: Progress = silent

    @classmethod
    def of(
        cls, order: ExpertRequest, view: CondensingView, device: torch.device, progress: Progress
    ) -> ExpertSource:
        """The experts that were ordered, from wherever they are at hand."""
        experts = experts_for(
            order.model,
            view.visible,
            order.recipe,
            device=device,
            dtype=order.dtype,
            predictions=order.predictions,
            memory_bytes=order.memory_bytes,
            disk_bytes=order.disk_bytes,
            progress=progress,
        )
        return cls(order.model, experts, device, progress)


# How often the loss is looked at; on CUDA looking makes the device wait for the host.
CHECK_EVERY = {"cpu": 50, "cuda": 250}
# Iterations that are tried out before one is recorded.
WARM_UPS = 2


@dataclass(frozen=True)
class LearnedRate:
    """SGD with momentum on the student's rate (SFGC)."""

    rate: float = 1e-6
    momentum: float = 0.5


@dataclass(frozen=True)
class Matching:
    """Numbers of Algorithm 1 that the engine needs, under the names of the paper's text."""

    iterations: int
    student_steps: int
    student_lr: float
    expert_steps: int
    max_start: int
    learned_rate: LearnedRate | None = None


@dataclass(eq=False)
class Iterate:
    """Features and structure state of every graph, with Adam's moments.

    ``student_lr`` is one rate per graph, which changes only where it is learned.
    """

    x: Tensor
    state: State
    first: Tensor
    second: Tensor
    count: Tensor
    student_lr: Tensor
    rate_velocity: Tensor

    @classmethod
    def begin(cls, x: Tensor, state: State, student_lr: float) -> Iterate:
        """Before the first iteration."""
        count = torch.zeros((), dtype=torch.float32, device=x.device)
        rate = torch.full_like(x[:, 0, 0], student_lr)
        return cls(
            x,
            state,
            torch.zeros_like(x),
            torch.zeros_like(x),
            count,
            rate,
            torch.zeros_like(rate),
        )

    def buffers(self) -> tuple[Tensor, ...]:
        """Everything an iteration changes."""
        moments = (self.first, self.second, self.count, self.rate_velocity)
        return (self.x, *self.state, *moments, self.student_lr)


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration of Algorithm 1 (lines 5-13) as a function of the expert's weights."""

    iterate: Iterate
    targets: Tensor
    structure: Structure
    student: Student
    matching: Matching
    feature_lr: Tensor

    def __call__(self, start: Params, goal: Params) -> Tensor:
        """Update the iterate in place; returns the loss of every graph."""
        it = self.iterate
        loss, (gradient, *rate_gradient), adjacency = self.loss_and_gradients(start, goal)
        with torch.no_grad():
            self._adam(gradient)
            learned = self.matching.learned_rate
            if learned is not None:
                it.rate_velocity.mul_(learned.momentum).add_(rate_gradient[0])
                it.student_lr.sub_(it.rate_velocity, alpha=learned.rate)
            for kept, new in zip(it.state, self.structure.update(it.state, adjacency), strict=True):
                kept.copy_(new)
        return loss

    def scaled_lr(self, recovery: DivergenceGuard) -> Step:
        """The same step of the same iterate with the rates that rollbacks left."""
        return replace(self, feature_lr=recovery.scaled_lr(self.feature_lr))

    @cached_property
    def _rates(self) -> list[float]:
        graphs = self.iterate.x.shape[0]
        return [float(rate) for rate in self.feature_lr.reshape(-1).expand(graphs)]

    def _adam(self, gradient: Tensor) -> None:
        """Adam (Kingma and Ba, 2015) on X', one pass over memory for every graph."""
        it = self.iterate
        it.count += 1
        # The kernel reads gradients as if they lay in memory as X' does.
        gradient = gradient.contiguous()
        for g, rate in enumerate(self._rates):
            torch._fused_adam_(
                [it.x[g]],
                [gradient[g]],
                [it.first[g]],
                [it.second[g]],
                [],
                [it.count],
                lr=rate,
                beta1=0.9,
                beta2=0.999,
                weight_decay=0.0,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )

    def loss_and_gradients(
        self, start: Params, goal: Params
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """Matching loss, gradients with respect to X' (and a learned rate), the A' used."""
        points = SyntheticFeatures.of(self.iterate.x)
        rate = self.iterate.student_lr.detach()
        learned = (rate.requires_grad_(),) if self.matching.learned_rate is not None else ()
        topology, adjacency = self.structure.topology(points, self.iterate.state)
        steps = self.matching.student_steps
        lesson = MatchingInputs(
            points, topology, self.targets, start, goal, steps, rate.view(-1, 1, 1)
        )
        loss = self.student(lesson)
        gradients = points.gradients(loss.sum(), learned)
        return loss.detach(), gradients, adjacency.detach()


def match_trajectories(
    step: Step,
    trajectories: Trajectories,
    *,
    schedules: Sequence[torch.Generator],
    progress: Progress,
    look: Callable[[int, Iterate], None] | None = None,
    look_every: int = 0,
    breaks: bool = False,
    recovery: DivergenceGuard | None = None,
) -> Tensor:
    """Run Algorithm 1 in place; returns the matching losses ``(iterations, graphs)``.

    ``look`` is called before the first iteration, every ``look_every`` iterations and at the end. A
    graph whose loss is not finite goes back to the last good state with half of its rate; if that
    does not help it is an error, or, where ``breaks``, the end: the losses stop there. ``recovery``
    knows where the run was when its process ended, and tells of what happened.
    """
    matching, iterate = step.matching, step.iterate
    recovery = recovery or DivergenceGuard()
    draws = [schedule(trajectories, matching, generator) for generator in schedules]
    losses = torch.zeros((matching.iterations, len(draws)), device=iterate.x.device)
    i, _ = recovery.begin(iterate.buffers(), losses)
    advance = _advance_function(step.scaled_lr(recovery), trajectories, draws, losses, i)
    every = CHECK_EVERY[iterate.x.device.type]
    while i < matching.iterations:
        if look is not None and i % look_every == 0:
            look(i, iterate)
        advance(i)
        i += 1
        if i % every and i < matching.iterations:
            continue
        recent = losses[(i - 1) // every * every : i]
        bad = _not_finite(recent, iterate)
        if not bool(bad.any()):
            recovery.accept(i, iterate.buffers(), losses)
            progress("condensing", i, matching.iterations)
            continue
        begun = bool(torch.isfinite(losses[0]).all())
        back = recovery.rollback(i, bad, iterate.buffers(), losses) if begun else None
        if back is not None:
            i = back
            advance = _advance_function(step.scaled_lr(recovery), trajectories, draws, losses, i)
        elif begun and breaks:
            progress("condensing", matching.iterations, matching.iterations)
            return losses[:i].cpu()
        else:
            raise InputError(_complaint(i, begun) + recovery.saved_at + ".")
    if look is not None:
        look(matching.iterations, iterate)
    return losses.cpu()


def schedule(
    trajectories: Trajectories, matching: Matching, generator: torch.Generator
) -> list[tuple[int, int]]:
    """Which expert and which epoch each iteration starts from: every expert once per round."""
    count = trajectories.recipe.count
    rounds = -(-matching.iterations // count)
    experts = [torch.randperm(count, generator=generator) for _ in range(rounds)]
    starts = torch.randint(matching.max_start, (matching.iterations,), generator=generator)
    return list(zip(torch.cat(experts).tolist() if experts else [], starts.tolist(), strict=False))


def _advance_function(
    step: Step,
    trajectories: Trajectories,
    draws: list[list[tuple[int, int]]],
    losses: Tensor,
    first: int,
) -> Callable[[int], object]:
    """A function that runs iteration i, from the first on, the fastest way that works here."""
    later = step.matching.expert_steps

    def eager(i: int) -> None:
        experts, starts = zip(*(draw[i] for draw in draws), strict=True)
        losses[i] = step(*trajectories.pairs(experts, starts, later))

    if step.iterate.x.is_cuda and trajectories.keeps_everything and step.matching.iterations > 1:
        index = torch.tensor(
            [[trajectories.position(*draw[i]) for draw in draws] for i in range(len(draws[0]))],
            device=losses.device,
        )
        return _Captured(step, trajectories, index, losses, first)
    return eager


class _Captured:
    """An iteration recorded as a CUDA graph; the device itself counts the iterations."""

    def __init__(
        self, step: Step, trajectories: Trajectories, index: Tensor, losses: Tensor, first: int
    ) -> None:
        # Trying it out takes two iterations, which must be there.
        start = min(first, losses.shape[0] - WARM_UPS)
        counter = torch.full((1,), start, dtype=torch.long, device=losses.device)

        def body() -> None:
            (where,) = index.index_select(0, counter)
            start = trajectories.at(where)
            goal = trajectories.at(where + step.matching.expert_steps)
            losses.index_copy_(0, counter, step(start, goal).unsqueeze(0).to(losses.dtype))
            counter.add_(1)

        buffers = (*step.iterate.buffers(), counter, losses)
        before = tuple(buffer.clone() for buffer in buffers)
        warm_up(body, WARM_UPS)
        for buffer, saved in zip(buffers, before, strict=True):
            buffer.copy_(saved)
        counter.fill_(first)
        self._replay = record(body)

    def __call__(self, i: int) -> None:
        self._replay()


def _not_finite(losses: Tensor, iterate: Iterate) -> Tensor:
    """Which graphs cannot go on: a loss of theirs is not finite, or what the next begins with."""
    finite = torch.isfinite(losses).all(0)
    for buffer in (iterate.x, *iterate.state):
        finite = finite & torch.isfinite(buffer.flatten(1)).all(1)
    return ~finite


def _complaint(iteration: int, begun: bool) -> str:
    if not begun:
        return (
            "expert_lr: the matching loss is not a number from the start, because the experts did"
            " not move or diverged, the features are all zero, or alpha + beta is too small for them"
        )
    return (
        f"feature_lr: the matching loss stopped being finite by iteration {iteration}, also after"
        f" the rate was halved {MOST_ROLLBACKS} times; a lower feature_lr or student_lr, or a"
        " higher alpha + beta, is needed"
    )
