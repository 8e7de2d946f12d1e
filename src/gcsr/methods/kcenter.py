"""K-Center: training nodes that cover their class (Sener and Savarese, 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from gcsr.engines.result import Context
from gcsr.methods.base import Condenser
from gcsr.methods.selection import EmbeddedSelection, embed_training_nodes, picked_by
from gcsr.starts.sample import Start, pick_training_rows, propagated_features
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Weight
from gcsr.utils.parallel import run_jobs_on
from gcsr.utils.progress import Progress


def k_center(embeddings: Tensor, count: int) -> Tensor:
    """Indices of ``count`` rows such that no row is far from all of them (Sener and Savarese, 2018).

    The first is the row nearest the mean; each further one is the row whose distance to the nearest
    chosen row is largest. Ties go to the first row; no row is chosen twice.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    distance = torch.full((rows.shape[0],), torch.inf, dtype=rows.dtype, device=rows.device)
    chosen: list[int] = []
    newest = int(_squared_distances(rows, rows.mean(0)).argmin()) if count else -1
    while len(chosen) < count:
        chosen.append(newest)
        distance = torch.minimum(distance, _squared_distances(rows, rows[newest]))
        # Rows that tie with a chosen one also have distance zero; below zero is never the largest.
        distance[newest] = -1.0
        newest = int(distance.argmax())
    return torch.tensor(chosen, dtype=torch.long)


@dataclass(frozen=True, kw_only=True)
class KCenterStart(Condenser):
    """Settings of methods that may begin at training nodes which K-Center chooses class by class.

    Args:
        selection: ``kcenter``, on the hidden units of a GCN trained with ``embedding_weight_decay``
            for ``embedding_epochs``; or ``random`` training nodes.
    """

    # As in :class:`~gcsr.methods.selection.EmbeddedSelection`.
    same_on_every_device = False

    selection: Literal["kcenter", "random"] = "kcenter"
    embedding_epochs: Count = 600
    embedding_weight_decay: Weight = 5e-4

    def _k_center_starts(
        self, ctx: Context, labels: Tensor, hops: int, dtype: torch.dtype
    ) -> list[Start]:
        """Rows of the chosen nodes after ``hops`` of message passing."""
        visible = ctx.view.visible
        features = propagated_features(visible, hops, ctx.device, dtype)

        def start(seed: int, progress: Progress) -> Start:
            embeddings = embed_training_nodes(
                ctx.view,
                layer="hidden",
                seed=seed,
                device=ctx.device,
                weight_decay=self.embedding_weight_decay,
                epochs=self.embedding_epochs,
                progress=progress,
            ).cpu()
            pick = picked_by(k_center, embeddings, visible)
            generator = make_generator(seed, "initial rows")
            return pick_training_rows(features, visible, labels, generator, pick)

        return run_jobs_on(ctx.device, [partial(start, seed) for seed in ctx.seeds], ctx.progress)


def _squared_distances(rows: Tensor, point: Tensor) -> Tensor:
    return (rows - point).square().sum(1)


@dataclass(frozen=True, kw_only=True)
class KCenter(EmbeddedSelection):
    """Real training nodes, chosen so that no node of their class is far from all of them."""

    name = "kcenter"
    summary = "training nodes that cover the embeddings of their class"
    reference = (
        'Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set '
        'Approach", ICLR 2018'
    )

    _choose = staticmethod(k_center)
