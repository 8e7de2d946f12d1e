"""The trajectory engine: the loop of Algorithm 1 for several condensed graphs at once.

The graphs lie along the first dimension and are independent: each has its own schedule of experts and
its own random numbers. On CUDA an iteration, including the lookup of the expert's weights, is captured
once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor

from gcsr.engines.loop import MOST_ROLLBACKS, OuterStep, finite_graphs
from gcsr.engines.structure import State, Structure, SyntheticFeatures
from gcsr.engines.trajectory.students import MatchingInputs, Student
from gcsr.equations.trajectory import divergence
from gcsr.models.base import Model, Params
from gcsr.training.adam import FusedAdam
from gcsr.training.trajectories import Trajectories
from gcsr.utils.capture import capture
from gcsr.utils.errors import require

# Iterations between two checks of the loss. On CUDA a check waits for the device.
CHECK_EVERY = {"cpu": 50, "cuda": 250}


@dataclass(frozen=True)
class LearnedRate:
    """SGD with momentum on the student's learning rate (SFGC)."""

    rate: float = 1e-6
    momentum: float = 0.5


@dataclass(frozen=True)
class Matching:
    """Numbers of Algorithm 1, and what other methods add to it.

    Attributes:
        window: epochs below which the first iteration's start is drawn, one more in every iteration up
            to ``max_start`` snapshots; ``None``: always below ``max_start``.
        label_lr: the rate of SGD with momentum for the logits of Y'; ``None``: Y' is constant.
        knowledge: weight of the loss of the trained expert on the condensed graph.
        root: whether the loss is the distance instead of its square.
    """

    iterations: int
    student_steps: int
    student_lr: float
    expert_steps: int
    max_start: int
    learned_rate: LearnedRate | None = None
    window: int | None = None
    label_lr: float | None = None
    knowledge: float = 0.0
    root: bool = False


# Of SGD on the logits of Y'.
LABEL_MOMENTUM = 0.9


@dataclass(eq=False)
class Iterate:
    """Features and structure state of every graph, with Adam's moments.

    ``student_lr`` is one learning rate per graph. It changes only if it is learned. ``labels`` are the
    logits of Y' and their velocity; empty if Y' is constant.
    """

    x: Tensor
    state: State
    adam: FusedAdam
    student_lr: Tensor
    rate_velocity: Tensor
    labels: tuple[Tensor, ...] = ()

    @classmethod
    def begin(
        cls, x: Tensor, state: State, student_lr: float, logits: Tensor | None = None
    ) -> Iterate:
        """The state before the first iteration; Y' is learned if its ``logits`` are given."""
        rate = torch.full_like(x[:, 0, 0], student_lr)
        labels = () if logits is None else (logits, torch.zeros_like(logits))
        return cls(x, state, FusedAdam(x), rate, torch.zeros_like(rate), labels)

    def buffers(self) -> tuple[Tensor, ...]:
        """Every tensor that an iteration changes."""
        rates = (self.rate_velocity, self.student_lr)
        return (self.x, *self.state, *self.adam.moments, *rates, *self.labels)


@dataclass(frozen=True, eq=False)
class Step:
    """One iteration of Algorithm 1 (lines 5-13), given the expert's weights."""

    iterate: Iterate
    targets: Tensor
    structure: Structure
    student: Student
    matching: Matching
    feature_lr: Tensor
    model: Model | None = None

    def __call__(self, start: Params, goal: Params, teacher: Params = ()) -> Tensor:
        """Update the iterate in place; returns the loss of every graph."""
        it = self.iterate
        loss, (gradient, *others), adjacency = self.loss_and_gradients(start, goal, teacher)
        with torch.no_grad():
            it.adam.step(gradient, self._lrs)
            learned = self.matching.learned_rate
            if learned is not None:
                it.rate_velocity.mul_(learned.momentum).add_(others[0])
                it.student_lr.sub_(it.rate_velocity, alpha=learned.rate)
            if it.labels and self.matching.label_lr is not None:
                logits, velocity = it.labels
                velocity.mul_(LABEL_MOMENTUM).add_(others[-1])
                logits.sub_(velocity, alpha=self.matching.label_lr)
            for kept, new in zip(it.state, self.structure.update(it.state, adjacency), strict=True):
                kept.copy_(new)
        return loss

    @cached_property
    def _lrs(self) -> list[float]:
        # Read from the device once, which a captured iteration cannot do.
        return self.feature_lr.reshape(-1).expand(self.iterate.x.shape[0]).tolist()

    def current_targets(self) -> Tensor:
        """Y' as it is now."""
        return self.iterate.labels[0].softmax(-1) if self.iterate.labels else self.targets

    def loss_and_gradients(
        self, start: Params, goal: Params, teacher: Params = ()
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The loss, gradients of X' (and a learned rate, and the logits of Y'), the A' used."""
        points = SyntheticFeatures.of(self.iterate.x)
        rate = self.iterate.student_lr.detach()
        learned = (rate.requires_grad_(),) if self.matching.learned_rate is not None else ()
        targets = self.targets
        if self.iterate.labels:
            logits = self.iterate.labels[0].detach().requires_grad_()
            learned, targets = (*learned, logits), logits.softmax(-1)
        topology, adjacency = self.structure.topology(points, self.iterate.state)
        steps = self.matching.student_steps
        inputs = MatchingInputs(points, topology, targets, start, goal, steps, rate.view(-1, 1, 1))
        loss = self.student(inputs)
        if self.matching.root:
            loss = loss.clamp_min(torch.finfo(loss.dtype).tiny).sqrt()
        if teacher and self.model is not None:
            scores = self.model.logits(teacher, self.model.prepare(points.x, topology))
            loss = loss + self.matching.knowledge * divergence(scores, targets)
        gradients = points.gradients(loss.sum(), learned)
        return loss.detach(), gradients, adjacency.detach()


class MatchTrajectories(OuterStep):
    """:class:`Step` along each graph's schedule of experts, captured on CUDA.

    ``schedules`` are one generator per graph.
    """

    def __init__(
        self, step: Step, trajectories: Trajectories, schedules: Sequence[torch.Generator]
    ) -> None:
        self.x = step.iterate.x
        self._step, self._trajectories = step, trajectories
        self._draws = [schedule(trajectories, step.matching, one) for one in schedules]
        self._captures = self.x.is_cuda and trajectories.keeps_everything
        self._run: Callable[[int], Tensor] | None = None
        self._lr_scale: Tensor | None = None

    def buffers(self) -> tuple[Tensor, ...]:
        """Features, structure state, moments, and the students' learning rates."""
        return self._step.iterate.buffers()

    def is_finite(self) -> Tensor:
        """Whether X' and the structure state of each graph are finite."""
        return finite_graphs(self.x, *self._step.iterate.state)

    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Run an iteration."""
        if self._run is None or lr_scale is not self._lr_scale:
            step = self._step
            if lr_scale is not None:
                step = replace(step, feature_lr=step.feature_lr * lr_scale)
            self._run = partial(self._eager, step)
            if self._captures:
                self._run = self._captured(step, iteration)
            self._lr_scale = lr_scale
        losses = self._run(iteration)
        if iteration == 0:
            require(
                bool(torch.isfinite(losses).all()),
                "expert_lr: the matching loss is not a number from the start, because the experts did"
                " not move or diverged, the features are all zero, or alpha + beta is too small.",
            )
        return losses

    def divergence_message(self, iteration: int) -> str:
        """The error after too many rollbacks."""
        return (
            f"feature_lr: the matching loss stopped being finite by iteration {iteration}, also after"
            f" the rate was halved {MOST_ROLLBACKS} times; a lower feature_lr or student_lr, or a"
            " higher alpha + beta, is needed"
        )

    def release(self) -> None:
        """Free the captured iteration."""
        self._run = None

    def _eager(self, step: Step, iteration: int) -> Tensor:
        experts, starts = zip(*(draw[iteration] for draw in self._draws), strict=True)
        pair = self._trajectories.pairs(experts, starts, step.matching.expert_steps)
        return step(*pair, self._teacher(experts)).float()

    def _teacher(self, experts: Sequence[int]) -> Params:
        """The experts at their last snapshots, if they are needed."""
        if not self._step.matching.knowledge:
            return ()
        last = [self._trajectories.recipe.final_snapshot] * len(experts)
        return self._trajectories.pairs(experts, last, 0)[1]

    def _captured(self, step: Step, first: int) -> Callable[[int], Tensor]:
        """Iterations from ``first`` on, one after the other; the device counts them."""
        at = self._trajectories.position
        index = torch.tensor(
            [[at(*draw) for draw in draws] for draws in zip(*self._draws, strict=True)],
            device=self.x.device,
        )
        recipe = self._trajectories.recipe
        counter = torch.full((1,), first, dtype=torch.long, device=self.x.device)
        losses = torch.zeros(self.x.shape[0], device=self.x.device)

        def body() -> None:
            (where,) = index.index_select(0, counter)
            start = self._trajectories.at(where)
            goal = self._trajectories.at(where + step.matching.expert_steps)
            teacher: Params = ()
            if step.matching.knowledge:
                first = where // recipe.snapshots * recipe.snapshots
                teacher = self._trajectories.at(first + recipe.final_snapshot)
            losses.copy_(step(start, goal, teacher))
            counter.add_(1)

        replay = capture(body, (*self.buffers(), counter))

        def run(iteration: int) -> Tensor:
            replay()
            return losses

        return run


def schedule(
    trajectories: Trajectories, matching: Matching, generator: torch.Generator
) -> list[tuple[int, int]]:
    """Which expert and which epoch each iteration starts from: every expert once per round."""
    count = trajectories.recipe.count
    rounds = -(-matching.iterations // count)
    experts = [torch.randperm(count, generator=generator) for _ in range(rounds)]
    starts = torch.randint(matching.max_start, (matching.iterations,), generator=generator)
    if matching.window is not None:
        every = trajectories.recipe.snapshot_every
        below = torch.arange(matching.window, matching.window + matching.iterations)
        below = below.clamp_max(matching.max_start * every)
        share = torch.rand(matching.iterations, generator=generator, dtype=torch.float64)
        starts = (share * below).long() // every
    return list(zip(torch.cat(experts).tolist() if experts else [], starts.tolist(), strict=False))
