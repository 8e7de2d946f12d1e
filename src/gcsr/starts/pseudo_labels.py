"""Pseudo-labels: predictions of trained networks for every visible node.

Networks are trained on training labels and kept as they were when they validated best; test labels
are not available here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.features import SparseRows, column_variance
from gcsr.data.views import (
    CondensingView,
    ViewCache,
    VisibleGraph,
    known_nodes,
    most_rows,
    sampled,
    trained_places,
    validation_part,
)
from gcsr.models.base import Dropout, Params, Prepared, init_batch
from gcsr.models.mlp import MLP
from gcsr.models.registry import MODELS
from gcsr.outofcore.real import real_graph
from gcsr.starts.sample import taken
from gcsr.training.classification import cross_entropy, probabilities, score_of, targets_of
from gcsr.training.fit import TrainingRecipe, fit_on_real, logits_of, scores_of, train_batch
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require
from gcsr.utils.progress import Progress, silent

Labeler = Literal["consistent", "gcn", "appnp"]
LABELERS: tuple[str, ...] = ("consistent", "gcn", "appnp")
# ``auto`` is the one of these that validates better; the first of equals.
AUTO_LABELERS = ("consistent", "gcn")
# The labelers gcn and appnp.
SUPERVISED_NETWORKS, SUPERVISED_HIDDEN = 5, 64
SUPERVISED_RECIPE = TrainingRecipe(epochs=200, dropout=0.5, validate_every=2)
# Temperatures that predictions may be brought to: from five times as sure to five times less.
COLDEST, HOTTEST, TEMPERATURES = 0.2, 5.0, 65


@dataclass(frozen=True, eq=False)
class LabelShares:
    """Class shares ``(m, C)`` of some visible nodes, and how they were made.

    Args:
        nodes: by number; of a graph of moderate size all of them.
        shares: one-hot for training nodes, predicted for the others.
        temperature: of the predictions; ``None`` without temperature scaling.
        labeler: name of the pseudo-labeler; ``None`` where every label is known.
        validation: validation accuracy (a share) of every labeler that was compared.
    """

    nodes: Tensor
    shares: Tensor
    temperature: float | None = None
    labeler: str | None = None
    validation: dict[str, float] = field(default_factory=dict)

    @property
    def provenance(self) -> dict[str, Any] | None:
        """The provenance of the pseudo-labels; ``None`` where every label is known."""
        if self.labeler is None:
            return None
        compared = {"validation": self.validation} if len(self.validation) > 1 else {}
        return {"labeler": self.labeler, "temperature": self.temperature, **compared}


def class_shares(
    view: CondensingView,
    labeler: str,
    *,
    seed: int,
    device: torch.device,
    tempered: bool = True,
    everyone: bool = False,
    progress: Progress = silent,
) -> LabelShares:
    """Shares of visible nodes: one-hot for training nodes, else a mean prediction.

    Of a graph with many nodes (:mod:`gcsr.data.views`) they are those of a random part,
    unless ``everyone`` is asked for, and ``auto`` is ``gcn``.

    ``gcn`` and ``appnp`` are five networks each, trained on the training labels. ``consistent`` ones
    learn from unlabeled nodes too (:func:`consistent_prediction`). ``auto`` is ``consistent`` or
    ``gcn``, whichever has the higher validation accuracy. ``tempered``: predictions get
    the temperature under which validation labels are most likely; the predicted classes do not change.
    Of a multi-label graph shares are probabilities of every label, not tempered.
    """
    visible = view.visible
    require(
        labeler != "consistent" or not visible.multi_label,
        "pseudo_labels must be gcn or appnp for a multi-label graph, got 'consistent'.",
    )
    if bool((visible.labels >= 0).all()):
        # An inductive graph: every visible node is labeled.
        nodes = known_nodes(visible, visible.train)
        targets = targets_of(visible.labels[nodes], visible.num_classes)
        return LabelShares(nodes, targets.to(device))
    if labeler == "auto":
        options: dict[str, Any] = {"seed": seed, "device": device, "tempered": tempered}
        options["everyone"] = everyone
        names = compared(visible)
        return best_labels([class_shares(view, n, **options, progress=progress) for n in names])
    key = (labeler, seed, str(device), tempered, everyone)
    return _PREDICTIONS.get(
        visible,
        view.validation,
        key,
        lambda: train_labeler(view, labeler, seed, device, tempered, everyone, progress),
    )


def compared(visible: VisibleGraph) -> tuple[str, ...]:
    """The labelers of which ``auto`` is the best."""
    return AUTO_LABELERS[1:] if visible.multi_label or visible.is_large else AUTO_LABELERS


def best_labels(found: Sequence[LabelShares]) -> LabelShares:
    """The shares of the labeler that validates best; the first of equals."""
    validation = {name: score for one in found for name, score in one.validation.items()}
    best = max(found, key=lambda one: max(one.validation.values(), default=0.0))
    return replace(best, validation=validation)


# The automatic mode asks for the same predictions many times.
_PREDICTIONS: ViewCache[LabelShares] = ViewCache()


def train_labeler(
    view: CondensingView,
    labeler: str,
    seed: int,
    device: torch.device,
    tempered: bool,
    everyone: bool,
    progress: Progress,
) -> LabelShares:
    """What :func:`class_shares` returns for one labeler, trained anew."""
    visible = view.visible
    view = replace(view, validation=validation_part(view.validation))
    nodes = torch.arange(visible.num_nodes)
    wanted = None
    checked = view.validation.nodes
    if visible.is_large and not everyone:
        nodes = known_nodes(visible, nodes)
        wanted = torch.cat([nodes, checked])
        checked = torch.arange(nodes.numel(), wanted.numel())
    predict = (
        consistent_prediction if labeler == "consistent" else partial(network_prediction, labeler)
    )
    predicted = predict(view, seed=seed, device=device, nodes=wanted, progress=progress)
    temperature, validation = None, {}
    # Validation nodes of an inductive graph are not among the predicted ones.
    if view.validation.adjacency is visible.adjacency:
        held_out, labels = predicted[checked.to(device)], view.validation.labels.to(device)
        certain = held_out > 0.5 if visible.multi_label else held_out.argmax(1)
        validation[labeler] = float(score_of(certain, labels))
        if tempered and not visible.multi_label:
            temperature = best_temperature(held_out, labels)
            predicted = at_temperature(predicted, temperature)
    predicted = predicted[: nodes.numel()]
    labels = visible.labels[nodes]
    known = (labels if labels.ndim == 1 else labels[:, 0]) >= 0
    predicted[known.to(device)] = targets_of(labels[known], visible.num_classes).to(predicted)
    return LabelShares(nodes, predicted, temperature, labeler, validation)


def at_temperature(shares: Tensor, temperature: float) -> Tensor:
    """Shares to the power of 1 / temperature, summing to one; above 1 they are closer to uniform."""
    return (shares.clamp_min(1e-12).log() / temperature).softmax(-1)


def best_temperature(shares: Tensor, labels: Tensor) -> float:
    """The temperature that makes the labels likeliest."""
    found = torch.logspace(
        torch.tensor(COLDEST).log10().item(), torch.tensor(HOTTEST).log10().item(), TEMPERATURES
    ).tolist()
    logs = shares.double().clamp_min(1e-12).log()
    rows = torch.arange(labels.numel(), device=labels.device)
    losses = [
        float(-(logs / temperature).log_softmax(-1)[rows, labels].mean()) for temperature in found
    ]
    return float(found[min(range(len(found)), key=losses.__getitem__)])


def network_prediction(
    name: str,
    view: CondensingView,
    *,
    seed: int,
    device: torch.device,
    nodes: Tensor | None,
    progress: Progress,
) -> Tensor:
    """The mean prediction of networks trained on training labels, for some nodes or for all."""
    model, real = MODELS[name](SUPERVISED_HIDDEN), real_graph(view.visible, device)
    fitted = fit_on_real(
        model,
        real,
        view,
        recipe=SUPERVISED_RECIPE,
        networks=range(SUPERVISED_NETWORKS),
        seed=seed,
        on_epoch=lambda epoch: progress(
            f"training {name} pseudo-labelers", epoch, SUPERVISED_RECIPE.epochs
        ),
    )[0]
    total = torch.zeros(())
    for i, scores in enumerate(real.scores(model, fitted.params, nodes)):
        predicted = probabilities(scores, view.visible.multi_label)
        total = predicted if i == 0 else total + predicted
    return total / SUPERVISED_NETWORKS


# -- The labeler "consistent" ------------------------------------------------------------------------

# It learns from nodes without a label too, in the manner of GRAND (Feng et al., 2020). Features are
# the mean of A^0 X, ..., A^K X (A normalized) of which whole rows of X were dropped; a perceptron on
# them learns the training labels and, on nodes without one, to predict the same whichever rows are
# missing. GRAND drops rows and entries of X anew in every epoch. Here rows are dropped a few times and
# each epoch takes two of those draws: propagation is then computed once, and an epoch is a product of a
# few rows. Instead of entries whole columns are dropped, which commutes with propagation and can be
# done anew in every epoch, for every draw and network.

CONSISTENT_NETWORKS, CONSISTENT_HIDDEN = 3, 64
CONSISTENT_RECIPE = TrainingRecipe(epochs=200, dropout=0.5, validate_every=2)
HOPS = 8
# How often rows are dropped, how many of those draws an epoch compares, and which share of rows it is.
DRAWS, COMPARED_DRAWS, DROPPED = 8, 2, 0.5
# Which share of columns is dropped. Without it Cora loses a point, PubMed half a point.
DROPPED_COLUMNS = 0.5
# The mean prediction that every draw is drawn to is this much sharper: p to the power of 1 / 0.5.
SHARPENING = 0.5
# Nodes of an epoch, and those without a label that are ever read.
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
    model = MLP(CONSISTENT_HIDDEN)
    weights = [
        make_generator(seed, f"weights of consistent {i}") for i in range(CONSISTENT_NETWORKS)
    ]
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
        CONSISTENT_RECIPE,
        partial(material.loss, model),
        lambda params: scores_of(model, params, validated, labels, at_once=CONSISTENT_NETWORKS),
        lambda epoch: progress("training pseudo-labelers", epoch, CONSISTENT_RECIPE.epochs),
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
        dropout: float = CONSISTENT_RECIPE.dropout,
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
        drawn = torch.randperm(len(self.draws), generator=self.generator)[:COMPARED_DRAWS].tolist()
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

    Of a graph of many nodes, variances are those of a random part of them.
    """
    features = int(visible.x.shape[1])
    if count >= features:
        return torch.arange(features)
    nodes = sampled(torch.arange(visible.num_nodes), most_rows(features), "varied columns")
    rows = taken(visible.features, nodes, torch.device("cpu"))
    variance = column_variance(rows.x if isinstance(rows, SparseRows) else rows)
    return variance.argsort(descending=True, stable=True)[:count].sort().values
