"""How good a condensed graph is for training a GCN, as validation nodes tell."""

from __future__ import annotations

import torch

from gcsr.condense.automatic.plan import Look
from gcsr.condense.condenser import Made
from gcsr.models import SparseTopology, testing_model
from gcsr.training import TrainingRecipe, fit, topology_of
from gcsr.views import Target


class Judge:
    """Trains a few GCNs on a condensed graph and scores them on validation nodes.

    All candidates meet the same networks and the same nodes, so that their differences are smaller
    than the deviation of a single score.
    """

    def __init__(self, validation: Target, num_classes: int, device: torch.device) -> None:
        self._device = device
        self._classes = num_classes
        x = validation.x.to(device)
        topology = SparseTopology(validation.adjacency, device)
        # What is prepared does not depend on how wide a network is.
        self._validate = testing_model("gcn").prepare(x, topology, validation.nodes)
        self._labels = validation.labels.to(device)
        self._features = int(x.shape[1])

    def __call__(self, made: Made, look: Look) -> float:
        """Mean validation accuracy (a share) of networks trained on what was made."""
        model = testing_model("gcn", look.hidden)
        targets = made.y
        if targets.ndim == 1:
            labelled = (targets >= 0)[:, None]
            targets = torch.nn.functional.one_hot(targets.clamp_min(0), self._classes) * labelled
        x, adjacency = (part.to(self._device, torch.float32) for part in (made.x, made.adjacency))
        fitted = fit(
            model,
            model.prepare(x, topology_of(adjacency)),
            targets.to(self._device, torch.float32),
            self._validate,
            self._labels,
            features=self._features,
            recipe=TrainingRecipe(epochs=look.epochs, validate_every=max(1, look.epochs // 20)),
            networks=look.networks,
            seed=0,
        )
        return float(fitted.validation.mean())
