"""Training many experts at once on the training nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gcsr.devices import free_memory_bytes, stream, within_memory
from gcsr.experts.recipe import ExpertRecipe
from gcsr.experts.rows import TrainingRows
from gcsr.experts.trajectories import Trajectories
from gcsr.models import Model, Params, init_batch
from gcsr.parallel import part_of, run_jobs, single_threaded
from gcsr.progress import Progress, silent
from gcsr.views import VisibleGraph

# Experts trained together on CUDA keep weights, moments and activations below this many numbers.
GROUP_BUDGET = 2**31


def train_experts(
    model: Model,
    visible: VisibleGraph,
    recipe: ExpertRecipe,
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    memory_bytes: int | None = None,
    disk_bytes: int = 0,
    on_trained: Callable[[range, Params], None] | None = None,
    progress: Progress = silent,
) -> Trajectories:
    """Train ``recipe.count`` experts and keep their weights at every snapshot.

    ``memory_bytes`` bounds the trajectories (default: a quarter of the free memory). Where they do
    not fit, but ``disk_bytes`` hold them, they lie in a file (on a CPU); otherwise checkpoints are kept
    and the epochs between them are trained again on demand, bit by bit the same on a CPU.
    ``on_trained`` gets the numbers and the last weights of every group of experts when its training
    ends, on the thread that trained it.
    """
    school = School(model, visible, recipe, device, dtype)
    budget = default_budget(device) if memory_bytes is None else memory_bytes
    trajectories = Trajectories.within(budget, school, disk_bytes)
    group = school.group_size if trajectories.keeps_everything else 1

    def job(first: int) -> Callable[[Progress], None]:
        experts = range(first, min(first + group, recipe.count))

        def lessons(size: int, report: Progress) -> list[tuple[range, Params]]:
            trained = []
            for start in range(0, len(experts), size):
                some = experts[start : start + size]
                for epoch, state in school.lessons(some):
                    trajectories.record(some, epoch, state)
                    report("training experts", epoch, recipe.trained_epochs)
                trained.append((some, state.params))
            return trained

        def teach(report: Progress) -> None:
            trained = within_memory(lambda size: lessons(size, report), len(experts), "experts")
            if on_trained is not None:
                for some, params in trained:
                    on_trained(some, params)

        return teach

    jobs = [job(first) for first in range(0, recipe.count, group)]
    if device.type == "cpu":
        run_jobs(jobs, progress)
    else:
        for done, teach in enumerate(jobs):
            teach(part_of(progress, done, len(jobs)))
    return trajectories


def train_part(
    model: Model,
    visible: VisibleGraph,
    recipe: ExpertRecipe,
    experts: range,
    device: torch.device,
    dtype: torch.dtype,
) -> tuple[Params, Params]:
    """What :func:`train_experts` keeps of some of its experts, and their last weights.

    One expert at a time, as on a CPU.
    """
    school = School(model, visible, replace(recipe, count=len(experts)), device, dtype)
    trajectories = Trajectories.within(sys.maxsize, school)
    last = []
    with single_threaded():
        for place, expert in enumerate(experts):
            for epoch, state in school.lessons(range(expert, expert + 1)):
                trajectories.record(range(place, place + 1), epoch, state)
            last.append(state.params)
    return trajectories.kept, tuple(map(torch.cat, zip(*last, strict=True)))


def default_budget(device: torch.device) -> int:
    """Bytes that trajectories may take unless told otherwise."""
    return free_memory_bytes(device) // 4


@dataclass(eq=False)
class LessonState:
    """Weights and Adam's moments (none for SGD) after an epoch; ``steps`` since a fresh Adam."""

    params: Params
    first: Params
    second: Params
    steps: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Everything needed to go on from here."""
        return (*self.params, *self.first, *self.second)


class School:
    """Knows how an epoch is taught; the store of trajectories uses it to replay."""

    def __init__(
        self,
        model: Model,
        visible: VisibleGraph,
        recipe: ExpertRecipe,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.model, self.recipe, self.device, self.dtype = model, recipe, device, dtype
        self.features = int(visible.x.shape[1])
        self.classes = visible.num_classes
        self.rows = TrainingRows(model, visible, device, dtype)

    @property
    def group_size(self) -> int:
        """How many experts fit the budget when trained together."""
        # One at a time on a CPU: small products gain nothing there from being batched, and a
        # replayed expert then runs exactly the operations of the first time.
        if self.device.type == "cpu":
            return 1
        weights = sum(p.numel() for p in self.initial(range(1)))
        return max(1, GROUP_BUDGET // (5 * weights + self.rows.activations))

    def initial(self, experts: range) -> Params:
        """Weights before the first epoch."""
        generators = [stream(self.recipe.seed, f"expert {expert}") for expert in experts]
        params = init_batch(self.model, self.features, self.classes, generators)
        return tuple(p.to(self.device, self.dtype) for p in params)

    def begin(self, experts: range) -> LessonState:
        """The state before the first epoch."""
        params = self.initial(experts)
        moving = params if self.recipe.optimiser == "adam" else ()
        first, second = (tuple(torch.zeros_like(p) for p in moving) for _ in range(2))
        return LessonState(params, first, second, 0)

    def lessons(self, experts: range) -> Iterator[tuple[int, LessonState]]:
        """States after epoch 0 (the start), 1, 2, ... up to the last."""
        state = self.begin(experts)
        yield 0, state
        for epoch in range(self.recipe.trained_epochs):
            self.teach(state, epoch)
            yield epoch + 1, state

    def teach(self, state: LessonState, epoch: int) -> None:
        """One full-batch step, in place."""
        recipe = self.recipe
        rate = recipe.rate
        middle = recipe.epochs // 2
        if recipe.restart and epoch >= middle:
            rate /= 10
        if recipe.restart and epoch == middle:
            for moment in (*state.first, *state.second):
                moment.zero_()
            state.steps = 0
        state.steps += 1
        params = tuple(p.detach().requires_grad_() for p in state.params)
        gradients = self.rows.gradients(params)
        with torch.no_grad():
            for i, (p, g) in enumerate(zip(state.params, gradients, strict=True)):
                decayed = g.add(p, alpha=recipe.weight_decay)
                if recipe.optimiser == "sgd":
                    p.sub_(decayed, alpha=rate)
                else:
                    moments = state.first[i], state.second[i]
                    adam_step(p, decayed, *moments, rate=rate, steps=state.steps)


def adam_step(
    p: Tensor, gradient: Tensor, first: Tensor, second: Tensor, *, rate: float, steps: int
) -> None:
    """One step of Adam (Kingma and Ba, 2015) in place, with the usual constants."""
    first.lerp_(gradient, 0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    scale = second.sqrt().div_((1 - 0.999**steps) ** 0.5).add_(1e-8)
    p.addcdiv_(first, scale, value=-rate / (1 - 0.9**steps))
