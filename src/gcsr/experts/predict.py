"""What the experts think of every visible node."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from gcsr.models import Model, Params, SparseTopology
from gcsr.views import VisibleGraph


def mean_prediction(
    model: Model, experts: Iterable[Params], visible: VisibleGraph, device: torch.device
) -> Tensor:
    """Mean class probabilities ``(n, C)`` over trained experts, one expert in memory at a time."""
    topology = SparseTopology(visible.adjacency, device)
    prepared = model.prepare(visible.x.to(device), topology)
    total = torch.zeros(visible.num_nodes, visible.num_classes, device=device)
    count = 0
    with torch.no_grad():
        for group in experts:
            for i in range(group[0].shape[0]):
                one = tuple(p[i : i + 1] for p in group)
                total += model.logits(one, prepared)[0].softmax(-1)
                count += 1
    return total / count
