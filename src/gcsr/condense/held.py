"""Bytes that the largest moments of the automatic mode hold, counted before it begins.

Teachers, clustering and experts follow one another: the largest of them counts. Clustering is what
every estimate allows for already (copies of the features).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from gcsr.condense import consistent, teachers
from gcsr.condense.automatic import costs, opinion
from gcsr.devices import free_memory_bytes
from gcsr.views import CondensingView

FLOAT = 4
# Smoothed features without dropped rows, those that are read, and while rows are dropped once more:
# what is left of them, two hops and their sum.
SMOOTHED = 6
# Hidden units of a network, what is left of them, and the gradients of both; a weight, its gradient
# and two moments.
ACTIVATIONS = WEIGHTS = 4


def held_bytes(
    view: CondensingView, asked: Collection[str], *, matching: bool, pins: Mapping[str, Any]
) -> int:
    """The most that teachers, or what is kept of experts where something is matched, hold at a time.

    Beside them, what networks see of the nodes that a second opinion is about.
    """
    visible, validation = view.visible, view.validation
    nodes, features = visible.num_nodes, int(visible.x.shape[1])
    train = visible.train.numel()
    degree = 1 + visible.adjacency.nnz / max(1, nodes)
    found = [0]
    # Where every label is known there is nothing to ask teachers.
    if train < nodes:
        rows = round(min(nodes, degree * train) + min(nodes, degree * validation.nodes.numel()))
        found += [
            consistent_bytes(nodes, features, train)
            if name == "consistent"
            else network_bytes(rows, features)
            for name in asked
        ]
    if matching:
        experts, epochs, hidden = (
            int(pins.get(name, usual))
            for name, usual in (
                ("experts", costs.EXPERTS),
                ("expert_epochs", costs.EXPERT_EPOCHS),
                ("hidden", costs.EXPERT_HIDDEN),
            )
        )
        bound = pins.get("expert_memory")
        if bound is None:
            bound = free_memory_bytes(torch.device("cpu")) // 4
        kept = experts * epochs * expert_bytes(features, visible.num_classes, hidden)
        found.append(min(kept, bound))
    looked_at = int(min(nodes, degree * opinion.MOST_NODES)) if asked and train < nodes else 0
    return max(found) + looked_at * features * FLOAT


def consistent_bytes(nodes: int, features: int, train: int) -> int:
    """The ``consistent`` teacher: smoothed features, and the rows that each draw keeps of them."""
    columns = consistent.columns_read(nodes, features)
    looked_at = train + min(consistent.POOL, nodes - train)
    return (SMOOTHED * nodes + consistent.DRAWS * looked_at) * columns * FLOAT


def network_bytes(rows: int, features: int) -> int:
    """Teachers that are networks of the graph and see ``rows``: inputs, weights and hidden units."""
    each = (ACTIVATIONS * rows + WEIGHTS * features) * teachers.HIDDEN
    return (rows * features + teachers.NETWORKS * each) * FLOAT


def expert_bytes(features: int, classes: int, hidden: int) -> int:
    """The weights of one expert."""
    return (features + classes + 1) * hidden * FLOAT
