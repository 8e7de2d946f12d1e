"""Experts as they are asked for: all that decides their weights, and what they may take."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gcsr.experts.recipe import ExpertRecipe
from gcsr.models import Model


@dataclass(frozen=True, eq=False)
class ExpertOrder:
    """What a method will ask :func:`~gcsr.experts.obtain.experts_for` for.

    Args:
        model: the network.
        recipe: how it is trained.
        dtype: in which precision.
        predictions: whether the mean prediction is wanted.
        memory_bytes: what trajectories may take in memory.
        disk_bytes: what they may take on disk.
    """

    model: Model
    recipe: ExpertRecipe
    dtype: torch.dtype = torch.float32
    predictions: bool = False
    memory_bytes: int | None = None
    disk_bytes: int = 0
