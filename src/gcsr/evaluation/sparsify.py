"""A condensed graph in fewer bytes, and the validation accuracy that this costs.

A' is dense: n' x n' numbers, most of them small. ``auto`` keeps the fewest of them with which quickly
trained networks validate within a tolerance of those on the dense A'. What was lost is then measured
with other networks than those that chose.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gcsr.data.condensed import CondensedGraph, StoredDtype
from gcsr.data.views import CondensingView
from gcsr.engines.iterates import QuickScore
from gcsr.utils.errors import Count, InputError, Weight, Whole, check_fields
from gcsr.utils.progress import Progress, silent
from gcsr.utils.safe_io import part

AUTO, NONE = "auto", "none"
# Shares of the edges that thresholds tried by ``auto`` keep.
_SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64)


@dataclass(frozen=True)
class Rule:
    """``threshold``: edges heavier than ``value`` stay; ``top-k``: so many heaviest of every node."""

    name: str
    value: float

    def kept(self, edges: Tensor) -> Tensor:
        """Which edges stay; the first of equal ones in a row."""
        if self.name == "threshold":
            return edges > self.value
        order = edges.argsort(dim=1, descending=True, stable=True)[:, : int(self.value)]
        return torch.zeros_like(edges, dtype=torch.bool).scatter_(1, order, True)

    def __str__(self) -> str:
        value = self.value if self.name == "top-k" else f"{self.value:g}"
        return f"{self.name}={value}"


def parse_rule(text: str, field: str = "sparsify") -> Rule | None:
    """``threshold=0.05`` or ``top-k=8`` as a rule; ``None`` for ``auto`` and ``none``."""
    if text in (AUTO, NONE):
        return None
    name, _, value = str(text).partition("=")
    with suppress(ValueError, KeyError):
        number = {"threshold": float, "top-k": int}[name](value)
        if 0 <= number < math.inf:
            return Rule(name, number)
    raise InputError(
        f"{field} must be auto, none, threshold=0.05 or top-k=8 (any number >= 0), got {text!r}."
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
    counts = [0, *(1 << power for power in range((n - 1).bit_length()))]
    rules = [Rule("top-k", count) for count in counts]
    rules += [Rule("threshold", value) for value in sorted(thresholds)]
    left: dict[int, Rule] = {}
    for rule in rules:
        left.setdefault(entries(pruned(adjacency, rule)), rule)
    everything = entries(adjacency)
    return [left[count] for count in sorted(left) if count < everything]


def entries(adjacency: Tensor) -> int:
    """How many numbers of A' are not zero."""
    return int(torch.count_nonzero(adjacency))


STAGE = "sparsifying"


@dataclass(frozen=True, kw_only=True)
class Sparsifier:
    """How a condensed graph is made smaller.

    Args:
        rule: ``auto``, ``none``, ``threshold=0.05`` or ``top-k=8``.
        dtype: of the features and A' in a file; ``None`` leaves them as they are.
        tolerance: percentage points of validation accuracy that ``auto`` may lose.
        runs: quickly trained networks whose mean validation accuracy counts.
        seed: of those networks.
    """

    rule: str = AUTO
    dtype: StoredDtype | None = None
    tolerance: Weight = 0.5
    runs: Count = 5
    seed: Whole = 0

    def __post_init__(self) -> None:
        parse_rule(self.rule)
        check_fields(self)

    def __call__(
        self,
        small: CondensedGraph,
        view: CondensingView,
        device: torch.device,
        progress: Progress = silent,
    ) -> CondensedGraph:
        """The smaller graph; ``stored`` of its provenance describes what was done."""
        began = time.perf_counter()
        quick = QuickScore(view.validation, device)
        choosing, stating = range(self.runs), range(self.runs, 2 * self.runs)

        def score(graph: CondensedGraph, networks: range) -> float:
            x, a, targets = (p.to(device) for p in (graph.x, graph.adjacency, graph.targets))
            return 100 * quick.score(x, a, targets, networks, self.seed)

        chosen, left, tried = parse_rule(self.rule), small, list[dict[str, Any]]()
        steps = 1
        if chosen is not None:
            left = replace(small, adjacency=pruned(small.adjacency, chosen))
        elif self.rule == AUTO:
            options = candidates(small.adjacency)
            least = score(small, choosing) - self.tolerance
            steps += len(options)
            for done, rule in enumerate(options):
                progress(STAGE, done, steps)
                option = replace(small, adjacency=pruned(small.adjacency, rule))
                found = score(option, choosing)
                kept = entries(option.adjacency)
                tried.append({"rule": str(rule), "entries": kept, "validation": found})
                if found >= least:
                    chosen, left = rule, option
                    break
        if self.dtype is not None:
            left = left.stored_as(self.dtype)
        before, after = score(small, stating), score(left, stating)
        progress(STAGE, steps, steps)
        stored = {
            "rule": NONE if chosen is None else str(chosen),
            "asked": self.rule,
            "dtype": left.describe()["stored_dtype"],
            "tolerance": self.tolerance,
            "networks": self.runs,
            "seed": self.seed,
            "tried": tried,
            "entries": {"before": entries(small.adjacency), "after": entries(left.adjacency)},
            "bytes": {"before": small.stored_bytes, "after": left.stored_bytes},
            "validation": {"before": before, "after": after, "lost": before - after},
        }
        past = small.provenance
        if "stored" in past:
            stored["earlier"] = past["stored"]
        # A file of another program may have any history.
        measured, sizes = (dict(part(past, name)) for name in ("measured", "bytes"))
        earlier = measured.get("storing_seconds")
        seconds = time.perf_counter() - began
        measured["storing_seconds"] = seconds + (earlier if isinstance(earlier, float) else 0.0)
        sizes["condensed"] = left.stored_bytes
        history = {"stored": stored, "measured": measured, "bytes": sizes}
        return replace(left, provenance=past | history)
