"""Predictions and accuracy of a batch of networks."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.models import Model, Params, Prepared


def predictions(model: Model, params: Params, prepared: Prepared, *, at_once: int) -> Tensor:
    """Predicted classes ``(batch, n)``, ``at_once`` networks at a time to bound memory."""
    # Some kernels prepare for a gradient wherever a weight could have one.
    weights = tuple(p.detach() for p in params)
    with torch.no_grad():
        parts = [
            model.logits(tuple(p[i : i + at_once] for p in weights), prepared).argmax(-1)
            for i in range(0, weights[0].shape[0], at_once)
        ]
    return torch.cat(parts)


def accuracy(
    model: Model, params: Params, prepared: Prepared, labels: Tensor, *, at_once: int
) -> Tensor:
    """Share of right predictions of every network."""
    right = predictions(model, params, prepared, at_once=at_once) == labels
    return right.double().mean(-1)
