"""Training of experts on the training nodes, and their mean prediction."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gcsr.data.views import VisibleGraph
from gcsr.equations.curriculum import neighborhood_entropy
from gcsr.models.base import Model, Params, Prepared, init_batch, joined
from gcsr.models.sparse import SparseTopology
from gcsr.outofcore.real import real_graph
from gcsr.training.adam import adam_step
from gcsr.training.classification import cross_entropy
from gcsr.training.expert_recipe import ExpertRequest
from gcsr.training.trajectories import Trajectories
from gcsr.utils.devices import free_memory_bytes, make_generator, within_memory
from gcsr.utils.parallel import run_jobs_on, single_threaded
from gcsr.utils.progress import Progress, silent

# Activations of one expert, forwards and backwards, stay below this many numbers.
ACTIVATION_BUDGET = {"cpu": 2**28, "cuda": 2**31}


class TrainingRows:
    """Prepared inputs and targets of the training nodes, computed once.

    Where the activations of all training nodes would not fit, nodes are taken in parts and the
    gradients of the parts are added up: the step stays that of the full batch.
    """

    def __init__(
        self, model: Model, visible: VisibleGraph, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._model = model
        nodes, classes = visible.train, visible.num_classes
        targets = torch.nn.functional.one_hot(visible.train_labels, classes).to(device, dtype)
        real = real_graph(visible, device, dtype)
        whole = real.prepared(model, nodes)
        self.activations = 2 * whole.inputs.shape[-2] * getattr(model, "hidden_channels", 256)
        count = -(-self.activations // ACTIVATION_BUDGET[device.type])
        self.parts: list[tuple[Prepared, Tensor]] = [(whole, targets)]
        if count > 1:
            cuts = torch.arange(nodes.numel()).chunk(count)
            self.parts = [
                (_cut(whole, cut) or real.prepared(model, nodes[cut]), targets[cut]) for cut in cuts
            ]
        self._count = nodes.numel()

    def gradients(self, params: Params, weights: Tensor | None = None) -> tuple[Tensor, ...]:
        """Gradients of every network's mean loss over all training nodes, whose ``weights`` are 1."""
        total: tuple[Tensor, ...] = ()
        first = 0
        for prepared, given in self.parts:
            last = first + given.shape[0]
            targets = given if weights is None else given * weights[first:last]
            first = last
            loss = cross_entropy(self._model.logits(params, prepared), targets).sum()
            if len(self.parts) > 1:
                loss = loss * (targets.shape[0] / self._count)
            gradients = torch.autograd.grad(loss, params)
            for added, gradient in zip(total, gradients, strict=bool(total)):
                added.add_(gradient)
            total = total or gradients
        return total


def _cut(whole: Prepared, rows: Tensor) -> Prepared | None:
    """Some rows of inputs that are propagated already; ``None`` where layers propagate later."""
    if whole.outer or whole.edges is not None or not isinstance(whole.inputs, Tensor):
        return None
    ones = whole.ones
    return replace(whole, inputs=whole.inputs[rows], ones=None if ones is None else ones[rows])


# Experts trained together on CUDA keep weights, moments and activations below this many numbers.
GROUP_BUDGET = 2**31


def train_experts(
    request: ExpertRequest,
    visible: VisibleGraph,
    *,
    device: torch.device,
    on_trained: Callable[[range, Params], None] | None = None,
    progress: Progress = silent,
) -> Trajectories:
    """Train the experts and keep their weights at every snapshot.

    ``request.memory_bytes`` bounds the trajectories (default: a quarter of the free memory). Where they
    do not fit, but ``disk_bytes`` hold them, they lie in a file (on a CPU); otherwise checkpoints are
    kept and the epochs between them are trained again on demand, bit by bit the same on a CPU.
    ``on_trained`` gets the numbers and the last weights of every group of experts when its training
    ends, on the thread that trained it.
    """
    trainer, recipe = ExpertTrainer(request, visible, device), request.recipe
    trajectories = Trajectories.within(memory_budget(request, device), trainer, request.disk_bytes)
    group = trainer.group_size if trajectories.keeps_everything else 1

    def train(experts: range, progress: Progress, size: int) -> list[tuple[range, Params]]:
        trained = []
        for start in range(0, len(experts), size):
            some = experts[start : start + size]
            for epoch, state in trainer.states(some):
                trajectories.record(some, epoch, state)
                progress("training experts", epoch, recipe.trained_epochs)
            trained.append((some, state.params))
        return trained

    def job(experts: range, progress: Progress) -> None:
        trained = within_memory(partial(train, experts, progress), len(experts), "experts")
        if on_trained is not None:
            for some, params in trained:
                on_trained(some, params)

    everyone = range(recipe.count)
    jobs = [partial(job, everyone[i : i + group]) for i in range(0, recipe.count, group)]
    run_jobs_on(device, jobs, progress)
    return trajectories


def train_part(
    request: ExpertRequest, visible: VisibleGraph, experts: range, device: torch.device
) -> tuple[Params, Params]:
    """What :func:`train_experts` keeps of some of its experts, and their last weights.

    One expert at a time, as on a CPU.
    """
    some = replace(request, recipe=replace(request.recipe, count=len(experts)))
    trainer = ExpertTrainer(some, visible, device)
    trajectories = Trajectories.within(sys.maxsize, trainer)
    last = []
    with single_threaded():
        for place, expert in enumerate(experts):
            for epoch, state in trainer.states(range(expert, expert + 1)):
                trajectories.record(range(place, place + 1), epoch, state)
            last.append(state.params)
    return trajectories.kept, joined(last)


def memory_budget(request: ExpertRequest, device: torch.device) -> int:
    """Bytes that trajectories may take: by default a quarter of the free memory."""
    given = request.memory_bytes
    return free_memory_bytes(device) // 4 if given is None else given


@dataclass(eq=False)
class TrainingState:
    """Weights and Adam's moments (none for SGD) after an epoch; ``steps`` since a fresh Adam."""

    params: Params
    first: Params
    second: Params
    steps: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Everything needed to go on from here."""
        return (*self.params, *self.first, *self.second)


class ExpertTrainer:
    """Trains experts epoch by epoch; :class:`Trajectories` uses it to repeat epochs."""

    def __init__(self, request: ExpertRequest, visible: VisibleGraph, device: torch.device) -> None:
        self.model, self.recipe, self.dtype = request.model, request.recipe, request.dtype
        self.device = device
        self.features, self.classes = int(visible.x.shape[1]), visible.num_classes
        self.rows = TrainingRows(self.model, visible, device, self.dtype)
        self.ranks: Tensor | None = None
        if self.recipe.curriculum is not None:
            self.ranks = difficulty_ranks(request, visible, device)

    @property
    def group_size(self) -> int:
        """How many experts fit the budget when trained together."""
        # One at a time on a CPU: small products gain nothing there from being batched, and a
        # replayed expert then runs exactly the operations of the first time.
        if self.device.type == "cpu":
            return 1
        weights = sum(p.numel() for p in self.initial(range(1)))
        return max(1, GROUP_BUDGET // (5 * weights + self.rows.activations))

    def weights(self, epoch: int) -> Tensor | None:
        """Of the training nodes: 0 for those that are too difficult yet, equal for the others."""
        if self.ranks is None or self.recipe.curriculum is None:
            return None
        nodes = self.ranks.numel()
        taken = max(1, int(self.recipe.curriculum.share(epoch) * nodes))
        return ((self.ranks < taken).to(self.dtype) * (nodes / taken)).unsqueeze(-1)

    def initial(self, experts: range) -> Params:
        """Weights before the first epoch."""
        generators = [make_generator(self.recipe.seed, f"expert {expert}") for expert in experts]
        params = init_batch(self.model, self.features, self.classes, generators)
        return tuple(p.to(self.device, self.dtype) for p in params)

    def begin(self, experts: range) -> TrainingState:
        """The state before the first epoch."""
        params = self.initial(experts)
        moving = params if self.recipe.optimizer == "adam" else ()
        first, second = (tuple(torch.zeros_like(p) for p in moving) for _ in range(2))
        return TrainingState(params, first, second, 0)

    def states(self, experts: range) -> Iterator[tuple[int, TrainingState]]:
        """States after epoch 0 (the start), 1, 2, ... up to the last."""
        state = self.begin(experts)
        yield 0, state
        for epoch in range(self.recipe.trained_epochs):
            self.step(state, epoch)
            yield epoch + 1, state

    def step(self, state: TrainingState, epoch: int) -> None:
        """One full-batch step, in place."""
        recipe = self.recipe
        lr = recipe.lr
        middle = recipe.epochs // 2
        if recipe.restart and epoch >= middle:
            lr /= 10
        if recipe.restart and epoch == middle:
            for moment in (*state.first, *state.second):
                moment.zero_()
            state.steps = 0
        state.steps += 1
        params = tuple(p.detach().requires_grad_() for p in state.params)
        gradients = self.rows.gradients(params, self.weights(epoch))
        with torch.no_grad():
            for i, (p, g) in enumerate(zip(state.params, gradients, strict=True)):
                decayed = g.add(p, alpha=recipe.weight_decay)
                if recipe.optimizer == "sgd":
                    p.sub_(decayed, alpha=lr)
                else:
                    moments = state.first[i], state.second[i]
                    adam_step(p, decayed, *moments, lr=lr, steps=state.steps)


def difficulty_ranks(request: ExpertRequest, visible: VisibleGraph, device: torch.device) -> Tensor:
    """Places of the training nodes in the order of their neighborhoods' entropy, the lowest first.

    Training nodes have their labels, other nodes what an expert without a curriculum predicts.
    """
    labels = visible.labels
    if bool((labels < 0).any()):
        plain = replace(request, recipe=replace(request.recipe, curriculum=None))
        trainer = ExpertTrainer(plain, visible, device)
        for _, state in trainer.states(range(1)):
            last = state.params
        predicted = MeanPrediction(request.model, visible, device, request.dtype)
        predicted(range(1), last)
        labels = torch.where(labels < 0, predicted.mean.argmax(1).cpu(), labels)
    entropy = neighborhood_entropy(visible.adjacency, labels.numpy(), visible.num_classes)
    order = np.argsort(entropy[visible.train.numpy()], kind="stable")
    return torch.from_numpy(np.argsort(order)).to(device)


class MeanPrediction:
    """Mean class probabilities ``(n, C)`` over experts, added up as each of them finishes.

    So no trained expert has to be kept. Experts finish in any order, on any thread; they are counted
    in the order of their numbers, because the sum of floating-point numbers depends on it.
    """

    def __init__(
        self,
        model: Model,
        visible: VisibleGraph,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._model, self._visible, self._device, self._dtype = model, visible, device, dtype
        shape = (visible.num_nodes, visible.num_classes)
        self._total = torch.zeros(shape, dtype=dtype, device=device)
        self._prepared: Prepared | None = None
        self._early: dict[int, Params] = {}
        self._count = 0
        # One expert at a time: hidden units of every node are large.
        self._lock = threading.Lock()

    def __call__(self, experts: range, params: Params) -> None:
        """Count a group of experts whose training ended."""
        with self._lock:
            self._early[experts.start] = tuple(p.detach().clone() for p in params)
            while self._count in self._early:
                self._add(self._early.pop(self._count))

    @property
    def mean(self) -> Tensor:
        """The mean over all experts, once every one of them is counted."""
        if self._early or not self._count:
            raise RuntimeError("not every expert was counted")
        return self._total / self._count

    def _add(self, group: Params) -> None:
        if self._prepared is None:
            topology = SparseTopology(self._visible.adjacency, self._device, self._dtype)
            x = self._visible.x.to(self._device, self._dtype)
            self._prepared = self._model.prepare(x, topology)
        with torch.no_grad():
            for i in range(group[0].shape[0]):
                one = tuple(p[i : i + 1] for p in group)
                self._total += self._model.logits(one, self._prepared)[0].softmax(-1)
                self._count += 1
