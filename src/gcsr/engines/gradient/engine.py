"""The loop of gradient matching: epochs of outer steps, each epoch with a network of its own.

On CUDA the four kinds of steps (X' or generator, first of an epoch or not) are recorded as CUDA graphs
when they are first needed and replayed from then on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.engines.gradient.learners import ClassGradients, ClassMeans, Network, condensed_inputs
from gcsr.engines.gradient.real import RealSide
from gcsr.engines.gradient.structures import Generator, TransportTerm
from gcsr.engines.loop import OuterStep
from gcsr.equations.gradient_distance import cosine_distance, squared_distance
from gcsr.equations.propagation import normalized_adjacency
from gcsr.models.base import Params, joined
from gcsr.training.adam import Adam
from gcsr.utils.devices import capture, make_generator

Distance = Literal["cosine", "squared", "relative"]
# With SGDD's stabilized structure term, gradients are clipped to this norm.
LARGEST_NORM = 1.0
# Epochs between two states that a run can go back to. Copying one takes as long as a few steps.
KEEP_EVERY = 10
STRUCTURAL_EPOCHS = 10


@dataclass(eq=False)
class LearnedStructure:
    """A learned structure: the generator, its weights, and its terms of the loss.

    Without a generator A' = I. The first ten of every ``period`` epochs train the weights, the others
    X'.
    """

    generator: Generator | None = None
    params: Params = ()
    lr: float = 0.0
    smoothness: float = 0.0
    term: TransportTerm | None = None
    period: int = 50
    adams: list[Adam] = field(init=False)

    def __post_init__(self) -> None:
        # The term has its own Adam: a new sample of the real graph resets the plan and this Adam.
        parts = (self.params, () if self.term is None else self.term.params)
        self.adams = [Adam(params, self.lr) for params in parts if params]

    @property
    def weights(self) -> Params:
        """Weights of the generator and of the transport term."""
        return tuple(p for adam in self.adams for p in adam.params)

    def trains_in(self, epoch: int) -> bool:
        """Whether an epoch trains the structure's weights instead of X'."""
        return self.generator is not None and epoch % self.period < STRUCTURAL_EPOCHS

    def adjacency(self, x: Tensor, weights: Params) -> Tensor | None:
        """A' of every graph; ``None`` for the identity."""
        if self.generator is None:
            return None
        return self.generator.adjacency(x, weights[: len(self.params)])

    def loss(
        self, adjacency: Tensor, weights: Params, targets: Tensor, *, structural: bool
    ) -> Tensor:
        """The structure's own terms for every graph; the transport term is for its own weights."""
        own = adjacency.new_zeros(adjacency.shape[0])
        if self.smoothness:
            own = self.smoothness * label_roughness(adjacency, targets)
        if structural and self.term is not None:
            own = own + self.term.value(adjacency, weights[len(self.params) :])
        return own


@dataclass(eq=False)
class AlternatingStep(OuterStep):
    """The state of some condensed graphs; an epoch updates it in place.

    Attributes:
        x: X', ``(graphs, n', d)``; feature_lr: Adam's rate for it, one per graph.
        structure: what generates A'.
        outer: steps of an epoch.
    """

    seeds: Sequence[int]
    x: Tensor
    feature_lr: Tensor
    structure: LearnedStructure
    classes: CondensedClasses
    outer: int
    feature_adam: Adam = field(init=False)
    loss: Tensor = field(init=False)
    skipped: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.feature_adam = Adam((self.x,), self.feature_lr)
        self.loss = self.x.new_zeros(self.x.shape[0])
        self.skipped = torch.zeros_like(self.loss)
        self._captured: dict[tuple[bool, bool], Callable[[], None]] = {}
        self._lr_scale: Tensor | None = None

    def buffers(self) -> tuple[Tensor, ...]:
        """Features, generator, and their moments."""
        adams = (self.feature_adam, *self.structure.adams)
        moving = [buffer for adam in adams for buffer in adam.buffers]
        term = self.structure.term
        return (self.loss, self.skipped, *moving, *([] if term is None else [term.sampled]))

    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Run an epoch; returns the mean loss of its outer steps."""
        if lr_scale is not None and lr_scale is not self._lr_scale:
            self.feature_adam.lr = self.feature_lr * lr_scale
            # Not that of the structure's term.
            for adam in self.structure.adams[:1]:
                adam.lr = self.structure.lr * lr_scale
            self._lr_scale = lr_scale
            self._captured.clear()
        structural = self.structure.trains_in(iteration)
        self.begin(iteration, structural)
        for outer in range(self.outer):
            self.advance(structural, train=outer > 0)
        return self.loss / self.outer

    def advance(self, structural: bool, train: bool) -> None:
        """One outer step, captured on CUDA if it needs nothing from the host."""
        kind = structural, train
        body = partial(self.match, structural=structural, train=train)
        needs_host = structural and self.structure.term is not None
        if not self.x.is_cuda or needs_host or not self.capturable:
            body()
            return
        if kind not in self._captured:
            self._captured[kind] = capture(body, self.buffers())
        self._captured[kind]()

    def release(self) -> None:
        """Free the captured steps."""
        self._captured.clear()

    @property
    def capturable(self) -> bool:
        """Whether the loss needs nothing from the host."""
        return True

    def begin(self, epoch: int, structural: bool) -> None:
        """Prepare an epoch."""
        self.loss.zero_()
        if structural and self.structure.term is not None:
            self.structure.term.begin(epoch, self.structure.adams[-1])

    def match(self, *, structural: bool, train: bool) -> None:
        """Update X' or the generator; ``train`` is false in the first step of an epoch."""
        loss, gradients = self.loss_and_gradients(structural=structural, train=train)
        with torch.no_grad():
            allowed = None
            if self.structure.term is not None and self.structure.term.guarded:
                gradients, allowed = clipped_gradients(loss, gradients)
                self.skipped += 1 - allowed
                loss = torch.where(allowed > 0, loss, 0)
            self.loss += loss
            for adam in self.structure.adams if structural else (self.feature_adam,):
                count = len(adam.params)
                adam.step(gradients[:count], allowed)
                gradients = gradients[count:]

    def loss_and_gradients(self, *, structural: bool, train: bool) -> tuple[Tensor, Params]:
        """The loss of every graph and its gradients: of X', or of the structure's weights."""
        x = self.x.detach()
        weights = tuple(p.detach() for p in self.structure.weights)
        leaves = weights if structural else (x,)
        for leaf in leaves:
            leaf.requires_grad_()
        adjacency = self.structure.adjacency(x, weights)
        loss = self.loss_of(x, adjacency, train=train)
        if adjacency is not None:
            loss = loss + self.structure.loss(
                adjacency, weights, self.classes.targets, structural=structural
            )
        gradients = torch.autograd.grad(loss.sum(), leaves)
        return loss.detach(), gradients

    @abstractmethod
    def loss_of(self, x: Tensor, adjacency: Tensor | None, *, train: bool) -> Tensor:
        """The loss of every graph, differentiable in X' and A' (``None``: the identity)."""

    def adjacency(self) -> Tensor | None:
        """A' of the current state; ``None`` for the identity."""
        with torch.no_grad():
            return self.structure.adjacency(self.x, self.structure.weights)

    def divergence_message(self, iteration: int) -> str:
        """The error after too many rollbacks."""
        term = self.structure.term
        if term is not None and not term.guarded:
            return term.divergence_message.removesuffix(".")
        return (
            "feature_lr: the matching loss stopped being finite; a lower feature_lr or"
            " structure_lr is needed"
        )


@dataclass(eq=False)
class MatchGradients(AlternatingStep):
    """Matches gradients (or class means) of a network on both graphs; every epoch draws a network.

    Attributes:
        learner: the network.
        matched: what is compared: the network's gradients, or class means of its embeddings.
        model_lr: Adam's rate for the network.
        inner: training steps of the network between two steps.
        theta: the network's weights, which an epoch overwrites.
    """

    learner: Network
    matched: Network | ClassMeans
    real: RealSide
    model_lr: float
    inner: int
    distance: Distance
    theta: Params = field(init=False)
    theta_adam: Adam = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.theta = tuple(p.to(self.x) for p in self.fresh_networks(0))
        self.theta_adam = Adam(self.theta, self.model_lr)

    def buffers(self) -> tuple[Tensor, ...]:
        """Those of the base class, the network, and the draws of the real graph."""
        return (*super().buffers(), *self.theta_adam.buffers, *self.real.buffers)

    @property
    def capturable(self) -> bool:
        """Batches that are assembled on the host cannot be captured."""
        return self.real.capturable

    def fresh_networks(self, epoch: int) -> Params:
        """The network that every graph's epoch begins with."""
        generators = [make_generator(seed, f"theta of epoch {epoch}") for seed in self.seeds]
        features, classes = int(self.x.shape[-1]), int(self.classes.targets.shape[-1])
        networks = [self.learner.init(features, classes, generator) for generator in generators]
        return self.learner.params(joined(networks))

    def begin(self, epoch: int, structural: bool) -> None:
        """A fresh network and the draws of an epoch."""
        for buffer, new in zip(self.theta, self.fresh_networks(epoch), strict=True):
            buffer.copy_(new)
        self.theta_adam.reset()
        self.real.begin(epoch)
        super().begin(epoch, structural)

    def loss_of(self, x: Tensor, adjacency: Tensor | None, *, train: bool) -> Tensor:
        """Train the network, except in the first step of an epoch; then compare."""
        operator = None if adjacency is None else normalized_adjacency(adjacency)
        inputs = condensed_inputs(x, operator, self.learner.reach)
        with torch.no_grad():
            detached = inputs.detach()
            for _ in range(self.inner if train else 0):
                self.theta_adam.step(
                    self.learner.training_gradients(self.theta, detached, self.classes.targets)
                )
            real = self.real.gradients(self.matched, self.theta)
        condensed = self.matched.on_condensed(self.theta, inputs, self.classes)
        return self._distance(condensed, real)

    def _distance(self, condensed: ClassGradients, real: ClassGradients) -> Tensor:
        products = self.matched.products
        if self.distance != "cosine":
            gap = tuple(a - b for a, b in zip(condensed, real, strict=True))
            by_class = squared_distance(products(self.theta, gap, gap))
            if self.distance == "relative":
                size = squared_distance(products(self.theta, real, real))
                by_class = by_class / size.clamp_min(torch.finfo(size.dtype).tiny)
        else:
            by_class = cosine_distance(
                products(self.theta, condensed, real),
                products(self.theta, condensed, condensed),
                products(self.theta, real, real),
            )
        return (by_class * self.classes.importance).sum(-1)


def label_roughness(adjacency: Tensor, targets: Tensor) -> Tensor:
    r""":math:`\mathrm{tr}(Y^\top LY)`, :math:`L = D^{-1/2}(D-A')D^{-1/2}`.

    It is 0 if all edges join nodes of one class.
    """
    degree = adjacency.sum(-1)
    scale = (degree + 1e-8).rsqrt()
    same = targets @ targets.mT
    own = (degree * scale.square()).sum(-1)
    joined = (scale.unsqueeze(-1) * adjacency * scale.unsqueeze(-2) * same).sum((-2, -1))
    return own - joined


def clipped_gradients(loss: Tensor, gradients: Params) -> tuple[Params, Tensor]:
    """Clipped gradients, and 1 for graphs whose gradients are finite, else 0."""
    squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
    allowed = (torch.isfinite(squares) & torch.isfinite(loss)).to(loss.dtype)
    factor = (LARGEST_NORM / (squares.sqrt() + 1e-12)).clamp_max(1).view(-1, 1, 1)
    return tuple(g * factor for g in gradients), allowed
