"""The input and the output of a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.distributed.pool import Cluster
from gcsr.utils.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Context:
    """Everything that a method needs beside its settings.

    Args:
        view: the visible part of the graph, without test labels. Its ``checkpoint`` is the open
            checkpoint, or ``None``.
        nodes: of every condensed graph.
        seeds: one condensed graph is made for each.
        device: where to compute.
        progress: called with the stage, the steps done and their number.
        cluster: where the parts of a method that divides its own work are computed.
    """

    view: CondensingView
    nodes: int
    seeds: Sequence[int]
    device: torch.device
    progress: Progress = silent
    cluster: Cluster | None = None


@dataclass(frozen=True, eq=False)
class CondensationResult:
    """What a method returns for one graph; the rest of the provenance is the same for all methods.

    Args:
        x: features, ``(n', d)``.
        adjacency: A', ``(n', n')``, non-negative; the identity where there is no structure.
        y: classes, ``(n',)``, or class shares, ``(n', C)``.
        notes: sentences for users of the result.
        details: more provenance that is the same in every run.
        measured: more provenance that differs between runs, such as times.
    """

    x: Tensor
    adjacency: Tensor
    y: Tensor
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)
