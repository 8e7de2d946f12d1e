"""The trajectory engine: the loop of Algorithm 1 for several condensed graphs at once.

Graphs lie along a leading dimension and never see each other; each has its own schedule of experts
and its own random numbers. On CUDA one iteration is captured once and replayed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.condense.structure import State, Structure
from gcsr.condense.students import Student
from gcsr.errors import InputError
from gcsr.experts import Trajectories
from gcsr.models import Params
from gcsr.progress import Progress

logger = logging.getLogger(__name__)
CHECK_EVERY = 50


@dataclass(frozen=True)
class Matching:
    """Numbers of Algorithm 1 that the engine needs, under the names of the paper's text."""

    iterations: int
    student_steps: int
    student_rate: float
    expert_steps: int
    max_start: int


@dataclass(eq=False)
class Iterate:
    """Features and structure state of every graph, with Adam's moments."""

    x: Tensor
    state: State
    first: Tensor
    second: Tensor
    count: Tensor

    @classmethod
    def begin(cls, x: Tensor, state: State) -> Iterate:
        """Before the first iteration."""
        return cls(
            x,
            state,
            torch.zeros_like(x),
            torch.zeros_like(x),
            torch.zeros((), dtype=x.dtype, device=x.device),
        )


def match_trajectories(
    iterate: Iterate,
    targets: Tensor,
    structure: Structure,
    student: Student,
    trajectories: Trajectories,
    matching: Matching,
    *,
    feature_rate: Tensor,
    schedules: Sequence[torch.Generator],
    progress: Progress,
    look: Callable[[int, Iterate], None] | None = None,
    look_every: int = 0,
) -> Tensor:
    """Run Algorithm 1 in place on ``iterate``; returns the matching losses ``(iterations, graphs)``.

    ``feature_rate`` is a tensor ``(graphs, 1, 1)``. ``look`` is called before the first iteration and
    every ``look_every`` iterations.
    """
    step = _step_function(iterate, targets, structure, student, matching, feature_rate)
    draws = [_schedule(trajectories, matching, generator) for generator in schedules]
    losses = torch.zeros((matching.iterations, iterate.x.shape[0]), device=iterate.x.device)
    for i in range(matching.iterations):
        if look is not None and i % look_every == 0:
            look(i, iterate)
        experts, starts = zip(*(draw[i] for draw in draws), strict=True)
        start, goal = trajectories.pairs(experts, starts, matching.expert_steps)
        losses[i] = step(start, goal)
        if (i + 1) % CHECK_EVERY == 0 or i + 1 == matching.iterations:
            _require_finite(losses[max(0, i + 1 - CHECK_EVERY) : i + 1], i + 1)
            progress("condensing", i + 1, matching.iterations)
    if look is not None:
        look(matching.iterations, iterate)
    return losses.cpu()


def _schedule(
    trajectories: Trajectories, matching: Matching, generator: torch.Generator
) -> list[tuple[int, int]]:
    """Which expert and which epoch each iteration starts from: every expert once per round."""
    count = trajectories.recipe.count
    rounds = -(-matching.iterations // count)
    permutations = [torch.randperm(count, generator=generator).tolist() for _ in range(rounds)]
    experts = [expert for permutation in permutations for expert in permutation]
    starts = torch.randint(matching.max_start, (matching.iterations,), generator=generator)
    return list(zip(experts, starts.tolist(), strict=False))


def _iteration(
    iterate: Iterate,
    targets: Tensor,
    structure: Structure,
    student: Student,
    matching: Matching,
    feature_rate: Tensor,
    start: Params,
    goal: Params,
) -> Tensor:
    """One iteration of Algorithm 1 (lines 5-13), in place; returns the loss of every graph."""
    x = iterate.x.detach().requires_grad_()
    topology, adjacency = structure.topology(x, iterate.state)
    loss = student(
        x,
        topology,
        targets,
        start,
        goal,
        steps=matching.student_steps,
        rate=matching.student_rate,
    )
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    with torch.no_grad():
        iterate.count += 1
        iterate.first.lerp_(gradient, 0.1)
        iterate.second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        scale = (iterate.second / (1 - 0.999**iterate.count)).sqrt_().add_(1e-8)
        iterate.x -= feature_rate * (iterate.first / (1 - 0.9**iterate.count)) / scale
        for kept, new in zip(
            iterate.state, structure.update(iterate.state, adjacency.detach()), strict=True
        ):
            kept.copy_(new)
    return loss.detach()


def _step_function(
    iterate: Iterate,
    targets: Tensor,
    structure: Structure,
    student: Student,
    matching: Matching,
    feature_rate: Tensor,
) -> Callable[[Params, Params], Tensor]:
    """An iteration as a function of the expert's weights only."""

    def eager(start: Params, goal: Params) -> Tensor:
        return _iteration(iterate, targets, structure, student, matching, feature_rate, start, goal)

    return _Captured(eager, iterate) if iterate.x.is_cuda else eager


class _Captured:
    """An iteration recorded as a CUDA graph on its first call and replayed from then on."""

    def __init__(self, eager: Callable[[Params, Params], Tensor], iterate: Iterate) -> None:
        self.eager, self.iterate = eager, iterate
        self.graph: torch.cuda.CUDAGraph | None = None
        self.tried = False

    def __call__(self, start: Params, goal: Params) -> Tensor:
        if not self.tried:
            self.tried = True
            try:
                self._record(start, goal)
            except RuntimeError as error:
                logger.debug("CUDA graph capture failed, running eagerly: %s", error)
                self.graph = None
        if self.graph is None:
            return self.eager(start, goal)
        for kept, new in zip((*self.start, *self.goal), (*start, *goal), strict=True):
            kept.copy_(new)
        self.graph.replay()
        return self.loss

    def _record(self, start: Params, goal: Params) -> None:
        it = self.iterate
        buffers = (it.x, *it.state, it.first, it.second, it.count)
        before = tuple(b.clone() for b in buffers)
        self.start = tuple(p.clone() for p in start)
        self.goal = tuple(p.clone() for p in goal)
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.eager(self.start, self.goal)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.loss = self.eager(self.start, self.goal)
            self.graph = graph
        finally:
            # Warming up moved the iterate; recording did not run.
            for buffer, saved in zip(buffers, before, strict=True):
                buffer.copy_(saved)


def _require_finite(losses: Tensor, iteration: int) -> None:
    if not bool(torch.isfinite(losses).all()):
        raise InputError(
            f"feature_rate: the matching loss stopped being finite by iteration {iteration};"
            " a lower feature_rate or a higher alpha + beta is needed."
        )
