"""The base classes of methods that select training nodes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gcsr.engines.result import CondensationResult, Context
from gcsr.engines.selection.coreset import embed_training_nodes
from gcsr.methods.base import Condenser
from gcsr.starts.budget import block_labels, class_budget
from gcsr.starts.sample import Pick, pick_training_rows
from gcsr.utils.devices import make_generator
from gcsr.utils.parallel import part_of
from gcsr.utils.progress import Progress
from gcsr.utils.validation import real_number, whole_number


@dataclass(frozen=True, kw_only=True)
class SelectionCondenser(Condenser):
    """Real training nodes, class by class, with their features and the edges among them."""

    @abstractmethod
    def _picker(
        self, ctx: Context, seed: int, generator: torch.Generator, progress: Progress
    ) -> Pick:
        """How the nodes of a class are chosen, for one seed; ``generator`` is the seed's own."""

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        results = []
        for done, seed in enumerate(ctx.seeds):
            generator = make_generator(seed, "initial rows")
            part = part_of(ctx.progress, done, len(ctx.seeds))
            pick = self._picker(ctx, seed, generator, part)
            start = pick_training_rows(visible.features, visible, labels, generator, pick)
            adjacency = torch.from_numpy(visible.among(start.nodes).toarray())
            results.append(CondensationResult(start.x, adjacency, labels, start.notes))
            part("sampling", 1, 1)
        return results


@dataclass(frozen=True, kw_only=True)
class EmbeddedSelection(SelectionCondenser):
    """Chooses nodes by the class scores that a GCN, trained with the condensing seed, gives them.

    Args:
        weight_decay, epochs, hidden_channels: of that GCN.
    """

    revision: ClassVar[int] = 2
    # The GCN's dropout is drawn on the device, and one node more or less like another decides.
    same_on_every_device: ClassVar[bool] = False

    weight_decay: float = 5e-4
    epochs: int = 600
    hidden_channels: int = 256

    def _check(self) -> None:
        whole_number(self, "epochs", "hidden_channels", least=1)
        real_number(self, "weight_decay")

    @abstractmethod
    def _choose(self, embeddings: Tensor, count: int) -> Tensor:
        """Which ``count`` rows of a class are kept."""

    def _picker(
        self, ctx: Context, seed: int, generator: torch.Generator, progress: Progress
    ) -> Pick:
        embeddings = embed_training_nodes(
            ctx.view,
            layer="scores",
            seed=seed,
            device=ctx.device,
            weight_decay=self.weight_decay,
            epochs=self.epochs,
            hidden_channels=self.hidden_channels,
            progress=progress,
        ).cpu()
        return lambda places, count: self._choose(embeddings[places], count)
