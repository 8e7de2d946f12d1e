"""Methods that keep real training nodes: which ones is all that they differ in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.condense.condenser import Condenser, Made
from gcsr.condense.embed import embed_training_nodes
from gcsr.condense.fields import real_number, whole_number
from gcsr.condense.initialise import Pick, pick_training_rows
from gcsr.condense.labels import block_labels, class_budget
from gcsr.devices import stream
from gcsr.parallel import part_of
from gcsr.progress import Progress
from gcsr.views import CondensingView


@dataclass(frozen=True, kw_only=True)
class SelectionCondenser(Condenser):
    """Real training nodes, class by class, with their features and the edges among them."""

    @abstractmethod
    def _picker(
        self,
        view: CondensingView,
        seed: int,
        generator: torch.Generator,
        device: torch.device,
        progress: Progress,
    ) -> Pick:
        """How the nodes of a class are chosen, for one seed; ``generator`` is the seed's own."""

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
        for done, seed in enumerate(seeds):
            generator = stream(seed, "initial rows")
            part = part_of(progress, done, len(seeds))
            pick = self._picker(view, seed, generator, device, part)
            start = pick_training_rows(visible.features, visible, labels, generator, pick)
            adjacency = torch.from_numpy(visible.among(start.nodes).toarray())
            results.append(Made(start.x, adjacency, labels, start.notes))
            part("sampling", 1, 1)
        return results


@dataclass(frozen=True, kw_only=True)
class EmbeddedSelection(SelectionCondenser):
    """Chooses nodes by the class scores that a GCN, trained with the condensing seed, gives them.

    Args:
        weight_decay, epochs, hidden: of that GCN.
    """

    # The GCN's dropout is drawn on the device, and one node more or less like another decides.
    same_on_every_device: ClassVar[bool] = False

    weight_decay: float = 5e-4
    epochs: int = 600
    hidden: int = 256

    def _check(self) -> None:
        whole_number(self, "epochs", "hidden", least=1)
        real_number(self, "weight_decay")

    @abstractmethod
    def _choose(self, embeddings: Tensor, count: int) -> Tensor:
        """Which ``count`` rows of a class are kept."""

    def _picker(
        self,
        view: CondensingView,
        seed: int,
        generator: torch.Generator,
        device: torch.device,
        progress: Progress,
    ) -> Pick:
        embeddings = embed_training_nodes(
            view,
            layer="scores",
            seed=seed,
            device=device,
            weight_decay=self.weight_decay,
            epochs=self.epochs,
            hidden=self.hidden,
            progress=progress,
        ).cpu()
        return lambda places, count: self._choose(embeddings[places], count)
