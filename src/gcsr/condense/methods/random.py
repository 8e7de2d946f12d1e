"""Random: a class-balanced random subset of the training nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from gcsr.condense.condenser import Condenser, Made
from gcsr.condense.initialise import sample_training_rows
from gcsr.condense.labels import block_labels, class_budget
from gcsr.devices import stream
from gcsr.progress import Progress
from gcsr.views import CondensingView


@dataclass(frozen=True, kw_only=True)
class Random(Condenser):
    """Real training nodes, their features, and the edges among them."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a random subset of the training nodes, class by class"

    def _check(self) -> None:
        """The size is all there is."""

    def _make(
        self,
        view: CondensingView,
        nodes: int,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Made]:
        visible = view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, nodes))
        results = []
        for done, seed in enumerate(seeds, 1):
            generator = stream(seed, "initial rows")
            start = sample_training_rows(visible.x, visible, labels, generator)
            ids = np.asarray(start.nodes)
            adjacency = torch.from_numpy(visible.adjacency[ids][:, ids].toarray())
            results.append(Made(start.x, adjacency, labels, start.notes))
            progress("sampling", done, len(seeds))
        return results
