"""What a method is given and what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.utils.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Context:
    """Everything that a method needs beside its settings.

    Args:
        view: what may be seen of the graph; test labels are not in it. Its ``journal`` is the open
            checkpoint, or ``None``.
        nodes: of every condensed graph.
        seeds: one condensed graph is made for each.
        device: where to compute.
        progress: called with what is being done, how much of it is done and how much there is.
    """

    view: CondensingView
    nodes: int
    seeds: Sequence[int]
    device: torch.device
    progress: Progress = silent


@dataclass(frozen=True, eq=False)
class CondensationResult:
    """What a method returns for one graph; the rest of the provenance is the same for all methods.

    Args:
        x: features, ``(n', d)``.
        adjacency: A', ``(n', n')``, non-negative; the identity where there is no structure.
        y: classes, ``(n',)``, or class shares, ``(n', C)``.
        notes: sentences that somebody who uses the result should read.
        details: more provenance, the same whenever the graph is made again.
        measured: more provenance that need not be the same.
    """

    x: Tensor
    adjacency: Tensor
    y: Tensor
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
