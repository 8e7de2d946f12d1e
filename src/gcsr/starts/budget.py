"""How many condensed nodes each class gets, and which labels they carry."""

from __future__ import annotations

import torch
from torch import Tensor

from gcsr.utils.errors import require


def class_budget(train_labels: Tensor, num_classes: int, nodes: int) -> Tensor:
    """Nodes per class: shares as among the training labels, at least one each, ``nodes`` in all.

    Largest remainder; ties go to the class with the smaller number. Classes without training nodes
    get none.
    """
    counts = torch.bincount(train_labels, minlength=num_classes).double()
    present = counts > 0
    classes = int(present.sum())
    require(
        nodes >= classes,
        f"nodes: {nodes} is fewer than the {classes} classes with training nodes;"
        f" at least {classes} are needed.",
    )
    exact = counts / counts.sum() * nodes
    # A class that rounds to zero takes its one node first; the rest share what is left.
    budget = torch.maximum(exact.floor(), present.double())
    while int(budget.sum()) > nodes:
        surplus = torch.where(budget > 1, budget - exact, -torch.inf)
        budget[int(surplus.argmax())] -= 1
    while int(budget.sum()) < nodes:
        missing = torch.where(present, exact - budget, -torch.inf)
        budget[int(missing.argmax())] += 1
    return budget.long()


def block_labels(budget: Tensor) -> Tensor:
    """Labels of the condensed nodes, in blocks by class."""
    return torch.repeat_interleave(torch.arange(budget.numel()), budget)
