"""What the methods that learn a structure by gradient matching have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.divergence import DivergenceGuard
from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.engines.gradient.engine import Learned, Schedule, Step, StructureTerm, match_gradients
from gcsr.engines.gradient.learners import LEARNERS, learner_for
from gcsr.engines.gradient.real import Draws, RealSettings, RealSource
from gcsr.engines.gradient.structures import Generator
from gcsr.engines.iterates import CURVE_POINTS, BestValidated, epochs_to_look_at, looking, recorded
from gcsr.engines.result import CondensationResult, Context
from gcsr.engines.together import (
    PRECISIONS,
    UNITS,
    Precision,
    Units,
    advance_together,
    feature_unit,
)
from gcsr.methods.base import Condenser
from gcsr.models.base import Params, init_batch
from gcsr.starts.budget import block_labels, class_budget
from gcsr.starts.sample import Start, propagated_features, sample_training_rows
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require_one_of
from gcsr.utils.progress import Progress
from gcsr.utils.validation import real_number, whole_number

# -- What the methods that match gradients have in common: network, epochs, real side ----------------


@dataclass(frozen=True, eq=False)
class GradientInputs:
    """What a method starts from: labels, the rows of every graph, and the real graph."""

    labels: Tensor
    starts: list[Start]
    source: RealSource


@dataclass(frozen=True, kw_only=True)
class GradientCondenser(Condenser):
    """Settings of gradient matching that do not concern the structure.

    Args:
        num_hops: hops of message passing before training rows are sampled; 0 is plain sampling.
        model: whose gradients are matched: ``sgc`` (one linear layer), ``sgc2`` (two linear layers),
            ``sgc-relu`` (two layers with a ReLU), each before two hops, or ``gcn``.
        epochs: how many networks are drawn, one after the other.
        outer, inner: matches per network, and its training steps between two of them.
        feature_lr, model_lr: Adam's rates for X' and for the network.
        distance: between gradients: ``cosine`` per output unit, or ``squared`` error, which is
            steadier with ``gcn``.
        batch: training nodes per class and step at most.
        neighbors: ``all`` of the real nodes' neighbors, at most ``fan_out`` and then
            ``second_fan_out`` ``sampled`` ones, or ``auto``: samples only for networks with a ReLU
            whose neighborhoods are large.
        units: ``relative`` measures ``feature_lr`` in root mean squares of the initial X';
            ``absolute`` takes it as it is.
        iterate: ``best-val``, the iterate on which a quickly trained GCN validates best, the start
            included; or ``last`` (the authors).
        dtype: the precision of everything and, if it is ``float64``, of the result.
    """

    num_hops: int = 0
    model: str = "sgc"
    hidden_channels: int = 256
    epochs: int = 100
    outer: int = 10
    inner: int = 5
    feature_lr: float = 3e-3
    model_lr: float = 0.01
    distance: Literal["cosine", "squared"] = "cosine"
    batch: int = 256
    neighbors: Literal["auto", "all", "sampled"] = "auto"
    fan_out: int = 10
    second_fan_out: int = 5
    units: Units = "relative"
    iterate: Literal["last", "best-val"] = "best-val"
    dtype: Precision = "float32"

    def _check(self) -> None:
        require_one_of("model", self.model, LEARNERS)
        require_one_of("distance", self.distance, ("cosine", "squared"))
        require_one_of("neighbors", self.neighbors, ("auto", "all", "sampled"))
        require_one_of("units", self.units, UNITS)
        require_one_of("iterate", self.iterate, ("last", "best-val"))
        require_one_of("dtype", self.dtype, PRECISIONS)
        whole_number(self, "num_hops", "epochs", "inner")
        whole_number(
            self, "hidden_channels", "outer", "batch", "fan_out", "second_fan_out", least=1
        )
        real_number(self, "feature_lr", "model_lr", above=True)
        self._check_structure()

    @abstractmethod
    def _check_structure(self) -> None:
        """Raise :class:`InputError` for a setting of the structure that cannot be used."""

    @property
    def _real_edges(self) -> bool:
        """Whether networks on the real graph see its edges."""
        return True

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> Learned | None:
        """The structure that is learned; ``None`` for A' = I."""
        return None

    def _arranged(self, start: Start, view: CondensingView, labels: Tensor) -> Start:
        """The rows that X' starts with; aligned with the labels unless a method says otherwise."""
        return start

    def _pair_bytes(self, nodes: int) -> int:
        """Bytes per graph that grow with the square of its nodes."""
        return 0

    def _returned(self, adjacency: Tensor) -> Tensor:
        """A' as it is handed out."""
        return adjacency

    def run(self, ctx: Context) -> list[CondensationResult]:
        """One condensed graph per seed."""
        view, nodes, seeds = ctx.view, ctx.nodes, ctx.seeds
        device, progress = ctx.device, ctx.progress
        given = self._given(view, nodes, seeds, device)

        def run(group: slice, report: Progress) -> list[CondensationResult]:
            return self._run(view, given, group, seeds[group], report)

        each = self._pair_bytes(nodes)
        return advance_together(run, seeds, device, progress, bytes_each=each)

    def begin(self, view: CondensingView, seeds: Sequence[int], device: torch.device) -> Step:
        """The engine's state before the first epoch, all graphs together."""
        given = self._given(view, self.size(view.visible.num_nodes), seeds, device)
        return self._step(view, given, slice(None), seeds)

    def _given(
        self, view: CondensingView, nodes: int, seeds: Sequence[int], device: torch.device
    ) -> GradientInputs:
        visible = view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, nodes))
        features = propagated_features(visible, self.num_hops, device, PRECISIONS[self.dtype])
        rows = [
            sample_training_rows(features, visible, labels, make_generator(seed, "initial rows"))
            for seed in seeds
        ]
        source = RealSource.of(
            visible,
            learner_for(self.model, self.hidden_channels).reach,
            RealSettings(
                self._real_edges,
                self.neighbors,
                (self.fan_out, self.second_fan_out),
                self.batch,
            ),
            labels.unique(),
            device,
            PRECISIONS[self.dtype],
        )
        return GradientInputs(
            labels, [self._arranged(start, view, labels) for start in rows], source
        )

    def _run(
        self,
        view: CondensingView,
        given: GradientInputs,
        group: slice,
        seeds: Sequence[int],
        progress: Progress,
    ) -> list[CondensationResult]:
        """Condense some graphs along one leading dimension."""
        labels, starts, source = given.labels, given.starts[group], given.source
        step = self._step(view, given, group, seeds)
        identity = torch.eye(labels.numel()).to(step.x).expand(len(seeds), -1, -1)

        def adjacency() -> Tensor:
            learned = step.adjacency()
            return identity if learned is None else self._returned(learned)

        targets = step.classes.targets.repeat(len(seeds), 1, 1)
        chooser = None
        if self.iterate == "best-val":
            chooser = BestValidated(targets, view.validation, source.device)
        look = looking(chooser, view, seeds, targets, source.device)
        recovery = DivergenceGuard(chooser, view.journal, seeds, source.device, unit="epoch")
        losses = match_gradients(
            step,
            Schedule(self.epochs, self.outer),
            seeds=seeds,
            progress=progress,
            look=None if look is None else lambda i, at: look(i, at.x, adjacency()),
            look_at=epochs_to_look_at(self.epochs),
            recovery=recovery,
        )
        x, a = step.x, adjacency()
        if chooser is not None and chooser.x is not None and chooser.a is not None:
            x, a = chooser.x, chooser.a
        every = max(1, self.epochs // CURVE_POINTS)
        total = self.epochs * self.outer
        skipped = step.skipped.tolist()
        return [
            CondensationResult(
                x[g],
                a[g],
                labels,
                (*starts[g].notes, *recovery.notes(g), *_skip_note(int(skipped[g]), total)),
                {
                    "matching_loss": {"every": every, "values": recorded(losses[::every, g])},
                    "neighbors": source.neighbors if self._real_edges else "none",
                    **({} if chooser is None else {chooser.measure: chooser.curve(g)}),
                },
            )
            for g in range(len(seeds))
        ]

    def _step(
        self, view: CondensingView, given: GradientInputs, group: slice, seeds: Sequence[int]
    ) -> Step:
        """The engine's state before the first epoch."""
        device, dtype = given.source.device, given.source.dtype
        x = torch.stack([start.x for start in given.starts[group]])
        learner = learner_for(self.model, self.hidden_channels)
        num_classes = view.visible.num_classes
        generators = [make_generator(seed, "theta of epoch 0") for seed in seeds]
        theta = learner.params(init_batch(learner.model, x.shape[-1], num_classes, generators))
        return Step(
            x=x,
            feature_lr=self.feature_lr * feature_unit(x, self.units),
            structure=self._structure(view, x, seeds),
            learner=learner,
            classes=CondensedClasses.of(given.labels, num_classes, device, dtype),
            real=given.source.side(Draws(tuple(seeds), self.outer)),
            theta=tuple(p.to(device, dtype) for p in theta),
            theta_rate=self.model_lr,
            inner=self.inner,
            distance=self.distance,
        )


def _skip_note(skipped: int, steps: int) -> tuple[str, ...]:
    if not skipped:
        return ()
    return (f"{skipped} of {steps} steps were skipped because their gradient was not finite",)


@dataclass(frozen=True, kw_only=True)
class StructuredGradientCondenser(GradientCondenser):
    """Settings of a generator that turns features into edges.

    Args:
        structure_lr: Adam's rate for the generator, which learns in the first ten of every fifty
            epochs; X' learns in the others.
        generator_hidden_channels: its width.
        threshold: entries of A' below it are zero in the result; networks that are matched see all.
        smoothness: weight of tr(YᵀLY), which is small if edges join nodes of the same class.
        label_order: ``aligned``: every condensed node starts from a training node of its own class.
            ``released``: as the authors' code does it, with classes in the order of their numbers for
            features and in the order of their sizes for labels, so that most do not.
    """

    structure_lr: float = 1e-3
    generator_hidden_channels: int = 128
    threshold: float = 0.05
    smoothness: float = 0.0
    label_order: Literal["aligned", "released"] = "aligned"

    def _check_structure(self) -> None:
        require_one_of("label_order", self.label_order, ("aligned", "released"))
        whole_number(self, "generator_hidden_channels", least=1)
        real_number(self, "structure_lr", "smoothness")
        real_number(self, "threshold", most=1.0)
        self._check_generator()

    @abstractmethod
    def _check_generator(self) -> None:
        """Raise :class:`InputError` for a setting of the generator that cannot be used."""

    @abstractmethod
    def _generator(self) -> Generator:
        """The map from features to edges."""

    def _term(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> StructureTerm | None:
        """What is added to the loss while the generator learns."""
        return None

    def _structure(self, view: CondensingView, x: Tensor, seeds: Sequence[int]) -> Learned | None:
        generator = self._generator()
        params: Params = tuple(p.to(x) for p in generator.init(int(x.shape[-1]), seeds))
        term = self._term(view, x, seeds)
        return Learned(generator, params, self.structure_lr, self.smoothness, term)

    def _arranged(self, start: Start, view: CondensingView, labels: Tensor) -> Start:
        if self.label_order == "aligned":
            return start
        order = released_order(labels, view.visible.train_labels)
        return replace(start, x=start.x[order.to(start.x.device)], nodes=start.nodes[order])

    def _pair_bytes(self, nodes: int) -> int:
        # Three layers of all pairs, kept for the way back, and their gradients.
        return 12 * nodes**2 * self.generator_hidden_channels * PRECISIONS[self.dtype].itemsize

    def _returned(self, adjacency: Tensor) -> Tensor:
        return torch.where(adjacency >= self.threshold, adjacency, 0)


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
