"""How good a condensed graph is for training a GCN, as validation nodes tell, and a teacher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gcsr.condense.automatic.opinion import Opinion
from gcsr.condense.automatic.rounds import Look
from gcsr.condense.condenser import Made
from gcsr.condense.select import QuickScore
from gcsr.models import testing_model
from gcsr.training import TrainingRecipe, accuracy
from gcsr.views import Target


@dataclass(frozen=True)
class Mark:
    """What a round found out about a candidate, as shares.

    Args:
        validation: mean accuracy of its networks on validation nodes.
        agreement: how often they agree with a teacher on nodes without a label; ``None``: not asked.
        weight: what agreement counts, beside validation.
    """

    validation: float
    agreement: float | None = None
    weight: float = 0.0

    @property
    def merit(self) -> float:
        """What candidates are compared by."""
        return self.validation + self.weight * (self.agreement or 0.0)


class Judge:
    """Trains a few GCNs on what was made and looks at what they say of nodes.

    All candidates meet the same networks and the same nodes, so that their differences are smaller
    than the deviation of a single score. ``opinion`` is asked for at the first look that wants one.
    """

    def __init__(
        self,
        validation: Target,
        num_classes: int,
        device: torch.device,
        opinion: Callable[[], Opinion | None] = lambda: None,
    ) -> None:
        self._quick = QuickScore(validation, device)
        self._classes, self._device = num_classes, device
        self._opinion = opinion

    def __call__(self, made: Made, look: Look) -> Mark:
        """What networks trained on what was made know."""
        targets = made.y
        if targets.ndim == 1:
            labelled = (targets >= 0)[:, None]
            targets = torch.nn.functional.one_hot(targets.clamp_min(0), self._classes) * labelled
        x, a, targets = (part.to(self._device) for part in (made.x, made.adjacency, targets))
        recipe = TrainingRecipe(
            epochs=look.epochs, validate_every=max(1, look.epochs // look.validations)
        )
        model = testing_model("gcn", look.hidden)
        fitted = self._quick.fitted(model, x, a, targets, look.networks, 0, recipe)
        validation = float(fitted.validation.mean())
        opinion = self._opinion() if look.asks else None
        if opinion is None:
            return Mark(validation)
        agreed = accuracy(model, fitted.params, opinion.prepared, opinion.classes, at_once=1)
        return Mark(validation, float(agreed.mean()), opinion.weight)
