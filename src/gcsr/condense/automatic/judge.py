"""How good a condensed graph is for training a GCN, as validation nodes tell."""

from __future__ import annotations

import torch

from gcsr.condense.automatic.rounds import Look
from gcsr.condense.condenser import Made
from gcsr.condense.select import QuickScore
from gcsr.training import TrainingRecipe
from gcsr.views import Target


class Judge:
    """Trains a few GCNs on what was made and scores them on validation nodes.

    All candidates meet the same networks and the same nodes, so that their differences are smaller
    than the deviation of a single score.
    """

    def __init__(self, validation: Target, num_classes: int, device: torch.device) -> None:
        self._quick = QuickScore(validation, device)
        self._classes, self._device = num_classes, device

    def __call__(self, made: Made, look: Look) -> float:
        """Mean validation accuracy (a share) of networks trained on what was made."""
        targets = made.y
        if targets.ndim == 1:
            labelled = (targets >= 0)[:, None]
            targets = torch.nn.functional.one_hot(targets.clamp_min(0), self._classes) * labelled
        x, a, targets = (part.to(self._device) for part in (made.x, made.adjacency, targets))
        recipe = TrainingRecipe(
            epochs=look.epochs, validate_every=max(1, look.epochs // look.validations)
        )
        return self._quick.score(x, a, targets, look.networks, 0, hidden=look.hidden, recipe=recipe)
