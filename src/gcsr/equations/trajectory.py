"""Matching the training trajectory of the real graph (Algorithm 1, lines 8-11)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def trajectory_distance(
    student: Sequence[Tensor], start: Sequence[Tensor], target: Sequence[Tensor]
) -> Tensor:
    r"""How far the student ended from the expert, relative to how far the expert went.

    .. math:: \mathcal L = |\hat\theta_{t+N} - \theta_{t+M}|^2 / |\theta_t - \theta_{t+M}|^2

    over all parameters together, biases included. Parameters have one leading dimension, which the
    result keeps.
    """
    missed = _squared_distance(student, target)
    gone = _squared_distance(start, target)
    return missed / gone


def _squared_distance(first: Sequence[Tensor], second: Sequence[Tensor]) -> Tensor:
    parts = [(a - b).flatten(1).square().sum(1) for a, b in zip(first, second, strict=True)]
    return torch.stack(parts).sum(0)
