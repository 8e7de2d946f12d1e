r"""A pseudo-labeler that learns from unlabeled nodes too, in the manner of GRAND (Feng et al., 2020).

Features are the mean of :math:`\hat A^0 X, \dots, \hat A^K X` of which whole rows of X were dropped; a
perceptron on them learns the training labels and, on nodes without one, to predict the same whichever
rows are missing. GRAND drops rows and entries of X anew in every epoch. Here rows are dropped a few
times and each epoch takes two of those draws: propagation is then computed once, and an epoch is a
product of a few rows. Instead of entries whole columns are dropped, which commutes with propagation and
can be done anew in every epoch, for every draw and network.
"""

from __future__ import annotations

from functools import cached_property, partial

import torch
from torch import Tensor

from gcsr.data.features import SparseRows, column_variance
from gcsr.data.views import CondensingView, VisibleGraph, most_rows, sampled, trained_places
from gcsr.models.base import Dropout, Params, Prepared, init_batch
from gcsr.models.mlp import MLP
from gcsr.outofcore.real import real_graph
from gcsr.starts.sample import taken
from gcsr.training.classification import cross_entropy
from gcsr.training.fit import TrainingRecipe, logits_of, scores_of, train_batch
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
    view: CondensingView,
    *,
    seed: int,
    device: torch.device,
    nodes: Tensor | None = None,
    progress: Progress = silent,
) -> Tensor:
    """Mean class probabilities of some visible nodes, or of all; some must be without a label."""
    material = LabelerInputs(view, seed, device)
    visible, validation = view.visible, view.validation
    model = MLP(HIDDEN)
    weights = [make_generator(seed, f"weights of consistent {i}") for i in range(NETWORKS)]
    initial = init_batch(model, material.columns.numel(), visible.num_classes, weights)
    if validation.adjacency is not visible.adjacency:
        held_out = real_graph(validation, device)
        rows = held_out.smoothed(material.columns, HOPS, validation.nodes)
    elif visible.is_large:
        rows = material.smoothed(validation.nodes)
    else:
        rows = material.undropped[validation.nodes.to(device)]
    validated = Prepared(rows)
    labels = validation.labels.to(device)
    trained = train_batch(
        tuple(p.to(device).requires_grad_() for p in initial),
        RECIPE,
        partial(material.loss, model),
        lambda params: scores_of(model, params, validated, labels, at_once=NETWORKS),
        lambda epoch: progress("training pseudo-labelers", epoch, RECIPE.epochs),
        restart=False,
    )
    everyone = Prepared(material.undropped if nodes is None else material.smoothed(nodes))
    predicted = [
        one[0].softmax(-1) for one in logits_of(model, trained.params, everyone, at_once=1)
    ]
    return torch.stack(predicted).mean(0)


class LabelerInputs:
    """Training data: the nodes of the epochs, and their features for several draws of dropped rows."""

    def __init__(
        self,
        view: CondensingView,
        seed: int,
        device: torch.device,
        *,
        draws: int = DRAWS,
        dropout: float = RECIPE.dropout,
    ) -> None:
        self.visible, self.device = view.visible, device
        self.generator = make_generator(seed, "consistent teachers")
        random = torch.Generator(device).manual_seed(
            make_generator(seed, "dropout of consistent teachers").initial_seed()
        )
        self.units, self.words = Dropout(dropout, random), Dropout(DROPPED_COLUMNS, random)
        nodes, features = self.visible.num_nodes, int(self.visible.x.shape[1])
        self.columns = varied_columns_of(self.visible, columns_read(nodes, features))
        # Smoothed features of some nodes, or of all; rows may have weights.
        self.smoothed = partial(real_graph(self.visible, device).smoothed, self.columns, HOPS)
        unlabeled = (self.visible.labels < 0).nonzero().flatten()
        pooled = torch.randperm(unlabeled.numel(), generator=self.generator)[:POOL]
        train = self.visible.train[trained_places(self.visible)]
        self.rows = torch.cat([train, unlabeled[pooled]]).to(device)
        self._pooled = pooled.numel()
        labels = self.visible.labels[train]
        targets = torch.nn.functional.one_hot(labels, self.visible.num_classes)
        self.targets = targets.to(device, torch.float32)
        self.draws = []
        for _ in range(draws):
            kept = torch.rand((nodes, 1), generator=self.generator) >= DROPPED
            self.draws.append(self.smoothed(self.rows, kept.float() / (1 - DROPPED)))

    @cached_property
    def undropped(self) -> Tensor:
        """Smoothed features of every node."""
        return self.smoothed(None)

    def logits(self, model: MLP, params: Params, rows: Tensor) -> Tensor:
        """Scores of some rows. Each call and each network drops its own columns and hidden units."""
        first, *others = params
        # A column that is not there is a row of the first weights that is not there.
        left = first * self.words(torch.ones_like(first[..., :1]))
        return model.logits((left, *others), Prepared(rows), self.units)

    def loss(self, model: MLP, params: Params) -> Tensor:
        """The sum over networks of two terms.

        Cross-entropy of labeled nodes, and the distance of every draw from a sharper mean of them.
        """
        # A minibatch: rows of the compared draws, labeled nodes first in each.
        drawn = torch.randperm(len(self.draws), generator=self.generator)[:COMPARED].tolist()
        count = self.targets.shape[0]
        labeled = torch.randperm(count, generator=self.generator)[:LABELED]
        size = (min(UNLABELED, self._pooled),)
        unlabeled = count + torch.randint(self._pooled, size, generator=self.generator)
        rows = torch.cat([labeled, unlabeled]).to(self.device)
        logits = torch.stack(
            [self.logits(model, params, self.draws[draw][rows]) for draw in drawn], 1
        )
        known, unknown = logits.split([labeled.numel(), unlabeled.numel()], dim=2)
        targets = self.targets[labeled.to(self.device)]
        supervised = cross_entropy(known, targets).mean(1)
        predicted = unknown.softmax(-1)
        with torch.no_grad():
            sharp = predicted.mean(1, keepdim=True).pow(1 / SHARPENING)
            sharp /= sharp.sum(-1, keepdim=True)
        disagreement = (predicted - sharp).square().sum(-1).mean((1, 2))
        total: Tensor = (supervised + disagreement).sum()
        return total


def varied_columns_of(visible: VisibleGraph, count: int) -> Tensor:
    """The ``count`` columns with the largest variance, in their own order.

    Of a graph of many nodes, as a random part of them tells.
    """
    features = int(visible.x.shape[1])
    if count >= features:
        return torch.arange(features)
    nodes = sampled(torch.arange(visible.num_nodes), most_rows(features), "varied columns")
    rows = taken(visible.features, nodes, torch.device("cpu"))
    variance = column_variance(rows.x if isinstance(rows, SparseRows) else rows)
    return variance.argsort(descending=True, stable=True)[:count].sort().values
