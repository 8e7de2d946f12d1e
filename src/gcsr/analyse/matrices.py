"""The condensed adjacency and its features' products, with nodes of a class side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gcsr.condensed import CondensedGraph


@dataclass(frozen=True, eq=False)
class OrderedMatrices:
    """Matrices whose rows and columns go class by class, nodes without a label last.

    Attributes:
        order: the condensed node behind every row.
        classes: its class, -1 for none.
        adjacency: A', diagonal included.
        gram: X'X'ᵀ.
        starts: the row where each class that is present starts.
    """

    order: np.ndarray
    classes: np.ndarray
    adjacency: np.ndarray
    gram: np.ndarray
    starts: np.ndarray


def ordered_matrices(small: CondensedGraph) -> OrderedMatrices:
    """A' and X'X'ᵀ with rows and columns sorted by class; within a class the order stays."""
    classes = small.classes.detach().cpu()
    last = torch.where(classes >= 0, classes, small.num_classes)
    order = last.argsort(stable=True)
    x = small.x.detach().cpu().double()[order]
    adjacency = small.adjacency.detach().cpu().double()[order][:, order]
    _, starts = np.unique(last[order].numpy(), return_index=True)
    return OrderedMatrices(
        order=order.numpy(),
        classes=classes[order].numpy(),
        adjacency=adjacency.numpy(),
        gram=(x @ x.T).numpy(),
        starts=starts,
    )
