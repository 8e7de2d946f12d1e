"""Choices by quickly trained networks: which iterate is returned, which entries of A' are edges."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gcsr.data.views import Target, ViewCache, validation_part
from gcsr.models.base import Prepared
from gcsr.models.gcn import GCN
from gcsr.outofcore.real import real_graph
from gcsr.training.fit import TrainingRecipe, fit, topology_of

QUICK = TrainingRecipe(epochs=200, validate_every=10)
QUICK_RUNS = 2
# A curve of at most this many points is kept with the result.
CURVE_POINTS = 100


def epochs_to_compare(epochs: int) -> frozenset[int]:
    """Every tenth of a run and, because gradient matching is often best early, powers of two."""
    tenths = range(0, epochs, max(1, epochs // 10))
    return frozenset(tenths) | {1 << power for power in range(epochs.bit_length())}


def recorded(values: Tensor) -> list[float | None]:
    """A curve as plain JSON; values that are not finite are ``None``."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


class Best:
    """Keeps, for every graph, the iterate that scored best, of equals the earliest or the ``latest``.

    ``kept`` are the tensors of an iterate, with the graphs along their first dimension: X', A', Y' and
    what a method adds. It is empty before the first comparison. ``measure`` is the provenance key of
    the scores.
    """

    measure: str

    def __init__(self, *, lowest: bool = False, latest: bool = False) -> None:
        self.kept: tuple[Tensor, ...] = ()
        self.scores: list[tuple[int, Tensor]] = []
        self._sign, self._latest = -1 if lowest else 1, latest
        self._best = torch.empty(0)

    def score(self, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        """Score X', A' and Y' of every graph."""
        raise NotImplementedError

    def __call__(self, iteration: int, iterate: Sequence[Tensor]) -> None:
        """Score the iterate before an iteration and keep the graphs that improved."""
        self.offer(iteration, iterate, self.score(*iterate[:3]))

    def offer(self, iteration: int, iterate: Sequence[Tensor], scores: Tensor) -> None:
        """Keep the graphs whose score is better than all earlier ones; NaN never is."""
        self.scores.append((iteration, scores))
        signed = (self._sign * scores).nan_to_num(nan=-torch.inf)
        if not self.kept:
            self.kept, self._best = tuple(part.detach().clone() for part in iterate), signed
            return
        better = signed > self._best
        if self._latest:
            better |= (signed == self._best) & ~scores.isnan()
        chosen = better.to(iterate[0].device).view(-1, 1, 1)
        pairs = zip(iterate, self.kept, strict=True)
        self.kept = tuple(torch.where(chosen, new.detach(), old) for new, old in pairs)
        self._best = torch.where(better, signed, self._best)

    def state(self) -> dict[str, Tensor]:
        """What was kept and all scores so far, by the names that checkpoints use."""
        if not self.kept:
            return {}
        iterations, scores = zip(*self.scores, strict=True)
        return {
            **{f"chosen {i}": part for i, part in enumerate(self.kept)},
            "chosen best": self._best,
            "chosen scores": torch.stack(scores),
            "chosen iterations": torch.tensor(iterations),
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go back to an earlier :meth:`state`; other names in it are ignored."""
        self.kept, self.scores = (), []
        if "chosen best" in state:
            count = sum(name.removeprefix("chosen ").isdigit() for name in state)
            self.kept = tuple(state[f"chosen {i}"] for i in range(count))
            self._best = state["chosen best"]
            iterations = state["chosen iterations"].tolist()
            self.scores = list(zip(iterations, state["chosen scores"].unbind(), strict=True))

    def curve(self, graph: int) -> dict[str, Any]:
        """Scores of one graph over the iterations, for its provenance."""
        every = -(-len(self.scores) // CURVE_POINTS)
        kept = self.scores[:: max(1, every)]
        return {
            "iterations": [iteration for iteration, _ in kept],
            "values": recorded(torch.stack([scores[graph] for _, scores in kept])),
        }


class QuickScore:
    """Mean validation accuracy of some quickly trained GCNs. It reads validation labels only."""

    def __init__(
        self, validation: Target, device: torch.device, *, networks: int = QUICK_RUNS, seed: int = 0
    ) -> None:
        self.networks, self.seed = networks, seed
        read = validation_part(validation)
        # What validating reads does not depend on the number of hidden channels.
        self.validate, self.labels = _PREPARED.get(
            validation,
            validation,
            str(device),
            lambda: (
                real_graph(read, device).prepared(GCN(), read.nodes),
                read.labels.to(device),
            ),
        )
        self.features = int(validation.x.shape[1])

    def __call__(self, x: Tensor, a: Tensor, targets: Tensor) -> float:
        """Score X' and A' whose rows have the class shares ``targets``."""
        return self.score(x, a, targets, range(self.networks), self.seed)

    def score(
        self,
        x: Tensor,
        a: Tensor,
        targets: Tensor,
        networks: range,
        seed: int,
        *,
        hidden_channels: int = 256,
        recipe: TrainingRecipe = QUICK,
    ) -> float:
        """The same with the numbered networks, each at its best epoch."""
        found = self.validated(x, a, targets, networks, seed, hidden_channels, recipe)
        return float(found.mean())

    def validated(
        self,
        x: Tensor,
        a: Tensor,
        targets: Tensor,
        networks: Sequence[int],
        seed: int,
        hidden_channels: int,
        recipe: TrainingRecipe,
    ) -> Tensor:
        """Validation accuracy of every network at its best epoch, on one graph or one each."""
        model = GCN(hidden_channels)
        # Networks are float32 as in evaluation, also where the iterate is float64.
        return fit(
            model,
            model.prepare(x.float(), topology_of(a.float())),
            targets.float(),
            self.validate,
            self.labels,
            features=self.features,
            recipe=recipe,
            networks=networks,
            seed=seed,
        ).validation


# Several starts and iterates of a run are scored.
_PREPARED: ViewCache[tuple[Prepared, Tensor]] = ViewCache()


class BestValidated(Best):
    """Keeps, for every graph, the iterate with the best :class:`QuickScore`.

    ``score`` replaces it: from the number of a graph and its X', A' and Y' to a validation accuracy.
    """

    measure = "validation"

    def __init__(
        self,
        validation: Target,
        device: torch.device,
        *,
        latest: bool = False,
        score: Callable[[int, Tensor, Tensor, Tensor], float] | None = None,
    ) -> None:
        super().__init__(latest=latest)
        self.quick, self._score = QuickScore(validation, device), score

    def score(self, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        """Validation accuracy of every graph."""
        found = [
            self.quick(*graph) if self._score is None else self._score(g, *graph)
            for g, graph in enumerate(zip(x, a, y, strict=True))
        ]
        return torch.tensor(found, dtype=torch.float64)


# -- Which entries of A' become edges for layers that ignore edge weights -----------------------------

# Mean numbers of neighbors that are tried, beside none and all.
NEIGHBORS = (1, 2, 4, 8, 16)
# Fewer edges are kept where they cost at most this validation accuracy: sums over many neighbors (GIN)
# suffer from superfluous edges more than the GCN that compares them.
TOLERANCE = 0.005
EDGE_NETWORKS, EDGE_HIDDEN = 2, 64
EDGE_RECIPE = TrainingRecipe(epochs=100, validate_every=10)
# Numbers in the adjacency matrices that are compared together.
AT_ONCE = 2**25


def choose_edges(
    x: Tensor, adjacency: Tensor, targets: Tensor, quick: QuickScore, seed: int
) -> dict[str, Any]:
    """The threshold above which entries of A' are edges, and the validation accuracies behind it.

    An unweighted GCN is trained on each candidate. The threshold is ``None`` for no edges.
    """
    edges = adjacency - adjacency.diag().diag()
    weights = edges[edges > 0].sort(descending=True).values
    n = int(x.shape[0])
    kept = [n * k for k in NEIGHBORS if n * k < weights.numel()]
    # Of equal weights all or none are edges.
    below = [weights[weights < weights[count - 1]] for count in kept]
    thresholds = [float(weights[0]), *(float(one[0]) if one.numel() else 0.0 for one in below), 0.0]
    candidates = {int((edges > value).sum()): value for value in thresholds}
    counts = sorted(candidates)
    each = max(1, AT_ONCE // (n * n * EDGE_NETWORKS))
    scores: list[float] = []
    for first in range(0, len(counts), each):
        # The same initial weights for all.
        tried = [(edges > candidates[count]).float() for count in counts[first : first + each]]
        batch = torch.stack(tried).repeat_interleave(EDGE_NETWORKS, 0)
        rows, shares = (part.float().expand(len(batch), -1, -1) for part in (x, targets))
        networks = list(range(EDGE_NETWORKS)) * len(tried)
        found = quick.validated(rows, batch, shares, networks, seed, EDGE_HIDDEN, EDGE_RECIPE)
        scores += found.view(len(tried), EDGE_NETWORKS).mean(1).tolist()
    chosen = next(i for i, score in enumerate(scores) if score >= max(scores) - TOLERANCE)
    threshold = candidates[counts[chosen]] if counts[chosen] else None
    return {
        "threshold": threshold,
        "tried": [
            {"edges": count, "validation": score}
            for count, score in zip(counts, scores, strict=True)
        ],
    }
