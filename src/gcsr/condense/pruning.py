"""Which entries of A' are kept: those above a threshold, or each node's heaviest neighbours.

The diagonal always stays, and an edge stays if either of its ends keeps it, so that a symmetric A'
stays symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gcsr.condense.fields import real_number, whole_number
from gcsr.errors import InputError

AUTO, NONE = "auto", "none"
# Shares of the edges that thresholds tried by ``auto`` keep.
_SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)


class Rule(Protocol):
    """Says which edges stay; its text is how a user writes it."""

    def kept(self, edges: Tensor) -> Tensor:
        """A mask over A' without its diagonal."""
        ...


@dataclass(frozen=True)
class Threshold:
    """Edges heavier than ``value`` stay."""

    value: float

    def __post_init__(self) -> None:
        real_number(self, "value")

    def kept(self, edges: Tensor) -> Tensor:
        """Those above the threshold."""
        return edges > self.value

    def __str__(self) -> str:
        return f"threshold={self.value:g}"


@dataclass(frozen=True)
class TopK:
    """The ``neighbours`` heaviest edges of every node stay, the first of equals."""

    neighbours: int

    def __post_init__(self) -> None:
        whole_number(self, "neighbours")

    def kept(self, edges: Tensor) -> Tensor:
        """The heaviest of every row."""
        order = edges.argsort(dim=1, descending=True, stable=True)[:, : self.neighbours]
        return torch.zeros_like(edges, dtype=torch.bool).scatter_(1, order, True)

    def __str__(self) -> str:
        return f"top-k={self.neighbours}"


def parse_rule(text: str) -> Rule | None:
    """``threshold=0.05`` or ``top-k=8`` as a rule; ``None`` for ``auto`` and ``none``."""
    if text in (AUTO, NONE):
        return None
    name, _, value = str(text).partition("=")
    try:
        if name == "threshold":
            return Threshold(float(value))
        if name == "top-k":
            return TopK(int(value))
    except ValueError:  # InputError is one: the sentence below says what is accepted
        pass
    raise InputError(
        f"sparsify: {text!r} is not accepted; auto, none, threshold=0.05 or top-k=8 (any number"
        " >= 0) are."
    )


def pruned(adjacency: Tensor, rule: Rule) -> Tensor:
    """A' with the edges that the rule keeps, and its diagonal."""
    edges = adjacency - adjacency.diag().diag()
    kept = rule.kept(edges)
    kept = kept | kept.T
    kept.fill_diagonal_(True)
    return torch.where(kept, adjacency, torch.zeros_like(adjacency))


def candidates(adjacency: Tensor) -> list[Rule]:
    """What ``auto`` tries: rules that leave less than all of A', the one that leaves least first."""
    n = adjacency.shape[0]
    weights = (adjacency - adjacency.diag().diag()).flatten()
    weights = weights[weights > 0].sort(descending=True).values
    # Three digits, so that the text of a rule is the whole rule.
    places = [int(share * weights.numel()) for share in _SHARES if weights.numel()]
    thresholds = {float(f"{float(weights[place]):.3g}") for place in places}
    rules: list[Rule] = [TopK(0), *(TopK(1 << power) for power in range((n - 1).bit_length()))]
    rules += [Threshold(value) for value in sorted(thresholds)]
    left: dict[int, Rule] = {}
    for rule in rules:
        left.setdefault(entries(pruned(adjacency, rule)), rule)
    everything = entries(adjacency)
    return [left[count] for count in sorted(left) if count < everything]


def entries(adjacency: Tensor) -> int:
    """How many numbers of A' are not zero."""
    return int(torch.count_nonzero(adjacency))
