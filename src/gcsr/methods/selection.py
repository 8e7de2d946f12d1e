"""Methods that select training nodes, and the starts of methods that begin at such nodes."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from gcsr.data.condensed import CondensedGraph
from gcsr.data.views import CondensingView, VisibleGraph, trained_places
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.models.gcn import GCN
from gcsr.outofcore.estimate import Work
from gcsr.outofcore.real import real_graph
from gcsr.starts.sample import (
    Pick,
    Start,
    block_labels,
    class_budget,
    pick_training_rows,
    propagated_features,
)
from gcsr.training.fit import TrainingRecipe, fit_on_real
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Weight
from gcsr.utils.parallel import part_of, run_jobs_on
from gcsr.utils.progress import Progress, silent

logger = logging.getLogger(__name__)
Layer = Literal["scores", "hidden"]


def embed_training_nodes(
    view: CondensingView,
    *,
    layer: Layer,
    seed: int,
    device: torch.device,
    weight_decay: float = 5e-4,
    epochs: int = 600,
    hidden_channels: int = 256,
    progress: Progress = silent,
) -> Tensor:
    """One row per training node that is embedded (:func:`trained_places`), in their order.

    A two-layer GCN (dropout 0.5, Adam at 0.01, from the middle on at a tenth of it) is trained on the
    visible graph and kept as it was when it validated best. Rows are its log-softmax ``scores`` (of a
    multi-label graph the probabilities of every label) or the activations of its ``hidden`` layer,
    without dropout.
    """
    model = GCN(hidden_channels=hidden_channels)
    fitted, train = fit_on_real(
        model,
        real_graph(view.visible, device),
        view,
        recipe=TrainingRecipe(epochs=epochs, weight_decay=weight_decay, dropout=0.5),
        networks=range(1),
        seed=seed,
        on_epoch=lambda epoch: progress("training the embedding", epoch, epochs),
    )
    with torch.no_grad():
        if layer == "hidden":
            (outer,) = train.outer
            return outer.pick(model.activations(fitted.params, train))[0]
        logits = model.logits(fitted.params, train)[0]
        return logits.sigmoid() if view.visible.multi_label else logits.log_softmax(-1)


def picked_by(
    choose: Callable[[Tensor, int], Tensor], embeddings: Tensor, visible: VisibleGraph
) -> Pick:
    """Chooses among the members of a class that are embedded; of the others where these are too few."""
    embedded = trained_places(visible)

    def pick(places: Tensor, count: int) -> Tensor:
        inside = torch.isin(places, embedded)
        rows = embeddings[torch.searchsorted(embedded, places[inside])]
        chosen = inside.nonzero().flatten()[choose(rows, min(count, rows.shape[0]))]
        others = (~inside).nonzero().flatten()[: count - chosen.numel()]
        return torch.cat([chosen, others])

    return pick


@dataclass(frozen=True, kw_only=True)
class SelectionCondenser(Condenser):
    """Real training nodes, class by class, with their features and the edges among them.

    Of a multi-label graph they are chosen among all training nodes together.
    """

    multi_label = True
    works_in_blocks = True

    @abstractmethod
    def _picker(
        self, ctx: Context, seed: int, generator: torch.Generator, progress: Progress
    ) -> Pick:
        """How the nodes of a class are chosen, for one seed; ``generator`` is the seed's own."""

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        visible = ctx.view.visible
        strata = block_labels(class_budget(visible.train_strata, visible.num_classes, ctx.nodes))
        results = []
        for done, seed in enumerate(ctx.seeds):
            generator = make_generator(seed, "initial rows")
            part = part_of(ctx.progress, done, len(ctx.seeds))
            pick = self._picker(ctx, seed, generator, part)
            start = pick_training_rows(visible.features, visible, strata, generator, pick)
            adjacency = torch.from_numpy(visible.among(start.nodes).toarray())
            labels = visible.labels[start.nodes]
            y = labels.float() if visible.multi_label else labels
            results.append(CondensationResult(start.x, adjacency, y, start.notes))
            part("sampling", 1, 1)
        return results

    def _condense(self, view: CondensingView, *rest: Any, **named: Any) -> list[CondensedGraph]:
        graphs = super()._condense(view, *rest, **named)
        # Notes of a sample, here on nodes that repeat, are the same for every seed.
        for note in graphs[0].provenance["notes"][len(view.notes) :]:
            logger.warning("%s: %s", self.name, note)
        return graphs


@dataclass(frozen=True, kw_only=True)
class Random(SelectionCondenser):
    """A class-balanced random subset of the training nodes, and the edges among them."""

    name = "random"
    summary = "a random subset of the training nodes, class by class"

    def _work(self, nodes: int) -> Work:
        return Work(nodes)

    def _picker(
        self, ctx: Context, seed: int, generator: torch.Generator, progress: Progress
    ) -> Pick:
        return lambda places, count: torch.randperm(places.numel(), generator=generator)[:count]


@dataclass(frozen=True, kw_only=True)
class EmbeddedSelection(SelectionCondenser):
    """Chooses nodes by the class scores that a GCN, trained with the condensing seed, gives them.

    Args:
        weight_decay, epochs, hidden_channels: of that GCN.
    """

    revision = 2
    # The GCN's dropout is drawn on the device, and one node more or less like another decides.
    same_on_every_device = False

    weight_decay: Weight = 5e-4
    epochs: Count = 600
    hidden_channels: Count = 256

    def _work(self, nodes: int) -> Work:
        return Work(nodes, real_epochs=self.epochs, hidden_channels=self.hidden_channels)

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
        return picked_by(self._choose, embeddings, ctx.view.visible)


def herd(embeddings: Tensor, count: int) -> Tensor:
    r"""Indices of ``count`` rows whose running mean stays near the mean of all (Welling, 2009).

    The i-th choice, i = 1, 2, ..., is the unused row e that minimizes
    :math:`\| i \mu - \sum_{chosen} e' - e \|_2`, where :math:`\mu` is the mean of all rows. Ties go
    to the first row.
    """
    if count > embeddings.shape[0]:
        raise ValueError(f"{count} rows cannot be chosen from {embeddings.shape[0]}")
    rows = embeddings.double()
    mean = rows.mean(0)
    used = torch.zeros(rows.shape[0], dtype=torch.bool, device=rows.device)
    missing = mean.clone()
    chosen: list[int] = []
    for _ in range(count):
        distance = (missing - rows).square().sum(1).masked_fill(used, torch.inf)
        newest = int(distance.argmin())
        chosen.append(newest)
        used[newest] = True
        missing = missing + mean - rows[newest]
    return torch.tensor(chosen, dtype=torch.long)


@dataclass(frozen=True, kw_only=True)
class Herding(EmbeddedSelection):
    """Real training nodes, chosen so that their mean stays near the mean of their class."""

    name = "herding"
    summary = "training nodes whose mean embedding is that of their class"
    reference = 'Welling, "Herding Dynamical Weights to Learn", ICML 2009'

    _choose = staticmethod(herd)


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
    newest = int((rows - rows.mean(0)).square().sum(1).argmin()) if count else -1
    while len(chosen) < count:
        chosen.append(newest)
        distance = torch.minimum(distance, (rows - rows[newest]).square().sum(1))
        # Rows that tie with a chosen one also have distance zero; below zero is never the largest.
        distance[newest] = -1.0
        newest = int(distance.argmax())
    return torch.tensor(chosen, dtype=torch.long)


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


@dataclass(frozen=True, kw_only=True)
class KCenterStart(Condenser):
    """Settings of methods that may begin at training nodes which K-Center chooses class by class.

    Args:
        selection: ``kcenter``, on the hidden units of a GCN trained with ``embedding_weight_decay``
            for ``embedding_epochs``; or ``random`` training nodes.
    """

    # As in :class:`EmbeddedSelection`.
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
