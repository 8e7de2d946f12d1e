"""The trajectory engine: the loop of Algorithm 1 for several condensed graphs at once.

The graphs lie along the first dimension and are independent: each has its own schedule of experts and
its own random numbers. On CUDA an iteration, including the lookup of the expert's weights, is captured
once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gcsr.engines.loop import MOST_ROLLBACKS, OuterStep, finite_graphs
from gcsr.engines.structure import State, Structure, SyntheticFeatures
from gcsr.engines.trajectory.students import MatchingInputs, Student
from gcsr.models.base import Model, Params
from gcsr.training.adam import FusedAdam
from gcsr.training.classification import divergence
from gcsr.training.trajectories import Trajectories
from gcsr.utils.devices import capture
from gcsr.utils.errors import require

# Iterations between two checks of the loss. On CUDA a check waits for the device.
CHECK_EVERY = {"cpu": 50, "cuda": 250}


@dataclass(frozen=True)
class Matching:
    """Settings of Algorithm 1 and of what other methods add to it.

    Attributes:
        learn_student_lr: whether ``student_lr`` is only the first of the student's learning rates.
        window: epochs below which the first iteration's start is drawn, one more in every iteration up
            to ``max_start`` snapshots; ``None``: always below ``max_start``.
        label_lr: the rate of SGD with momentum for the logits of Y'.
        knowledge: weight of the loss of the trained expert on the condensed graph.
        root: whether the loss is the distance instead of its square.
        student_lr_step: the rate of SGD with momentum for a learned ``student_lr``.
    """

    iterations: int
    student_steps: int
    student_lr: float
    expert_steps: int
    max_start: int
    learn_student_lr: bool = False
    window: int | None = None
    label_lr: float = 0.0
    knowledge: float = 0.0
    root: bool = False
    student_lr_step: float = 1e-6


# Of SGD on the student's learning rate (SFGC), and on the logits of Y'.
STUDENT_LR_MOMENTUM, LABEL_MOMENTUM = 0.5, 0.9


@dataclass(eq=False)
class Step:
    """One iteration of Algorithm 1 (lines 5-13), given the expert's weights; updates in place.

    Attributes:
        x, state, targets: features, structure state and Y' of every graph.
        feature_lr: Adam's rate for X', one for all graphs or one per graph.
        model: of the experts; only ``knowledge`` needs it.
        logits: what Y' is learned from; ``None``: it is ``targets`` always.
    """

    x: Tensor
    state: State
    targets: Tensor
    structure: Structure
    student: Student
    matching: Matching
    feature_lr: Tensor
    model: Model | None = None
    logits: Tensor | None = None
    student_lr: Tensor = field(init=False)
    lrs: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._adam = FusedAdam(self.x)
        self.student_lr = torch.full_like(self.x[:, 0, 0], self.matching.student_lr)
        self._lr_velocity = torch.zeros_like(self.student_lr)
        self._label_velocity = None if self.logits is None else torch.zeros_like(self.logits)
        self.scale_lr(None)

    def scale_lr(self, lr_scale: Tensor | None) -> None:
        """Multiply every graph's rate for X'."""
        lr = self.feature_lr if lr_scale is None else self.feature_lr * lr_scale
        # Read from the device once, which a captured iteration cannot do.
        self.lrs = lr.reshape(-1).expand(self.x.shape[0]).tolist()

    def buffers(self) -> tuple[Tensor, ...]:
        """Every tensor that an iteration changes."""
        labels = [t for t in (self.logits, self._label_velocity) if t is not None]
        student = (self._lr_velocity, self.student_lr)
        return (self.x, *self.state, *self._adam.moments, *student, *labels)

    def __call__(self, start: Params, goal: Params, teacher: Params = ()) -> Tensor:
        """Update everything; returns the loss of every graph."""
        loss, (gradient, *others), adjacency = self.loss_and_gradients(start, goal, teacher)
        with torch.no_grad():
            self._adam.step(gradient, self.lrs)
            if self.matching.learn_student_lr:
                self._lr_velocity.mul_(STUDENT_LR_MOMENTUM).add_(others[0])
                self.student_lr.sub_(self._lr_velocity, alpha=self.matching.student_lr_step)
            if self.logits is not None and self._label_velocity is not None:
                self._label_velocity.mul_(LABEL_MOMENTUM).add_(others[-1])
                self.logits.sub_(self._label_velocity, alpha=self.matching.label_lr)
            changed = self.structure.update(self.state, adjacency)
            for kept, new in zip(self.state, changed, strict=True):
                kept.copy_(new)
        return loss

    def current_targets(self) -> Tensor:
        """Y' as it is now."""
        return self.targets if self.logits is None else self.logits.softmax(-1)

    def loss_and_gradients(
        self, start: Params, goal: Params, teacher: Params = ()
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The loss, gradients of X' (and a learned rate, and the logits of Y'), the A' used."""
        points = SyntheticFeatures.of(self.x)
        lr = self.student_lr.detach()
        learned = (lr.requires_grad_(),) if self.matching.learn_student_lr else ()
        targets = self.targets
        if self.logits is not None:
            logits = self.logits.detach().requires_grad_()
            learned, targets = (*learned, logits), logits.softmax(-1)
        topology, adjacency = self.structure.topology(points, self.state)
        steps = self.matching.student_steps
        inputs = MatchingInputs(points, topology, targets, start, goal, steps, lr.view(-1, 1, 1))
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
        self.x, self._step, self._trajectories = step.x, step, trajectories
        self._draws = [schedule(trajectories, step.matching, one) for one in schedules]
        self._captures = self.x.is_cuda and trajectories.keeps_everything
        self._run: Callable[[int], Tensor] | None = None
        self._lr_scale: Tensor | None = None

    def buffers(self) -> tuple[Tensor, ...]:
        """Those of the step."""
        return self._step.buffers()

    def is_finite(self) -> Tensor:
        """Whether X' and the structure state of each graph are finite."""
        return finite_graphs(self.x, *self._step.state)

    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Run an iteration."""
        if self._run is None or lr_scale is not self._lr_scale:
            self._step.scale_lr(lr_scale)
            self._lr_scale = lr_scale
            self._run = self._captured(iteration) if self._captures else self._eager
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

    def _eager(self, iteration: int) -> Tensor:
        experts, starts = zip(*(draw[iteration] for draw in self._draws), strict=True)
        matching, trajectories = self._step.matching, self._trajectories
        pair = trajectories.pairs(experts, starts, matching.expert_steps)
        teacher: Params = ()
        if matching.knowledge:
            last = [trajectories.recipe.final_snapshot] * len(experts)
            teacher = trajectories.pairs(experts, last, 0)[1]
        return self._step(*pair, teacher).float()

    def _captured(self, first: int) -> Callable[[int], Tensor]:
        """Iterations from ``first`` on, one after the other; the device counts them."""
        step, at = self._step, self._trajectories.position
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
