"""Which iterate is returned: the last, or the one that validates best."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gcsr.models import SparseTopology, testing_model
from gcsr.training import TrainingRecipe, fit, topology_of
from gcsr.views import Target

QUICK = TrainingRecipe(epochs=200, validate_every=10)
QUICK_RUNS = 2


class BestValidated:
    """Keeps, for every graph, the iterate on which a quickly trained GCN validates best.

    Only validation labels are read. An iterate must be strictly better to replace an earlier one.
    """

    def __init__(self, targets: Tensor, validation: Target, device: torch.device) -> None:
        self.targets = targets
        self.model = testing_model("gcn")
        topology = SparseTopology(validation.adjacency, device)
        x = validation.x.to(device)
        self.validate = self.model.prepare(x, topology, validation.nodes)
        self.labels = validation.labels.to(device)
        self.features = int(x.shape[1])
        self.x: Tensor | None = None
        self.a: Tensor | None = None
        self.scores: list[tuple[int, list[float]]] = []
        self._best = torch.full((targets.shape[0],), -1.0, dtype=torch.float64)

    def __call__(self, iteration: int, x: Tensor, a: Tensor) -> None:
        """Score every graph of an iterate, X' and A', and keep those that improved."""
        x, a = x.detach().clone(), a.detach().clone()
        found = [self._score(x[g], a[g], self.targets[g]) for g in range(x.shape[0])]
        scores = torch.tensor(found, dtype=torch.float64)
        better = scores > self._best
        self.scores.append((iteration, scores.tolist()))
        if self.x is None or self.a is None:
            self.x, self.a = x, a
        else:
            chosen = better.to(x.device).view(-1, 1, 1)
            self.x, self.a = torch.where(chosen, x, self.x), torch.where(chosen, a, self.a)
        self._best = torch.where(better, scores, self._best)

    def _score(self, x: Tensor, a: Tensor, targets: Tensor) -> float:
        # As in evaluation, networks are float32 whatever the iterate is.
        fitted = fit(
            self.model,
            self.model.prepare(x.float(), topology_of(a.float())),
            targets.float(),
            self.validate,
            self.labels,
            features=self.features,
            recipe=QUICK,
            networks=range(QUICK_RUNS),
            seed=0,
        )
        return float(fitted.validation.mean())

    def curve(self, graph: int) -> dict[str, Any]:
        """Validation accuracy of one graph over the iterations, for its provenance."""
        return {
            "iterations": [iteration for iteration, _ in self.scores],
            "values": [scores[graph] for _, scores in self.scores],
        }
