"""What trained networks say of every visible node, for starts that look beyond training nodes.

Networks are trained on training labels and kept as they were when they validated best; test labels
are unreachable here.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcsr.models import Model, Params, Prepared, SparseTopology, testing_model
from gcsr.progress import Progress, silent
from gcsr.training import TrainingRecipe, fit
from gcsr.views import CondensingView, VisibleGraph

Teacher = Literal["gcn", "appnp", "self-trained"]
TEACHERS: tuple[str, ...] = ("gcn", "appnp", "self-trained")
NETWORKS, HIDDEN = 5, 64
RECIPE = TrainingRecipe(epochs=200, dropout=0.5, validate_every=2)


def class_shares(
    view: CondensingView,
    teacher: str,
    *,
    seed: int,
    device: torch.device,
    progress: Progress = silent,
) -> Tensor:
    """Class shares ``(n, C)`` of the visible nodes: one-hot for training nodes, else a mean prediction.

    ``gcn`` and ``appnp`` are five networks each, trained on the training labels. ``self-trained`` are
    five GCNs trained on what the ``gcn`` ones say of every visible node.
    """
    visible = view.visible
    if bool((visible.labels >= 0).all()):
        # An inductive graph: there is nobody left to ask about.
        given = torch.nn.functional.one_hot(visible.labels, visible.num_classes)
        return given.to(device, torch.float32)
    with _LOCK:
        known = _KNOWN.setdefault(visible, {})
    key = (teacher, seed, str(device))
    if key not in known:
        room = _Classroom(view, device, seed)
        if teacher == "self-trained":
            believed = class_shares(view, "gcn", seed=seed, device=device, progress=progress)
            everyone = torch.arange(visible.num_nodes)
            known[key] = room.shares("gcn", everyone, believed, teacher, progress)
        else:
            known[key] = room.shares(teacher, visible.train, room.given, teacher, progress)
    return known[key]


# Predictions of graphs that are still in use: a race asks for the same ones many times.
_KNOWN: WeakKeyDictionary[VisibleGraph, dict[tuple[str, int, str], Tensor]] = WeakKeyDictionary()
_LOCK = threading.Lock()


@dataclass(frozen=True, eq=False)
class _Classroom:
    view: CondensingView
    device: torch.device
    seed: int

    @property
    def given(self) -> Tensor:
        """The training labels, one-hot."""
        visible = self.view.visible
        given = torch.nn.functional.one_hot(visible.train_labels, visible.num_classes)
        return given.to(self.device, torch.float32)

    def shares(
        self, name: str, nodes: Tensor, targets: Tensor, title: str, progress: Progress
    ) -> Tensor:
        """What networks trained on ``targets`` of ``nodes`` say of everyone, training labels kept."""
        visible, validation = self.view.visible, self.view.validation
        model = testing_model(name, HIDDEN)
        topology = SparseTopology(visible.adjacency, self.device)
        x = visible.x.to(self.device)
        elsewhere = validation.adjacency is not visible.adjacency
        judged = SparseTopology(validation.adjacency, self.device) if elsewhere else topology
        fitted = fit(
            model,
            model.prepare(x, topology, nodes),
            targets,
            model.prepare(validation.x.to(self.device), judged, validation.nodes),
            validation.labels.to(self.device),
            features=int(x.shape[1]),
            recipe=RECIPE,
            networks=range(NETWORKS),
            seed=self.seed,
            on_epoch=lambda epoch: progress(f"training {title} teachers", epoch, RECIPE.epochs),
        )
        found = _mean_prediction(model, fitted.params, model.prepare(x, topology))
        found[visible.train.to(self.device)] = self.given
        return found


def _mean_prediction(model: Model, params: Params, prepared: Prepared) -> Tensor:
    total = torch.zeros(())
    with torch.no_grad():
        for i in range(NETWORKS):
            one = tuple(p[i : i + 1] for p in params)
            said = model.logits(one, prepared)[0].softmax(-1)
            total = said if i == 0 else total + said
    return total / NETWORKS
