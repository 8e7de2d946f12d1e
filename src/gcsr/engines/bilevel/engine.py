r"""The bilevel engine: condensed features and labels learned through the training of students.

.. math:: \min_{X', Y'} \; \mathbb E_{\theta_0} \; L_\text{real}(\theta_T(X', Y'; \theta_0)), \qquad
          \theta_{t+1} = \mathrm{Adam}(\theta_t, \nabla L_\text{small}(\theta_t; X', Y'))

by truncated backpropagation through time (Feng et al., "Embarrassingly Simple Dataset Distillation",
2023). A few students are always in training. An iteration trains each of them for ``window`` more
steps, differentiates its real loss through these steps alone, and takes one Adam step on X' and the
logits of Y'. The oldest student is replaced in turn, so the students' ages are spread evenly between
``burn_in`` and ``longest`` steps.

Gradients through many Adam steps vary by orders of magnitude between students. Each student's gradient
is scaled down to the median norm of all of them before the mean is taken, and the mean is divided by
that norm. Graphs lie along a leading dimension and are independent. Of a multi-label graph Y' is
the sigmoid of its logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.engines.bilevel.window import (
    InnerAdam,
    SmallGraph,
    Students,
    Window,
    logits_gradient,
    students_apart,
)
from gcsr.engines.loop import MOST_ROLLBACKS, OuterStep
from gcsr.engines.structure import SelfExpressiveStructure, SyntheticFeatures
from gcsr.models.base import Model, Prepared, init_batch
from gcsr.models.mlp import MLP
from gcsr.models.registry import MODELS
from gcsr.models.sparse import SparseOperator
from gcsr.models.topology import Limited
from gcsr.outofcore.predict import hops_of
from gcsr.outofcore.real import ReadSparse, RealGraph, prepare_rows, support_of
from gcsr.training.adam import Adam
from gcsr.training.classification import probabilities, training_loss
from gcsr.utils.devices import capture, make_generator
from gcsr.utils.errors import Count, Rate, Weight, Whole

# How often losses are checked and states are kept; on CUDA a check waits for the device.
CHECK_EVERY = 10
# A share of zero, for its logarithm, and a label that is as good as certain, for its logit.
NO_SHARE, CERTAIN = 1e-12, 1e-6


@dataclass(frozen=True, kw_only=True)
class BilevelSchedule:
    """The settings of :class:`gcsr.Bilevel` that the outer loop and its students need."""

    iterations: Whole = 100
    students: Count = 4
    hidden_channels: Count = 64
    window: Count = 20
    burn_in: Whole = 40
    longest: Count = 200
    feature_lr: Rate = 0.02
    label_lr: Weight = 0.02
    student_lr: Rate = 0.01
    student_weight_decay: Weight = 5e-4

    def replaced_at(self, iteration: int) -> list[int]:
        """Which students are replaced in an iteration: each is kept for the same number of iterations.

        Replacements are spread evenly over that number (``life``).
        """
        life = max(1, (self.longest - self.burn_in) // self.window)
        if iteration == 0:
            return list(range(self.students))
        offsets = [number * life // self.students for number in range(self.students)]
        return [s for s, offset in enumerate(offsets) if (iteration + offset) % life == 0]

    def lr_share(self, iteration: int) -> float:
        """Cosine schedule of both learning rates, from 1 to 0."""
        return 0.5 * (1 + math.cos(math.pi * iteration / self.iterations))


class BilevelStep(OuterStep):
    """One outer step of several condensed graphs; every tensor is updated in place.

    Args:
        x: initial X', ``(graphs, n', d)``.
        y: initial class shares, ``(graphs, n', C)``.
        schedule: settings of the loop; a :class:`gcsr.Bilevel` is one.
        real: the outer loss; ``None`` where no step will be taken.
        seeds: of the graphs; they determine the students' initial weights.
        structure: the closed form of GCSR and its state, or ``None`` for A' = I.
        multi_label: whether ``y`` are targets of every label instead of class shares.
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        schedule: BilevelSchedule,
        real: RealLoss | None,
        seeds: Sequence[int],
        structure: tuple[SelfExpressiveStructure, tuple[Tensor, ...]] | None = None,
        multi_label: bool = False,
    ) -> None:
        self.x, self.schedule, self.real, self._seeds = x, schedule, real, seeds
        self._multi_label = multi_label
        self.logits = label_logits(y, multi_label, learned=schedule.label_lr > 0)
        self._structure: SelfExpressiveStructure | None = None
        self.state: tuple[Tensor, ...] = ()
        if structure is not None:
            self._structure, self.state = structure
        graphs, _, features = x.shape
        classes = int(y.shape[-1])
        widths = (int(features), schedule.hidden_channels, classes)
        self.students = Students.zeros(graphs, schedule.students, widths, x)
        # New students train alone until they are old enough.
        self._newcomers = Students.zeros(graphs, 1, widths, x)
        self._model = MLP(schedule.hidden_channels)
        # The standard deviation of every column, at least a tenth of their mean. Of one node per class,
        # all alike, it is their size, which is all there is to go by.
        deviation = (x - x.mean(1, keepdim=True)).square().mean(1, keepdim=True).sqrt()
        mean = deviation.mean(2, keepdim=True)
        mean = torch.where(mean > 0, mean, x.square().mean((1, 2), keepdim=True).sqrt())
        # Learning rates as they are now, and before the cosine.
        feature_lr = schedule.feature_lr * torch.maximum(deviation, 0.1 * mean)
        label_lr = torch.full_like(x[:, :1, :1], schedule.label_lr)
        self._lrs = ((feature_lr.clone(), feature_lr), (label_lr.clone(), label_lr))
        self._x_adam = Adam((x,), self._lrs[0][0])
        self._y_adam = Adam((self.logits,), self._lrs[1][0])
        self._upstream = tuple(torch.zeros_like(p) for p in self.students.params)
        self._recorded: dict[str, Callable[[], None]] = {}
        # What is recorded reads what was recorded before it: all of it, or nothing.
        self._records = x.is_cuda and structure is None

    @cached_property
    def windows(self) -> tuple[Window, Window]:
        """Steps that are differentiated, and the first ones of new students, which are not.

        Their memory is taken when a first step is.
        """
        plan = self.schedule
        adam = InnerAdam(plan.student_lr, plan.student_weight_decay)
        burn_in = Window(self._newcomers, adam, plan.burn_in, keep=False)
        return Window(self.students, adam, plan.window), burn_in

    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that a step changes."""
        return (
            *self._x_adam.buffers,
            *self._y_adam.buffers,
            *self.students.buffers(),
            *self.state,
        )

    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Take a step; returns the mean real loss of every graph's students."""
        for student in self.schedule.replaced_at(iteration):
            self.renew(iteration, student)
        share = self.schedule.lr_share(iteration)
        for lr, full in self._lrs:
            lr.copy_(full * share if lr_scale is None else full * share * lr_scale)
        self._run("window", lambda: self.windows[0].advance(self.small_graph()))
        if self.real is None:
            raise RuntimeError("a step needs a real loss")
        losses, gradients = self.real.losses_and_gradients(self.students, iteration)
        for upstream, gradient in zip(self._upstream, gradients, strict=True):
            upstream.copy_(gradient)
        self._run("update", self._update)
        return losses.nanmean(1)

    def renew(self, iteration: int, student: int) -> None:
        """Replace a student of every graph by a new one after its burn-in."""
        name = f"student {student} of iteration {iteration}"
        generators = [make_generator(seed, name) for seed in self._seeds]
        features, classes = int(self.x.shape[-1]), int(self.logits.shape[-1])
        self._newcomers.begin(init_batch(self._model, features, classes, generators))
        self._run("burn-in", lambda: self.windows[1].advance(self.small_graph()))
        self.students.take(student, self._newcomers)

    def _update(self) -> None:
        g_x, g_logits, adjacency = self.outer_gradients(self._upstream)
        self._x_adam.step((g_x,))
        self._y_adam.step((g_logits,))
        if self._structure is not None and adjacency is not None:
            updated = self._structure.update(self.state, adjacency)
            for kept, new in zip(self.state, updated, strict=True):
                kept.copy_(new)

    def targets(self) -> Tensor:
        """Y' now."""
        return probabilities(self.logits, self._multi_label)

    def small_graph(self) -> SmallGraph:
        """What students train on now."""
        y = self.targets()
        if self._structure is None:
            return SmallGraph(self.x, None, y, self._multi_label)
        with torch.no_grad():
            topology, _ = self._structure.topology(SyntheticFeatures(self.x), self.state)
            p = topology.normalized(torch.eye(self.x.shape[1], device=self.x.device).to(self.x))
            return SmallGraph(p @ self.x, p, y, self._multi_label)

    def adjacency(self) -> Tensor:
        """A' of every graph now."""
        if self._structure is None:
            n = self.x.shape[1]
            eye = torch.eye(n, dtype=self.x.dtype, device=self.x.device)
            return eye.expand(self.x.shape[0], n, n)
        with torch.no_grad():
            return self._structure.topology(SyntheticFeatures(self.x), self.state)[1]

    def outer_gradients(self, upstream: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Gradients of X' and of the logits of Y', and the A' that was used."""
        small = self.small_graph()
        g_u, g_p, g_y = self.windows[0].adjoint(small, upstream, balanced)
        g_logits = logits_gradient(small.y, g_y, self._multi_label)
        if self._structure is None:
            return g_u, g_logits, None
        assert g_p is not None
        points = SyntheticFeatures.of(self.x)
        topology, adjacency = self._structure.topology(points, self.state)
        eye = torch.eye(self.x.shape[1], device=self.x.device).to(self.x)
        p = topology.normalized(eye)
        surrogate = (g_u * (p @ points.x)).sum() + (g_p * p).sum()
        (g_x,) = points.gradients(surrogate)
        return g_x, g_logits, adjacency

    def _run(self, name: str, body: Callable[[], None]) -> None:
        """Eagerly on a CPU; on CUDA recorded once and replayed."""
        if self._records and name not in self._recorded:
            buffers = (*self.buffers(), *self._newcomers.buffers())
            self._recorded[name] = capture(body, buffers)
            self._records = self._recorded[name] is not body
        if self._records:
            self._recorded[name]()
        else:
            body()

    def divergence_message(self, iteration: int) -> str:
        """The error after too many rollbacks."""
        return (
            f"feature_lr: the real loss stopped being finite by iteration {iteration}, also after the"
            f" rates were halved {MOST_ROLLBACKS} times; a lower feature_lr or scaled features are"
            " needed"
        )

    def release(self) -> None:
        """Free what was recorded on a device: it and this object refer to each other."""
        self._recorded.clear()


def balanced(gradients: Tensor) -> Tensor:
    """Weights ``(graphs, S)`` of the students' gradients: no gradient weighs more than the median one.

    The weighted sum is in units of that median. A gradient that is not finite counts nothing.
    """
    norms = gradients.flatten(2).norm(dim=2)
    fine = torch.isfinite(norms) & (norms > 0)
    ranked = torch.where(fine, norms, torch.inf).sort(1).values
    middle = ((fine.sum(1, keepdim=True) - 1) // 2).clamp_min(0)
    median = ranked.gather(1, middle)
    weights = torch.where(fine, torch.minimum(1 / norms, 1 / median), 0.0)
    return weights / float(norms.shape[1])


def label_logits(targets: Tensor, multi_label: bool = False, *, learned: bool = True) -> Tensor:
    """Logits of the targets; if these are learned, smoothed by 0.1, so that gradients do not vanish."""
    if multi_label:
        return torch.logit(0.9 * targets + 0.05 if learned else targets, CERTAIN)
    if not learned:
        return targets.clamp_min(NO_SHARE).log()
    return (0.9 * targets + 0.1 / targets.shape[-1]).log()


# -- The outer loss -----------------------------------------------------------------------------------

# Networks that are the same two layers on a condensed graph without edges.
STUDENT_MODELS = ("gcn", "sgc", "appnp", "mlp")
BATCH_NODES, BATCHES = 2048, 48
# Numbers of all minibatches together, 2 GiB; and nodes of the smallest one, if one alone has more.
MOST_NUMBERS, LEAST_NODES = 2**29, 64

# Real nodes, prepared for every student model, and their targets ``(nodes, C)``.
_Batch = tuple[list[Prepared], Tensor]


class RealLoss:
    r"""The outer loss: that of students on minibatches of real nodes, averaged over student models.

    .. math:: L_\text{real}(\theta) = \frac1{|B|} \sum_{i \in B}
              -\langle T_i, \log\mathrm{softmax}(f_\theta(X, A)_i)\rangle

    with T the true label of a training node and tempered pseudo-labels of any other node. Minibatches
    of at most ``batch_nodes`` nodes are drawn once and used in turns, so that a step does not grow with
    the number of nodes. At most ``batches`` of them are kept, and no more than :data:`MOST_NUMBERS` of
    their features: of a graph with more nodes a random part is used, in memory and on disk alike. Of a
    multi-label graph the loss is binary cross-entropy.

    Args:
        real: the graph that is condensed.
        targets: class shares of the nodes, ``(m, C)``.
        nodes: the nodes that count, by number, in the order of ``targets``.
        models: names from :data:`STUDENT_MODELS`.
        hidden_channels: hidden units of a student.
        multi_label: whether targets are those of every label.
        dtype: precision of the students.
        batch_nodes: nodes of a minibatch at most.
        batches: minibatches at most.
    """

    def __init__(
        self,
        real: RealGraph,
        targets: Tensor,
        nodes: Tensor,
        models: Sequence[str],
        hidden_channels: int,
        *,
        multi_label: bool = False,
        dtype: torch.dtype = torch.float32,
        batch_nodes: int = BATCH_NODES,
        batches: int = BATCHES,
    ) -> None:
        self._multi_label = multi_label
        self._models = tuple(MODELS[name](hidden_channels) for name in models)
        # Rows after some hops, sparse where that is less work. They are freed with this call.
        hops = (0, 1) if "gcn" in models else (0,)
        sparse = {hop: real.sparse_rows(hop) for hop in hops if real.prefers_sparse}
        dense = {hop: real.rows(hop) for hop in hops if not real.prefers_sparse}

        def batch(places: Tensor) -> tuple[_Batch, int]:
            own = nodes[places]
            prepared = [
                prepare_sparse(model, real, own, sparse, dtype)
                if real.prefers_sparse
                else prepare_rows(model, real, own, dense)
                for model in self._models
            ]
            inputs = [one.inputs for one in prepared]
            # Stored numbers of the features.
            stored = [x.numel() if isinstance(x, Tensor) else int(x.matrix.nnz) for x in inputs]
            wanted = targets[places.to(targets.device)].to(real.device, dtype)
            return (prepared, wanted), sum(stored)

        parts = minibatches(nodes, batch_nodes, batches)
        first, numbers = batch(parts[0])
        while numbers > MOST_NUMBERS and batch_nodes > LEAST_NODES:
            batch_nodes //= 2
            parts = minibatches(nodes, batch_nodes, batches)
            first, numbers = batch(parts[0])
        self._batches = [first]
        for places in parts[1:]:
            following, more = batch(places)
            numbers += more
            if numbers > MOST_NUMBERS:
                break
            self._batches.append(following)
        # What is left out beyond the usual number of minibatches.
        self.note = (
            f"the outer loss is computed on {len(self._batches)} minibatches of {batch_nodes} nodes"
            f" instead of {batches} of {BATCH_NODES}: their features are more than"
            f" {MOST_NUMBERS:,} numbers"
            if numbers > MOST_NUMBERS or batch_nodes < min(BATCH_NODES, nodes.numel())
            else None
        )

    def losses_and_gradients(
        self, students: Students, number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Loss of every student, ``(graphs, S)``, and the gradients of their sum, on a minibatch."""
        prepared, targets = self._batches[number % len(self._batches)]
        params = tuple(p.detach().requires_grad_() for p in students.params)
        w1, b1, w2, b2 = params
        count = int(students.age.shape[1])
        apart = (students_apart(w1, count), students_apart(b1, count), w2, b2)
        weights = tuple(p.flatten(0, 1) for p in apart)
        share = 1 / len(self._models)
        losses = sum(
            (
                share * training_loss(model.logits(weights, one), targets, self._multi_label)
                for model, one in zip(self._models, prepared, strict=True)
            ),
            start=w1.new_zeros(()),
        )
        gradients = torch.autograd.grad(losses.sum(), params)
        return losses.detach().view_as(students.age), gradients


def prepare_sparse(
    model: Model,
    real: RealGraph,
    nodes: Tensor,
    rows: Mapping[int, ReadSparse],
    dtype: torch.dtype,
) -> Prepared:
    """What a student model needs to predict some nodes; ``rows`` are sparse, by number of hops."""
    hops = 1 if model.name == "gcn" else 0
    chain: list[Limited] = []
    for _ in range(hops or hops_of(model)):
        chain.append(real.limited(nodes))
        nodes = support_of(chain[-1])
    found = rows[hops](nodes.numpy())
    inputs: Tensor | SparseOperator
    if found.nnz * 10 >= found.shape[0] * found.shape[1]:
        # Propagated features may be dense although the features are not.
        inputs = torch.from_numpy(found.toarray()).to(real.device, dtype)
    else:
        inputs = SparseOperator(sp.csr_array(found), real.device, dtype)
    return Prepared(inputs, outer=tuple(reversed(chain)))


def minibatches(nodes: Tensor, size: int, most: int) -> list[Tensor]:
    """Where the nodes of random parts are, at most ``size`` each; the first ``most`` parts.

    Parts are equal up to one; the nodes of a part are in ascending order.
    """
    parts = -(-nodes.numel() // size)
    order = torch.randperm(nodes.numel(), generator=make_generator(0, "real minibatches"))
    return [part[nodes[part].argsort()] for part in order.tensor_split(parts)[:most]]
