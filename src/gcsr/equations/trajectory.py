"""Matching the training trajectory of the real graph (Algorithm 1, lines 8-11)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-likelihood over nodes, keeping leading dimensions.

    ``targets`` are class shares ``(..., n, C)``: one-hot rows for hard labels.
    """
    return -(targets * logits.log_softmax(-1)).sum(-1).mean(-1)


def divergence(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Mean over nodes of :math:`\sum_c y_c (\log y_c - \log p_c)`, the cross-entropy for hard ones."""
    entropy: Tensor = torch.special.entr(targets).sum(-1).mean(-1)
    return cross_entropy(logits, targets) - entropy


def over_labeled(targets: Tensor) -> Tensor:
    """Targets with which :func:`cross_entropy` is the mean over labeled nodes alone.

    A node without a label has a row of zeros; the rows of the others are scaled up by n over their
    number, which changes nothing where all are labeled.
    """
    labeled = (targets.sum(-1) > 0).sum(-1)
    return targets * (targets.shape[-2] / labeled).to(targets.dtype)[..., None, None]


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
