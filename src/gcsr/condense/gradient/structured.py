"""What the methods that learn a structure by gradient matching have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gcsr.condense.fields import real_number, whole_number
from gcsr.condense.gradient.condenser import GradientCondenser
from gcsr.condense.gradient.generator import Generator
from gcsr.condense.gradient.step import Learned, StructureTerm
from gcsr.condense.initialise import Start
from gcsr.condense.together import PRECISIONS
from gcsr.errors import require_one_of
from gcsr.models import Params
from gcsr.views import CondensingView


@dataclass(frozen=True, kw_only=True)
class StructuredGradientCondenser(GradientCondenser):
    """Settings of a generator that turns features into edges.

    Args:
        structure_rate: Adam's rate for the generator, which learns in the first ten of every fifty
            epochs; X' learns in the others.
        generator_hidden: its width.
        threshold: entries of A' below it are zero in the result; networks that are matched see all.
        smoothness: weight of tr(YᵀLY), which is small if edges join nodes of the same class.
        initial: ``aligned``: every condensed node starts from a training node of its own class.
            ``released``: as the authors' code does it, with classes in the order of their numbers for
            features and in the order of their sizes for labels, so that most do not.
    """

    structure_rate: float = 1e-3
    generator_hidden: int = 128
    threshold: float = 0.05
    smoothness: float = 0.0
    initial: Literal["aligned", "released"] = "aligned"

    def _check_structure(self) -> None:
        require_one_of("initial", self.initial, ("aligned", "released"))
        whole_number(self, "generator_hidden", least=1)
        real_number(self, "structure_rate", "smoothness")
        real_number(self, "threshold", most=1.0)
        self._check_generator()

    @abstractmethod
    def _check_generator(self) -> None:
        """Raise :class:`InputError` for a setting of the generator that cannot be used."""

    @abstractmethod
    def _generator(self) -> Generator:
        """The map from features to edges."""

    def _term(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> StructureTerm | None:
        """What is added to the loss while the generator learns."""
        return None

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> Learned | None:
        generator = self._generator()
        params: Params = tuple(p.to(x) for p in generator.init(int(x.shape[-1]), seeds))
        term = self._term(view, x, seeds)
        return Learned(generator, params, self.structure_rate, self.smoothness, term)

    def _arranged(self, start: Start, view: CondensingView, labels: Tensor) -> Start:
        if self.initial == "aligned":
            return start
        order = released_order(labels, view.visible.train_labels)
        return replace(start, x=start.x[order.to(start.x.device)], nodes=start.nodes[order])

    def _pair_bytes(self, nodes: int) -> int:
        # Three layers of all pairs, kept for the way back, and their gradients.
        return 12 * nodes**2 * self.generator_hidden * PRECISIONS[self.dtype].itemsize

    def _returned(self, adjacency: Tensor) -> Tensor:
        return torch.where(adjacency >= self.threshold, adjacency, 0)


def released_order(labels: Tensor, train_labels: Tensor) -> Tensor:
    """Which sampled row each condensed node starts from in GCond's released code.

    Rows are sampled class by class in the order of class numbers; labels come class by class in the
    order of ascending counts among the training labels, equal counts in order of first appearance.
    """
    seen = list(dict.fromkeys(train_labels.tolist()))
    counts = torch.bincount(train_labels)
    by_count = sorted(seen, key=lambda label: int(counts[label]))
    released = torch.cat([labels[labels == label] for label in by_count])
    # Condensed nodes lie in the order of class numbers: take the released ones in that order.
    return released.argsort(stable=True)
