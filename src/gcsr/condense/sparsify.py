"""A condensed graph in fewer bytes, and the validation accuracy that this costs.

A' is dense: n' x n' numbers, most of them small. ``auto`` keeps the fewest of them with which quickly
trained networks validate within a tolerance of those on the dense A'. What was lost is then measured
with other networks than those that chose.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from gcsr.condense.fields import real_number, whole_number
from gcsr.condense.pruning import AUTO, NONE, candidates, entries, parse_rule, pruned
from gcsr.condense.select import QuickScore
from gcsr.condensed import STORED_DTYPES, CondensedGraph, StoredDtype
from gcsr.errors import require_one_of
from gcsr.progress import Progress, silent
from gcsr.views import CondensingView

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
    tolerance: float = 0.5
    runs: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        parse_rule(self.rule)
        if self.dtype is not None:
            require_one_of("dtype", self.dtype, STORED_DTYPES)
        real_number(self, "tolerance")
        whole_number(self, "runs", least=1)
        whole_number(self, "seed")

    def __call__(
        self,
        small: CondensedGraph,
        view: CondensingView,
        device: torch.device,
        progress: Progress = silent,
    ) -> CondensedGraph:
        """The smaller graph; its provenance tells under ``stored`` what became of it."""
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
        told = {
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
        return replace(left, provenance=_told(small, left, told, time.perf_counter() - began))


def _told(
    small: CondensedGraph, left: CondensedGraph, told: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """The provenance: a second sparsifying keeps the story of the first, and both cost time."""
    past = small.provenance
    earlier = {"earlier": past["stored"]} if "stored" in past else {}
    # A file by another program may have any history.
    measured, sizes = (
        dict(past[name]) if isinstance(past.get(name), dict) else {}
        for name in ("measured", "bytes")
    )
    before = measured.get("storing_seconds")
    measured["storing_seconds"] = seconds + (before if isinstance(before, float) else 0.0)
    sizes["condensed"] = left.stored_bytes
    return {**past, "stored": {**told, **earlier}, "measured": measured, "bytes": sizes}
