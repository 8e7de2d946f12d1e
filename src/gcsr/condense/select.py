"""Which iterate is returned: the last, or the one that scores best."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from gcsr.models import SparseTopology, testing_model
from gcsr.training import TrainingRecipe, fit, topology_of
from gcsr.views import Target

QUICK = TrainingRecipe(epochs=200, validate_every=10)
QUICK_RUNS = 2
# A curve of at most this many points is kept with the result.
CURVE_POINTS = 100


def epochs_to_look_at(epochs: int) -> frozenset[int]:
    """Every tenth of a run and, because gradient matching is often best early, powers of two."""
    tenths = range(0, epochs, max(1, epochs // 10))
    return frozenset(tenths) | {1 << power for power in range(epochs.bit_length())}


class Best:
    """Keeps, for every graph, the iterate that scored best, the earliest of equals."""

    def __init__(self, *, lowest: bool = False) -> None:
        self.x: Tensor | None = None
        self.a: Tensor | None = None
        self.scores: list[tuple[int, Tensor]] = []
        self._sign = -1 if lowest else 1
        self._best: Tensor | None = None

    def offer(self, iteration: int, x: Tensor, a: Tensor, scores: Tensor) -> None:
        """Keep X' and A' of the graphs whose score beats all earlier ones; NaN beats nothing."""
        x, a = x.detach().clone(), a.detach().clone()
        self.scores.append((iteration, scores))
        merits = (self._sign * scores).nan_to_num(nan=-torch.inf)
        if self.x is None or self.a is None or self._best is None:
            self.x, self.a, self._best = x, a, merits
            return
        better = merits > self._best
        chosen = better.to(x.device).view(-1, 1, 1)
        self.x, self.a = torch.where(chosen, x, self.x), torch.where(chosen, a, self.a)
        self._best = torch.where(better, merits, self._best)

    def curve(self, graph: int) -> dict[str, Any]:
        """Scores of one graph over the iterations, for its provenance."""
        every = -(-len(self.scores) // CURVE_POINTS)
        kept = self.scores[:: max(1, every)]
        return {
            "iterations": [iteration for iteration, _ in kept],
            "values": [float(scores[graph]) for _, scores in kept],
        }


class Chooser(Protocol):
    """Looks at iterates and keeps one of them for every graph."""

    @property
    def measure(self) -> str:
        """What the provenance calls its scores."""
        ...

    @property
    def x(self) -> Tensor | None:
        """X' of the kept ones; ``None`` before the first look."""
        ...

    @property
    def a(self) -> Tensor | None:
        """A' of the kept ones."""
        ...

    def __call__(self, iteration: int, x: Tensor, a: Tensor) -> None:
        """Look at X' and A' of every graph before an iteration."""
        ...

    def curve(self, graph: int) -> dict[str, Any]:
        """What was seen of one graph, for its provenance."""
        ...


class QuickValidation:
    """How well GCNs validate that are quickly trained on a condensed graph.

    Only validation labels are read.
    """

    def __init__(self, validation: Target, device: torch.device) -> None:
        self.model = testing_model("gcn")
        topology = SparseTopology(validation.adjacency, device)
        x = validation.x.to(device)
        self.validate = self.model.prepare(x, topology, validation.nodes)
        self.labels = validation.labels.to(device)
        self.features = int(x.shape[1])

    def score(
        self,
        x: Tensor,
        a: Tensor,
        targets: Tensor,
        networks: range = range(QUICK_RUNS),
        seed: int = 0,
    ) -> float:
        """Mean accuracy of the numbered networks, each at its best epoch."""
        # As in evaluation, networks are float32 whatever the iterate is.
        fitted = fit(
            self.model,
            self.model.prepare(x.float(), topology_of(a.float())),
            targets.float(),
            self.validate,
            self.labels,
            features=self.features,
            recipe=QUICK,
            networks=networks,
            seed=seed,
        )
        return float(fitted.validation.mean())


class BestValidated(Best):
    """Keeps, for every graph, the iterate on which a quickly trained GCN validates best."""

    measure = "validation"

    def __init__(self, targets: Tensor, validation: Target, device: torch.device) -> None:
        super().__init__()
        self.targets = targets
        self.quick = QuickValidation(validation, device)

    def __call__(self, iteration: int, x: Tensor, a: Tensor) -> None:
        """Score every graph of an iterate, X' and A', and keep those that improved."""
        found = [self._score(x[g], a[g], self.targets[g]) for g in range(x.shape[0])]
        self.offer(iteration, x, a, torch.tensor(found, dtype=torch.float64))

    def _score(self, x: Tensor, a: Tensor, targets: Tensor) -> float:
        return self.quick.score(x, a, targets)
