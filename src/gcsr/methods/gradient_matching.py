"""The base classes of methods that match gradients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.engines.gradient.engine import (
    KEEP_EVERY,
    AlternatingStep,
    LearnedStructure,
    MatchGradients,
)
from gcsr.engines.gradient.learners import LEARNERS, ClassMeans, Network
from gcsr.engines.gradient.real import RealSource
from gcsr.engines.gradient.structures import EdgeGenerator, Generator, TransportTerm
from gcsr.engines.iterates import QUICK_RUNS, epochs_to_compare
from gcsr.engines.loop import (
    PRECISIONS,
    Precision,
    Units,
    advance_together,
    feature_unit,
    learn,
)
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.base import Condenser
from gcsr.models.base import Params
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import (
    Start,
    block_labels,
    class_budget,
    propagated_features,
    sampled_starts,
)
from gcsr.utils.errors import Count, Rate, Share, Weight, Whole, require_one_of

# A linear layer has as many outputs as classes; an estimate counts so many.
LINEAR_CHANNELS = 16


@dataclass(frozen=True, eq=False)
class InitialState:
    """State of all graphs of a run before the first epoch.

    Attributes:
        labels, starts: the condensed labels, and the initial rows of every graph.
        step: makes the engine's state for some of the graphs.
        details: more provenance.
    """

    labels: Tensor
    starts: list[Start]
    step: Callable[[slice], AlternatingStep]
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AlternatingCondenser(Condenser):
    """Settings of methods that train X' and A' epoch by epoch.

    Args:
        epochs: number of epochs.
        feature_lr: Adam's rate for X'.
        units: ``relative`` measures ``feature_lr`` in root mean squares of the initial X';
            ``absolute`` takes it as it is.
        iterate: ``best-val``, the iterate on which a quickly trained GCN validates best, the start
            included; or ``last`` (the authors).
        dtype: the precision of everything and, if it is ``float64``, of the result.
    """

    epochs: Whole = 100
    feature_lr: Rate = 3e-3
    units: Units = "relative"
    iterate: Literal["last", "best-val"] = "best-val"
    dtype: Precision = "float32"

    @abstractmethod
    def initial_state(self, ctx: Context) -> InitialState:
        """The state before the first epoch."""

    @property
    def _compared(self) -> Collection[int]:
        """Epochs before which iterates are compared."""
        return epochs_to_compare(self.epochs)

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> LearnedStructure:
        """The structure that is learned; by default A' = I."""
        return LearnedStructure()

    def _pair_bytes(self, nodes: int) -> int:
        """Bytes per graph that grow with the square of its nodes."""
        return 0

    def _returned(self, adjacency: Tensor) -> Tensor:
        """A' of the result."""
        return adjacency

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        initial = self.initial_state(ctx)
        return advance_together(
            lambda part, group: self._run(part, initial, group),
            ctx,
            bytes_each=self._pair_bytes(ctx.nodes),
        )

    def _run(self, ctx: Context, initial: InitialState, group: slice) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension."""
        step, graphs = initial.step(group), len(ctx.seeds)
        identity = torch.eye(ctx.nodes).to(step.x).expand(graphs, -1, -1)
        targets = step.classes.targets.repeat(graphs, 1, 1)

        def iterate(_: int) -> tuple[Tensor, ...]:
            learned = step.adjacency()
            return step.x, identity if learned is None else self._returned(learned), targets

        made = learn(
            ctx,
            step,
            self.epochs,
            iterate,
            self.iterate,
            compare_at=self._compared,
            unit="epoch",
            check_every=1,
            keep_every=KEEP_EVERY,
        )
        x, a, _ = made.iterate
        total, results = self.epochs * step.outer, []
        for g, start in enumerate(initial.starts[group]):
            notes, skipped = (*start.notes, *made.notes[g]), int(step.skipped[g])
            if skipped:
                why = "because their gradient was not finite"
                notes = (*notes, f"{skipped} of {total} steps were skipped {why}")
            details = made.details[g] | initial.details
            results.append(CondensationResult(x[g], a[g], initial.labels, notes, details))
        return results


@dataclass(frozen=True, kw_only=True)
class GradientCondenser(AlternatingCondenser):
    """Settings of gradient matching that do not concern the structure.

    Args:
        num_hops: hops of message passing before training rows are sampled; 0 is plain sampling.
        model: whose gradients are matched: ``sgc`` (one linear layer), ``sgc2`` (two linear layers),
            ``sgc-relu`` (two layers with a ReLU), each before two hops, or ``gcn``.
        epochs: number of epochs; each draws a new network.
        outer, inner: matches per network, and its training steps between two of them.
        model_lr: Adam's rate for the network.
        distance: between gradients: ``cosine`` per output unit; ``squared`` error, which is steadier
            with ``gcn``; or ``relative``, the squared error over the real gradient's square.
        batch: training nodes per class and step at most.
        neighbors: ``all`` of the real nodes' neighbors, at most ``fan_out`` and then
            ``second_fan_out`` ``sampled`` ones, or ``auto``: samples only for networks with a ReLU
            whose neighborhoods are large.
    """

    revision = 2
    # Whether networks on the real graph see its edges.
    real_edges: ClassVar[bool] = True
    # Whether a class counts by its share of the condensed nodes; otherwise all count the same.
    weighs_classes: ClassVar[bool] = True

    num_hops: Whole = 0
    model: str = "sgc"
    hidden_channels: Count = 256
    outer: Count = 10
    inner: Whole = 5
    model_lr: Rate = 0.01
    distance: Literal["cosine", "squared", "relative"] = "cosine"
    batch: Count = 256
    neighbors: Literal["auto", "all", "sampled"] = "auto"
    fan_out: Count = 10
    second_fan_out: Count = 5

    def _check(self) -> None:
        require_one_of("model", self.model, LEARNERS)

    def _work(self, nodes: int) -> Work:
        compared = len(epochs_to_compare(self.epochs)) if self.iterate == "best-val" else 0
        return Work(
            nodes,
            hops=max(2, self.num_hops),
            iterations=self.epochs * self.outer,
            steps=1 + self.inner,
            hidden_channels=LINEAR_CHANNELS if self.model == "sgc" else self.hidden_channels,
            comparisons=1 + QUICK_RUNS * compared,
        )

    def _arranged(self, start: Start, view: CondensingView, labels: Tensor) -> Start:
        """The initial rows in the order of the labels."""
        return start

    def _rows(self, ctx: Context, labels: Tensor) -> list[Start]:
        """The initial rows: those of random training nodes."""
        visible = ctx.view.visible
        features = propagated_features(visible, self.num_hops, ctx.device, PRECISIONS[self.dtype])
        return sampled_starts(features, visible, labels, ctx.seeds)

    def _matched(self, learner: Network) -> Network | ClassMeans:
        """What is compared: by default the network's gradients."""
        return learner

    def initial_state(self, ctx: Context) -> InitialState:
        """Gradients of the real graph, the initial rows, and the networks of the first epoch."""
        view, visible = ctx.view, ctx.view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        learner = LEARNERS[self.model](self.hidden_channels)
        source = RealSource(
            visible,
            learner.reach,
            labels.unique(),
            batch=self.batch,
            edges=self.real_edges,
            neighbors=self.neighbors,
            fan_outs=(self.fan_out, self.second_fan_out),
            device=ctx.device,
            dtype=PRECISIONS[self.dtype],
        )
        starts = [self._arranged(start, view, labels) for start in self._rows(ctx, labels)]

        def step(group: slice) -> MatchGradients:
            seeds = ctx.seeds[group]
            x = torch.stack([start.x for start in starts[group]]).to(source.operator.device)
            classes = CondensedClasses.of(labels, visible.num_classes, x.device, x.dtype)
            if not self.weighs_classes:
                classes = replace(classes, importance=torch.ones_like(classes.importance))
            return MatchGradients(
                seeds=seeds,
                x=x,
                feature_lr=self.feature_lr * feature_unit(x, self.units),
                structure=self._structure(view, x, seeds),
                learner=learner,
                matched=self._matched(learner),
                classes=classes,
                real=source.side(seeds, self.outer),
                model_lr=self.model_lr,
                outer=self.outer,
                inner=self.inner,
                distance=self.distance,
            )

        details = {"neighbors": source.neighbors if self.real_edges else "none"}
        return InitialState(labels, starts, step, details)


@dataclass(frozen=True, kw_only=True)
class StructuredCondenser(AlternatingCondenser):
    """Settings of a generator that turns features into edges.

    Args:
        structure_lr: Adam's rate for the generator, which is trained in the first ten of every fifty
            epochs; X' is trained in the others.
        generator_hidden_channels: hidden channels of the generator.
        threshold: entries of A' below it are zero in the result; networks that are matched see all.
        smoothness: weight of tr(YᵀLY), which is small if edges join nodes of the same class.
    """

    # The map from features to edges, and of how many epochs it learns in the first ten.
    generator: ClassVar[type[Generator]] = EdgeGenerator
    period: ClassVar[int] = 50

    structure_lr: Weight = 1e-3
    generator_hidden_channels: Count = 128
    threshold: Share = 0.05
    smoothness: Weight = 0.0

    def _term(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> TransportTerm | None:
        """What is added to the loss while the generator learns."""
        return None

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> LearnedStructure:
        generator = self.generator(self.generator_hidden_channels)
        params: Params = tuple(p.to(x) for p in generator.init(int(x.shape[-1]), seeds))
        term = self._term(view, x, seeds)
        return LearnedStructure(
            generator, params, self.structure_lr, self.smoothness, term, period=self.period
        )

    def _pair_bytes(self, nodes: int) -> int:
        # Three layers of all pairs, kept for the backward pass, and their gradients.
        return 12 * nodes**2 * self.generator_hidden_channels * PRECISIONS[self.dtype].itemsize

    def _returned(self, adjacency: Tensor) -> Tensor:
        # The last elements of a vectorized sigmoid may differ in the last bit.
        even = (adjacency + adjacency.mT) / 2
        return torch.where(even >= self.threshold, even, 0)


@dataclass(frozen=True, kw_only=True)
class StructuredGradientCondenser(StructuredCondenser, GradientCondenser):
    """Gradient matching with a generator of edges.

    Args:
        label_order: ``aligned``: every condensed node starts from a training node of its own class.
            ``released``: as the authors' code does it, with classes in the order of their numbers for
            features and in the order of their sizes for labels, so that most do not.
    """

    label_order: Literal["aligned", "released"] = "aligned"

    def _arranged(self, start: Start, view: CondensingView, labels: Tensor) -> Start:
        if self.label_order == "aligned":
            return start
        order = released_order(labels, view.visible.train_labels)
        return replace(start, x=start.x[order.to(start.x.device)], nodes=start.nodes[order])


def released_order(labels: Tensor, train_labels: Tensor) -> Tensor:
    """Which sampled row each condensed node starts from in GCond's released code.

    Rows are sampled class by class in the order of class numbers; labels come class by class in the
    order of ascending counts among the training labels, equal counts in order of first appearance.
    """
    seen = list(dict.fromkeys(train_labels.tolist()))
    counts = torch.bincount(train_labels)
    by_count = sorted(seen, key=lambda label: int(counts[label]))
    released = torch.cat([labels[labels == label] for label in by_count])
    # Condensed nodes lie in the order of class numbers: take the released ones in that order.
    return released.argsort(stable=True)
