"""The loop of gradient matching: epochs of outer steps, each epoch with a network of its own.

On CUDA the four kinds of steps (X' or generator, first of an epoch or not) are recorded as CUDA graphs
when they are first needed and replayed from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from gcsr.engines.adam import Adam
from gcsr.engines.divergence import DivergenceGuard
from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.engines.gradient.learners import ClassGradients, Condensed, Learner, condensed_inputs
from gcsr.engines.gradient.real import RealSide
from gcsr.engines.gradient.structures import Generator
from gcsr.equations.gradient_distance import cosine_distance, squared_distance
from gcsr.equations.propagation import normalized_adjacency
from gcsr.models.base import Params, init_batch
from gcsr.utils.capture import record, warm_up
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError
from gcsr.utils.progress import Progress

# -- One outer step of gradient matching, for several condensed graphs at once -----------------------


Distance = Literal["cosine", "squared"]
# Guarded steps are scaled down to this norm.
LARGEST_NORM = 1.0


class StructureTerm(Protocol):
    """An addition to the loss that compares A' with the real structure (SGDD)."""

    guarded: bool
    divergence_message: str
    # The epoch of the current sample; ``None`` before the first.
    sampled: int | None

    @property
    def params(self) -> Params:
        """Its own weights, which learn with the generator's."""
        ...

    def begin(self, epoch: int, optimiser: Adam) -> None:
        """Prepare an epoch in which the generator learns."""
        ...

    def sample(self, epoch: int) -> object:
        """Look at the real nodes of an epoch's sample, and leave its own weights as they are."""
        ...

    def value(self, adjacency: Tensor, params: Params) -> Tensor:
        """The weighted term of every graph."""
        ...


@dataclass(frozen=True, eq=False)
class Learned:
    """A structure that is learned: the generator, its weights, and what the loss says about A'."""

    generator: Generator
    params: Params
    rate: float
    smoothness: float = 0.0
    term: StructureTerm | None = None


@dataclass(eq=False)
class Step:
    """The state of some condensed graphs and the step that changes it, in place.

    Attributes:
        x: X', ``(graphs, n', d)``; feature_lr: Adam's rate for it, one per graph.
        theta: buffers for the network's weights, which an epoch fills.
        inner: training steps of the network between two matches.
    """

    x: Tensor
    feature_lr: Tensor
    structure: Learned | None
    learner: Learner
    classes: CondensedClasses
    real: RealSide
    theta: Params
    theta_rate: float
    inner: int
    distance: Distance
    feature_adam: Adam = field(init=False)
    structure_adam: Adam | None = field(init=False, default=None)
    term_adam: Adam | None = field(init=False, default=None)
    theta_adam: Adam = field(init=False)
    loss: Tensor = field(init=False)
    skipped: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.feature_adam = Adam((self.x,), self.feature_lr)
        self.theta_adam = Adam(self.theta, self.theta_rate)
        self.loss = self.x.new_zeros(self.x.shape[0])
        self.skipped = torch.zeros_like(self.loss)
        if self.structure is not None:
            rate, term = self.structure.rate, self.structure.term
            self.structure_adam = Adam(self.structure.params, rate)
            # Its own: a new sample of the real graph begins with a new plan and a fresh Adam.
            self.term_adam = None if term is None else Adam(term.params, rate)

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that a step changes."""
        optional = (self.structure_adam, self.term_adam)
        adams = [self.feature_adam, self.theta_adam, *(a for a in optional if a is not None)]
        moving = [buffer for adam in adams for buffer in adam.buffers]
        return (self.loss, self.skipped, *moving, *self.real.buffers)

    @property
    def values(self) -> dict[str, Any]:
        """What else belongs to the state, as plain values."""
        term = None if self.structure is None else self.structure.term
        return {} if term is None else {"sampled": term.sampled}

    def go_on(self, values: Mapping[str, Any], recovery: DivergenceGuard) -> None:
        """After the buffers got an earlier run's state, take over the rest of it."""
        term = None if self.structure is None else self.structure.term
        if term is not None and values.get("sampled") is not None:
            term.sample(int(values["sampled"]))
        self.slow_down(recovery)

    def slow_down(self, recovery: DivergenceGuard) -> None:
        """Take the rates that rollbacks left."""
        self.feature_adam.rate = recovery.scaled_lr(self.feature_lr)
        if recovery.rollbacks and self.structure_adam is not None and self.structure is not None:
            rate = self.x.new_full((self.x.shape[0], 1, 1), self.structure.rate)
            self.structure_adam.rate = recovery.scaled_lr(rate)

    def capturable(self, structural: bool) -> bool:
        """Whether a step needs nothing of the host."""
        term = None if self.structure is None else self.structure.term
        return self.real.capturable and not (structural and term is not None)

    def begin(self, epoch: int, theta: Params, structural: bool) -> None:
        """A fresh network and the draws of an epoch."""
        for buffer, new in zip(self.theta, theta, strict=True):
            buffer.copy_(new)
        self.theta_adam.reset()
        self.loss.zero_()
        self.real.begin(epoch)
        term = None if self.structure is None else self.structure.term
        if structural and term is not None and self.term_adam is not None:
            term.begin(epoch, self.term_adam)

    def __call__(self, *, structural: bool, train: bool) -> None:
        """Train the network unless the epoch just began; match; move X' or the generator."""
        loss, gradients = self.loss_and_gradients(structural=structural, train=train)
        with torch.no_grad():
            if self._guarded:
                gradients, allowed = _guarded(loss, gradients)
                self.skipped += 1 - allowed
                self.loss += torch.where(allowed > 0, loss, 0)
                self._move(gradients, allowed, structural=structural)
            else:
                self.loss += loss
                self._move(gradients, None, structural=structural)

    def _move(self, gradients: Params, allowed: Tensor | None, *, structural: bool) -> None:
        """X', or the generator and what the structure's term learns."""
        if not structural:
            self.feature_adam.step(gradients, allowed)
            return
        if self.structure_adam is None:
            raise TypeError("a graph without a generator has no structural step")
        count = len(self.structure_adam.params)
        self.structure_adam.step(gradients[:count], allowed)
        if self.term_adam is not None:
            self.term_adam.step(gradients[count:], allowed)

    @property
    def _weights(self) -> Params:
        """What a structural step moves."""
        adams = (self.structure_adam, self.term_adam)
        return tuple(p for adam in adams if adam is not None for p in adam.params)

    def loss_and_gradients(self, *, structural: bool, train: bool) -> tuple[Tensor, Params]:
        """The loss of every graph and its gradients: of X', or of the structure's weights."""
        x = self.x.detach()
        weights = tuple(p.detach() for p in self._weights)
        leaves = weights if structural else (x,)
        for leaf in leaves:
            leaf.requires_grad_()
        adjacency = self._adjacency(x, weights)
        operator = None if adjacency is None else normalized_adjacency(adjacency)
        condensed = condensed_inputs(x, operator, self.learner.reach)
        with torch.no_grad():
            if train:
                self._train(condensed.detach())
            theirs = self.real.gradients(self.learner, self.theta)
        ours = self.learner.condensed_gradients(self.theta, condensed, self.classes)
        loss = self._distance(ours, theirs)
        if adjacency is not None:
            loss = loss + self._about(adjacency, weights, structural)
        gradients = torch.autograd.grad(loss.sum(), leaves)
        return loss.detach(), gradients

    def adjacency(self) -> Tensor | None:
        """A' of the current state; ``None`` for the identity."""
        with torch.no_grad():
            return self._adjacency(self.x, self._weights)

    @property
    def divergence_message(self) -> str:
        """What to say when a loss is not finite."""
        term = None if self.structure is None else self.structure.term
        if term is not None and not term.guarded:
            return term.divergence_message
        return (
            "feature_lr: the matching loss stopped being finite; a lower feature_lr or"
            " structure_lr is needed."
        )

    @property
    def _guarded(self) -> bool:
        term = None if self.structure is None else self.structure.term
        return term is not None and term.guarded

    def _adjacency(self, x: Tensor, weights: Params) -> Tensor | None:
        if self.structure is None:
            return None
        return self.structure.generator.adjacency(x, weights[: len(self.structure.params)])

    def _train(self, condensed: Condensed) -> None:
        for _ in range(self.inner):
            self.theta_adam.step(
                self.learner.training_gradients(self.theta, condensed, self.classes.targets)
            )

    def _distance(self, ours: ClassGradients, theirs: ClassGradients) -> Tensor:
        products = self.learner.products
        if self.distance == "squared":
            gap = tuple(a - b for a, b in zip(ours, theirs, strict=True))
            by_class = squared_distance(products(self.theta, gap, gap))
        else:
            by_class = cosine_distance(
                products(self.theta, ours, theirs),
                products(self.theta, ours, ours),
                products(self.theta, theirs, theirs),
            )
        return (by_class * self.classes.importance).sum(-1)

    def _about(self, adjacency: Tensor, weights: Params, structural: bool) -> Tensor:
        """What the loss says about A' itself."""
        if self.structure is None:
            raise TypeError("there is no structure")
        total = adjacency.new_zeros(adjacency.shape[0])
        if self.structure.smoothness:
            total = self.structure.smoothness * label_roughness(adjacency, self.classes.targets)
        if structural and self.structure.term is not None:
            own = weights[len(self.structure.params) :]
            total = total + self.structure.term.value(adjacency, own)
        return total


def label_roughness(adjacency: Tensor, targets: Tensor) -> Tensor:
    r""":math:`\mathrm{tr}(Y^\top LY)`, :math:`L = D^{-1/2}(D-A')D^{-1/2}`: 0 if edges join equals."""
    degree = adjacency.sum(-1)
    scale = (degree + 1e-8).rsqrt()
    same = targets @ targets.mT
    own = (degree * scale.square()).sum(-1)
    joined = (scale.unsqueeze(-1) * adjacency * scale.unsqueeze(-2) * same).sum((-2, -1))
    return own - joined


def _guarded(loss: Tensor, gradients: Params) -> tuple[Params, Tensor]:
    """Clip every graph's gradient; say which graphs have one that is finite."""
    squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
    allowed = (torch.isfinite(squares) & torch.isfinite(loss)).to(loss.dtype)
    factor = (LARGEST_NORM / (squares.sqrt() + 1e-12)).clamp_max(1).view(-1, 1, 1)
    return tuple(g * factor for g in gradients), allowed


# Of every PERIOD epochs the first STRUCTURAL move the generator, the others X'.
PERIOD, STRUCTURAL = 50, 10
# Epochs between two states that a run could go back to; copying one takes as long as a few steps.
REMEMBER_EVERY = 10


@dataclass(frozen=True)
class Schedule:
    """How long the loop is."""

    epochs: int
    outer: int

    @staticmethod
    def structural(epoch: int) -> bool:
        """Whether an epoch moves the generator."""
        return epoch % PERIOD < STRUCTURAL


def match_gradients(
    step: Step,
    schedule: Schedule,
    *,
    seeds: Sequence[int],
    progress: Progress,
    look: Callable[[int, Step], None] | None = None,
    look_at: Container[int] = (),
    recovery: DivergenceGuard | None = None,
) -> Tensor:
    """Run the loop in place; returns the mean matching loss of every epoch ``(epochs, graphs)``.

    ``look`` is called before the epochs ``look_at`` names and at the end. A graph whose loss is not
    finite goes back to the last good state with half of its rates; if that does not help it is an
    error. ``recovery`` knows where the run was when its process ended, and tells of what happened.
    """
    recovery = recovery or DivergenceGuard()
    losses = torch.zeros((schedule.epochs, len(seeds)), dtype=torch.float64)
    epoch, values = recovery.begin(step.buffers, losses)
    step.go_on(values, recovery)
    advance = Advance(step)
    while epoch < schedule.epochs:
        if look is not None and epoch in look_at:
            look(epoch, step)
        structural = step.structure is not None and schedule.structural(epoch)
        step.begin(epoch, fresh_networks(step, seeds, epoch), structural)
        for outer in range(schedule.outer):
            advance(structural=structural, train=outer > 0)
        losses[epoch] = step.loss.cpu() / schedule.outer
        bad = ~torch.isfinite(losses[epoch])
        epoch += 1
        remembered = epoch % REMEMBER_EVERY == 0 or epoch == schedule.epochs
        if remembered:
            bad |= ~torch.isfinite(step.x.flatten(1)).all(1).cpu()
        if not bool(bad.any()):
            if remembered:
                recovery.accept(epoch, step.buffers, losses, step.values)
            progress("condensing", epoch, schedule.epochs)
            continue
        back = recovery.rollback(epoch, bad, step.buffers, losses)
        if back is None:
            raise InputError(step.divergence_message.removesuffix(".") + recovery.saved_at + ".")
        epoch = back
        step.slow_down(recovery)
        advance = Advance(step)
    if look is not None:
        look(schedule.epochs, step)
    return losses


def fresh_networks(step: Step, seeds: Sequence[int], epoch: int) -> Params:
    """The network that every graph's epoch begins with."""
    generators = [make_generator(seed, f"theta of epoch {epoch}") for seed in seeds]
    features, classes = int(step.x.shape[-1]), int(step.classes.targets.shape[-1])
    return step.learner.params(init_batch(step.learner.model, features, classes, generators))


class Advance:
    """Runs a step the fastest way that works here."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._recorded: dict[tuple[bool, bool], Callable[[], None]] = {}

    def __call__(self, *, structural: bool, train: bool) -> None:
        """One step of that kind."""
        if not self._step.x.is_cuda or not self._step.capturable(structural):
            self._step(structural=structural, train=train)
            return
        kind = (structural, train)
        if kind not in self._recorded:
            self._recorded[kind] = self._record(structural, train)
        self._recorded[kind]()

    def _record(self, structural: bool, train: bool) -> Callable[[], None]:
        buffers = self._step.buffers
        before = tuple(buffer.clone() for buffer in buffers)

        def restore() -> None:
            for buffer, saved in zip(buffers, before, strict=True):
                buffer.copy_(saved)

        def body() -> None:
            self._step(structural=structural, train=train)

        for _ in range(2):
            warm_up(body, 1)
            restore()
        return record(body)
