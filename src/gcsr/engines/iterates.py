"""Which iterate is returned: the last, or the one that scores best."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, Target
from gcsr.models.base import Model
from gcsr.models.registry import testing_model
from gcsr.outofcore.predict import prepare_on
from gcsr.training.fit import Fitted, TrainingRecipe, fit, topology_of
from gcsr.utils.progress import Watch

QUICK = TrainingRecipe(epochs=200, validate_every=10)
QUICK_RUNS = 2
# A curve of at most this many points is kept with the result.
CURVE_POINTS = 100


def epochs_to_look_at(epochs: int) -> frozenset[int]:
    """Every tenth of a run and, because gradient matching is often best early, powers of two."""
    tenths = range(0, epochs, max(1, epochs // 10))
    return frozenset(tenths) | {1 << power for power in range(epochs.bit_length())}


def recorded(values: Tensor) -> list[float | None]:
    """A curve as plain JSON, which has no word for what is not finite."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


@dataclass(frozen=True, eq=False)
class Kept:
    """What a chooser has in mind at some moment; its tensors never change."""

    x: Tensor
    a: Tensor
    best: Tensor
    scores: tuple[tuple[int, Tensor], ...]

    def tensors(self) -> dict[str, Tensor]:
        """The same under names, for a file."""
        iterations, scores = zip(*self.scores, strict=True)
        return {
            "chosen x": self.x,
            "chosen a": self.a,
            "chosen best": self.best,
            "chosen scores": torch.stack(scores),
            "chosen iterations": torch.tensor(iterations),
        }

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Kept | None:
        """The inverse of :meth:`tensors`."""
        if "chosen x" not in tensors:
            return None
        x, a, best, scores, iterations = (
            tensors[f"chosen {name}"] for name in ("x", "a", "best", "scores", "iterations")
        )
        return cls(x, a, best, tuple(zip(iterations.tolist(), scores.unbind(), strict=True)))


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

    def kept(self) -> Kept | None:
        """What there is to go back to; ``None`` before the first look."""
        if self.x is None or self.a is None or self._best is None:
            return None
        return Kept(self.x, self.a, self._best, tuple(self.scores))

    def put_back(self, kept: Kept | None) -> None:
        """As if nothing had been seen since."""
        self.x, self.a, self._best, self.scores = None, None, None, []
        if kept is not None:
            self.x, self.a, self._best = kept.x, kept.a, kept.best
            self.scores = list(kept.scores)

    def curve(self, graph: int) -> dict[str, Any]:
        """Scores of one graph over the iterations, for its provenance."""
        every = -(-len(self.scores) // CURVE_POINTS)
        kept = self.scores[:: max(1, every)]
        return {
            "iterations": [iteration for iteration, _ in kept],
            "values": recorded(torch.stack([scores[graph] for _, scores in kept])),
        }


class Keeper(Protocol):
    """Keeps an iterate for every graph, and can go back to what it kept before."""

    def kept(self) -> Kept | None:
        """What there is to go back to; ``None`` before the first look."""
        ...

    def put_back(self, kept: Kept | None) -> None:
        """As if nothing had been seen since."""
        ...


class Chooser(Keeper, Protocol):
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


class QuickScore:
    """Mean validation accuracy of some GCNs that are quickly trained on a condensed graph.

    Only validation labels are read.
    """

    def __init__(
        self, validation: Target, device: torch.device, *, networks: int = QUICK_RUNS, seed: int = 0
    ) -> None:
        self.networks, self.seed = networks, seed
        # What is prepared does not depend on how wide a network is.
        self.validate = prepare_on(testing_model("gcn"), validation, validation.nodes, device)
        self.labels = validation.labels.to(device)
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
        model = testing_model("gcn", hidden_channels)
        return float(self.fitted(model, x, a, targets, networks, seed, recipe).validation.mean())

    def fitted(
        self,
        model: Model,
        x: Tensor,
        a: Tensor,
        targets: Tensor,
        networks: range,
        seed: int,
        recipe: TrainingRecipe,
    ) -> Fitted:
        """The networks themselves."""
        # As in evaluation, networks are float32 whatever the iterate is.
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
        )


class BestValidated(Best):
    """Keeps, for every graph, the iterate on which a quickly trained GCN validates best.

    Only validation labels are read.
    """

    measure = "validation"

    def __init__(self, targets: Tensor, validation: Target, device: torch.device) -> None:
        super().__init__()
        self.targets = targets
        self.score = QuickScore(validation, device)

    def __call__(self, iteration: int, x: Tensor, a: Tensor) -> None:
        """Score every graph of an iterate, X' and A', and keep those that improved."""
        found = [self.score(x[g], a[g], self.targets[g]) for g in range(x.shape[0])]
        self.offer(iteration, x, a, torch.tensor(found, dtype=torch.float64))


Look = Callable[[int, Tensor, Tensor], None]


def looking(
    chooser: Chooser | None,
    view: CondensingView,
    seeds: Sequence[int],
    targets: Tensor,
    device: torch.device,
    *,
    every: int = 1,
) -> Look | None:
    """Who looks at iterates: the chooser, and whoever watches how they validate.

    A chooser that validates is overheard. For any other an iterate whose number is a multiple of
    ``every`` is scored for the watch alone, which changes no result.
    """
    if view.watch is None:
        return chooser
    watch = in_order(view.watch)
    if isinstance(chooser, BestValidated):

        def overheard(iteration: int, x: Tensor, a: Tensor) -> None:
            chooser(iteration, x, a)
            watch(iteration, dict(zip(seeds, chooser.scores[-1][1].tolist(), strict=True)))

        return overheard
    score = QuickScore(view.validation, device)

    def asked(iteration: int, x: Tensor, a: Tensor) -> None:
        if chooser is not None:
            chooser(iteration, x, a)
        if iteration % every == 0:
            found = {seed: score(x[g], a[g], targets[g]) for g, seed in enumerate(seeds)}
            watch(iteration, found)

    return asked


def in_order(watch: Watch) -> Watch:
    """Tells of no iteration twice: a run that went back passes some again."""
    last = -1

    def told(iteration: int, scores: Mapping[int, float]) -> None:
        nonlocal last
        if iteration > last:
            last = iteration
            watch(iteration, scores)

    return told
