"""Which part of a very large graph is read where a random part tells as much as all of it.

The same rules hold in memory and on disk, so results do not depend on where a graph is. They depend on
counts alone and leave nothing out of a graph of moderate size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gcsr.data.views import CondensingView, Target, VisibleGraph
from gcsr.utils.devices import make_generator

# Starts and pseudo-labels read so many rows, or rows of so many numbers.
ALWAYS_ROWS, MOST_NUMBERS = 2**17, 2**26
# Networks on the real graph learn from all training nodes up to the first number, else from the second.
ALWAYS_TRAINED, MOST_TRAINED = 2**17, 2**15
# The same for the validation nodes that decide while condensing.
ALWAYS_VALIDATED, MOST_VALIDATED = 50_000, 2**15


def sampled(nodes: Tensor, most: int, purpose: str, *, above: int | None = None) -> Tensor:
    """A random ``most`` of the nodes, in their order, where there are more (than ``above``)."""
    if nodes.numel() <= (most if above is None else above):
        return nodes
    order = torch.randperm(nodes.numel(), generator=make_generator(0, purpose))
    return nodes[order[:most].sort().values]


def most_rows(width: int) -> int:
    """How many rows of so many columns are read at most."""
    return max(ALWAYS_ROWS, MOST_NUMBERS // max(1, width))


def is_large(visible: VisibleGraph) -> bool:
    """Whether a random part of the nodes stands for all of them."""
    return visible.num_nodes > most_rows(_width(visible))


def known_nodes(visible: VisibleGraph, nodes: Tensor) -> Tensor:
    """The nodes among these that starts and outer losses are computed on."""
    return sampled(nodes, most_rows(_width(visible)), "known nodes")


def _width(visible: VisibleGraph) -> int:
    return max(int(visible.x.shape[1]), visible.num_classes)


def trained_places(visible: VisibleGraph) -> Tensor:
    """Where in ``visible.train`` the nodes are that networks on the real graph learn from."""
    everyone = torch.arange(visible.train.numel())
    return sampled(everyone, MOST_TRAINED, "trained nodes", above=ALWAYS_TRAINED)


def validation_part(validation: Target) -> Target:
    """The validation nodes that decide while condensing."""
    everyone = torch.arange(validation.nodes.numel())
    places = sampled(everyone, MOST_VALIDATED, "validated nodes", above=ALWAYS_VALIDATED)
    if places is everyone:
        return validation
    return replace(validation, nodes=validation.nodes[places], labels=validation.labels[places])


def parts_read(view: CondensingView, known: Tensor | None = None) -> dict[str, Any]:
    """For the provenance: how many of which nodes were read, where that is not all of them."""
    visible, checked = view.visible, view.validation.nodes.numel()
    counts = {
        "training": (trained_places(visible).numel(), visible.train.numel()),
        "validation": (validation_part(view.validation).nodes.numel(), checked),
    }
    if known is not None and is_large(visible):
        counts["known"] = (known.numel(), visible.num_nodes)
    found = {name: {"read": read, "of": of} for name, (read, of) in counts.items() if read < of}
    return {"sampled": found} if found else {}
