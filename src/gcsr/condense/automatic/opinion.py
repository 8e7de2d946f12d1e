"""A second opinion: what a teacher says of nodes that have no label.

Few validation nodes tell good condensed graphs from lucky ones badly. Nodes without a label are many
and a teacher that validates well is right about most of them: a network that disagrees with it more
often than others do has learned something else. Teachers may be wrong, so their word counts as that of
a limited number of validation nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.blocks import prepare_on
from gcsr.condense.automatic.failures import FAILURES
from gcsr.condense.teachers import class_shares
from gcsr.devices import stream
from gcsr.models import Prepared, testing_model
from gcsr.views import CondensingView

# Unlabelled nodes that are looked at, and the most validation nodes that they stand for.
MOST_NODES, COUNTING_AS = 2000, 200


@dataclass(frozen=True, eq=False)
class Opinion:
    """Nodes without a label, the class that a teacher puts first for each, and what that counts."""

    teacher: str
    prepared: Prepared
    classes: Tensor
    weight: float

    @property
    def told(self) -> dict[str, Any]:
        """For the provenance."""
        return {
            "teacher": self.teacher,
            "unlabelled_nodes": self.classes.numel(),
            "weight": self.weight,
        }


def second_opinion(
    view: CondensingView,
    teachers: Sequence[str],
    *,
    seed: int,
    device: torch.device,
    tempered: bool = True,
) -> Opinion | None:
    """What the teacher that can be trusted most says; ``None`` where there is nobody to ask.

    That is where every label is known, or no teacher could be trained. Validation nodes are no part of
    it: they are heard already.
    """
    visible, validation = view.visible, view.validation
    silent = visible.labels < 0
    if validation.adjacency is visible.adjacency:
        silent[validation.nodes] = False
    nodes = silent.nonzero().flatten()
    if not teachers or not nodes.numel():
        return None
    chosen = torch.randperm(nodes.numel(), generator=stream(0, "second opinion"))[:MOST_NODES]
    nodes = nodes[chosen.sort().values]
    said: dict[str, Tensor] = {}
    for name in teachers:
        # Starts have asked the same: whoever failed there took its candidates out of the race.
        with suppress(*FAILURES):
            taught = class_shares(view, name, seed=seed, device=device, tempered=tempered)
            said[name] = taught.shares.argmax(1)
    if not said:
        return None
    trusted = (
        _trusted(view, said) if validation.adjacency is visible.adjacency else next(iter(said))
    )
    return Opinion(
        trusted,
        prepare_on(testing_model("gcn"), visible, nodes, device),
        said[trusted][nodes.to(device)],
        min(COUNTING_AS, nodes.numel()) / validation.nodes.numel(),
    )


def _trusted(view: CondensingView, said: dict[str, Tensor]) -> str:
    """The first teacher who validates as well as the best, one standard error aside."""
    nodes, labels = view.validation.nodes, view.validation.labels
    right = {
        name: float((classes.cpu()[nodes] == labels).double().mean())
        for name, classes in said.items()
    }
    best = max(right.values())
    error = (best * (1 - best) / nodes.numel()) ** 0.5
    return next(name for name, share in right.items() if share >= best - error)
