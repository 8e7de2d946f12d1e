"""Predictions and accuracy of a batch of networks."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.models import Model, Params, Prepared


def predictions(model: Model, params: Params, prepared: Prepared, *, at_once: int) -> Tensor:
    """Predicted classes ``(batch, n)``, ``at_once`` networks at a time to bound memory."""
    with torch.no_grad():
        parts = [
            model.logits(tuple(p[i : i + at_once] for p in params), prepared).argmax(-1)
            for i in range(0, params[0].shape[0], at_once)
        ]
    return torch.cat(parts)


def accuracy(
    model: Model, params: Params, prepared: Prepared, labels: Tensor, *, at_once: int
) -> Tensor:
    """Share of right predictions of every network."""
    right = predictions(model, params, prepared, at_once=at_once) == labels
    return right.double().mean(-1)
