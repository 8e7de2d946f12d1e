"""Pseudo-labels: predictions of trained networks for every visible node.

Networks are trained on training labels and kept as they were when they validated best; test labels
are not available here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, ViewCache, VisibleGraph, known_nodes, validation_part
from gcsr.models.registry import MODELS
from gcsr.outofcore.real import real_graph
from gcsr.starts.consistent import consistent_prediction
from gcsr.training.classification import probabilities, score_of, targets_of
from gcsr.training.fit import TrainingRecipe, fit_on_real
from gcsr.utils.errors import require
from gcsr.utils.progress import Progress, silent

Labeler = Literal["consistent", "gcn", "appnp"]
LABELERS: tuple[str, ...] = ("consistent", "gcn", "appnp")
# ``auto`` is the one of these that validates better; the first of equals.
COMPARED = ("consistent", "gcn")
NETWORKS, HIDDEN = 5, 64
RECIPE = TrainingRecipe(epochs=200, dropout=0.5, validate_every=2)
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
    learn from unlabeled nodes too (:mod:`gcsr.starts.consistent`). ``auto`` is ``consistent`` or
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
    return COMPARED[1:] if visible.multi_label or visible.is_large else COMPARED


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
    model, real = MODELS[name](HIDDEN), real_graph(view.visible, device)
    fitted = fit_on_real(
        model,
        real,
        view,
        recipe=RECIPE,
        networks=range(NETWORKS),
        seed=seed,
        on_epoch=lambda epoch: progress(f"training {name} pseudo-labelers", epoch, RECIPE.epochs),
    )[0]
    total = torch.zeros(())
    for i, scores in enumerate(real.scores(model, fitted.params, nodes)):
        predicted = probabilities(scores, view.visible.multi_label)
        total = predicted if i == 0 else total + predicted
    return total / NETWORKS
