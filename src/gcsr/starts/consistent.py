r"""A pseudo-labeler that learns from unlabeled nodes too, in the manner of GRAND (Feng et al., 2020).

Features are the mean of :math:`\hat A^0 X, \dots, \hat A^K X` of which whole rows of X were dropped; a
perceptron on them learns the training labels and, on nodes without one, to say the same whichever rows
are missing. GRAND drops rows and entries of X anew in every epoch. Here rows are dropped a few times
and each epoch takes two of those draws: propagation is then paid for once, and an epoch is a product of
a few rows. Instead of entries whole columns are dropped, which commutes with propagation and can be
done anew in every epoch, for every draw and network.
"""

from __future__ import annotations

from functools import partial

import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.features import column_variance, dense, take_columns
from gcsr.data.views import CondensingView
from gcsr.equations.trajectory import cross_entropy
from gcsr.models.base import Dropout, Params, Prepared, init_batch
from gcsr.models.mlp import MLP
from gcsr.models.sparse import SparseTopology
from gcsr.models.topology import Operator
from gcsr.training.fit import Run, TrainingRecipe, scores_of
from gcsr.utils.devices import make_generator
from gcsr.utils.progress import Progress, silent

NETWORKS, HIDDEN = 3, 64
RECIPE = TrainingRecipe(epochs=200, dropout=0.5, validate_every=2)
HOPS = 8
# How often rows are dropped, how many of those draws an epoch compares, and which share of rows it is.
DRAWS, COMPARED, DROPPED = 8, 2, 0.5
# Which share of columns is dropped. Without it Cora loses a point, PubMed half a point.
DROPPED_COLUMNS = 0.5
# The mean prediction that every draw is drawn to is this much sharper: p to the power of 1 / 0.5.
SHARPENING = 0.5
# Nodes of an epoch, and those without a label that are ever looked at.
LABELED, UNLABELED, POOL = 512, 512, 4096
# Of wide features those that vary most are read. A projection would be narrower, but networks learn
# words better than mixtures of words: on Citeseer it validated three points worse.
WIDEST, NUMBERS, NARROWEST = 2048, 2**24, 256


def columns_read(nodes: int, features: int) -> int:
    """How many features are read of a graph of that size."""
    return min(features, WIDEST, max(NARROWEST, NUMBERS // max(1, nodes)))


def consistent_prediction(
    view: CondensingView, *, seed: int, device: torch.device, progress: Progress = silent
) -> Tensor:
    """Mean class probabilities ``(n, C)`` of every visible node; some must be without a label."""
    material = _Material(view, seed, device)
    visible, validation = view.visible, view.validation
    model = MLP(HIDDEN)
    weights = [make_generator(seed, f"weights of consistent {i}") for i in range(NETWORKS)]
    initial = init_batch(model, material.columns.numel(), visible.num_classes, weights)
    validated = Prepared(material.seen(validation.x, validation.adjacency, validation.nodes))
    labels = validation.labels.to(device)
    run = Run(
        tuple(p.to(device).requires_grad_() for p in initial),
        RECIPE,
        partial(material.loss, model),
        lambda params: scores_of(model, params, validated, labels, at_once=NETWORKS),
    )
    for epoch in range(1, RECIPE.epochs + 1):
        run.step()
        if epoch % RECIPE.validate_every == 0 or epoch == RECIPE.epochs:
            run.validate()
        progress("training pseudo-labelers", epoch, RECIPE.epochs)
    everyone = Prepared(material.undropped)
    with torch.no_grad():
        predicted = [
            model.logits(tuple(p[i : i + 1] for p in run.best), everyone)[0].softmax(-1)
            for i in range(NETWORKS)
        ]
    return torch.stack(predicted).mean(0)


def smoothed(operator: Operator, x: Tensor) -> Tensor:
    r"""The mean of :math:`\hat A^0 X, \dots, \hat A^K X`."""
    total = x.clone()
    for _ in range(HOPS):
        x = operator(x)
        total += x
    return total / (HOPS + 1)


class _Material:
    """What there is to learn from: features with rows dropped, and the nodes they are looked at for."""

    def __init__(self, view: CondensingView, seed: int, device: torch.device) -> None:
        self.visible, self.device = view.visible, device
        self.generator = make_generator(seed, "consistent teachers")
        random = torch.Generator(device).manual_seed(
            make_generator(seed, "dropout of consistent teachers").initial_seed()
        )
        self.units, self.words = Dropout(RECIPE.dropout, random), Dropout(DROPPED_COLUMNS, random)
        self.columns = most_varied_columns(
            self.visible.x, columns_read(self.visible.num_nodes, int(self.visible.x.shape[1]))
        )
        self._operator = SparseTopology(self.visible.adjacency, device).normalized
        self._x = dense(take_columns(self.visible.x, self.columns)).to(device)
        self.undropped = smoothed(self._operator, self._x)
        unlabeled = (self.visible.labels < 0).nonzero().flatten()
        pooled = torch.randperm(unlabeled.numel(), generator=self.generator)[:POOL]
        self._rows = torch.cat([self.visible.train, unlabeled[pooled]]).to(device)
        self._pooled = pooled.numel()
        targets = torch.nn.functional.one_hot(self.visible.train_labels, self.visible.num_classes)
        self.targets = targets.to(device, torch.float32)
        self._draws = []
        for _ in range(DRAWS):
            kept = torch.rand((self._x.shape[0], 1), generator=self.generator) >= DROPPED
            dropped = self._x * (kept.to(self._x) / (1 - DROPPED))
            self._draws.append(smoothed(self._operator, dropped)[self._rows])

    def seen(self, x: Tensor, adjacency: sp.csr_array, nodes: Tensor) -> Tensor:
        """Smoothed features of nodes of the visible graph, or of another one."""
        if adjacency is self.visible.adjacency:
            return self.undropped[nodes.to(self.device)]
        operator = SparseTopology(adjacency, self.device).normalized
        columns = dense(take_columns(x, self.columns)).to(self.device)
        return smoothed(operator, columns)[nodes.to(self.device)]

    def minibatch(self) -> tuple[list[Tensor], Tensor]:
        """Rows of the compared draws, labeled nodes first in each, and the targets of these."""
        drawn = torch.randperm(DRAWS, generator=self.generator)[:COMPARED].tolist()
        known = self.visible.train.numel()
        labeled = torch.randperm(known, generator=self.generator)[:LABELED]
        size = (min(UNLABELED, self._pooled),)
        unlabeled = known + torch.randint(self._pooled, size, generator=self.generator)
        rows = torch.cat([labeled, unlabeled]).to(self.device)
        inputs = [self._draws[draw][rows] for draw in drawn]
        return inputs, self.targets[labeled.to(self.device)]

    def logits(self, model: MLP, params: Params, rows: Tensor) -> Tensor:
        """Scores of some rows. Each call and each network lacks columns and hidden units of its own."""
        first, *others = params
        # A column that is not there is a row of the first weights that is not there.
        left = first * self.words(torch.ones_like(first[..., :1]))
        return model.logits((left, *others), Prepared(rows), self.units)

    def loss(self, model: MLP, params: Params) -> Tensor:
        """The sum over networks of two terms.

        Cross-entropy of labeled nodes, and the distance of every draw from a sharper mean of them.
        """
        inputs, targets = self.minibatch()
        logits = torch.stack([self.logits(model, params, draw) for draw in inputs], 1)
        labeled = targets.shape[0]
        known, unknown = logits.split([labeled, logits.shape[2] - labeled], dim=2)
        supervised = cross_entropy(known, targets).mean(1)
        predicted = unknown.softmax(-1)
        with torch.no_grad():
            sharp = predicted.mean(1, keepdim=True).pow(1 / SHARPENING)
            sharp /= sharp.sum(-1, keepdim=True)
        disagreement = (predicted - sharp).square().sum(-1).mean((1, 2))
        total: Tensor = (supervised + disagreement).sum()
        return total


def most_varied_columns(x: Tensor, count: int) -> Tensor:
    """The ``count`` columns with the largest variance, in their own order."""
    if count >= x.shape[1]:
        return torch.arange(x.shape[1])
    order = column_variance(x).argsort(descending=True, stable=True)
    return order[:count].sort().values
