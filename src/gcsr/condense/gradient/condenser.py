"""What the methods that match gradients have in common: network, epochs, real side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcsr.condense.condenser import Condenser, Made
from gcsr.condense.fields import real_number, whole_number
from gcsr.condense.gradient.blocks import CondensedClasses
from gcsr.condense.gradient.engine import Schedule, match_gradients
from gcsr.condense.gradient.learners import LEARNERS, learner_for
from gcsr.condense.gradient.real import Draws
from gcsr.condense.gradient.source import RealSettings, RealSource
from gcsr.condense.gradient.step import Learned, Step
from gcsr.condense.initialise import Start, propagated_features, sample_training_rows
from gcsr.condense.labels import block_labels, class_budget
from gcsr.condense.recovery import Recovery
from gcsr.condense.select import CURVE_POINTS, BestValidated, epochs_to_look_at, looking, recorded
from gcsr.condense.together import (
    PRECISIONS,
    UNITS,
    Precision,
    Units,
    advance_together,
    feature_unit,
)
from gcsr.devices import stream
from gcsr.errors import require_one_of
from gcsr.models import init_batch
from gcsr.progress import Progress
from gcsr.views import CondensingView


@dataclass(frozen=True, eq=False)
class Given:
    """What a method starts from: labels, the rows of every graph, and the real graph."""

    labels: Tensor
    starts: list[Start]
    source: RealSource


@dataclass(frozen=True, kw_only=True)
class GradientCondenser(Condenser):
    """Settings of gradient matching that do not concern the structure.

    Args:
        k: hops of message passing before training rows are sampled; 0 is plain sampling.
        model: whose gradients are matched: ``sgc`` (one linear layer), ``sgc2`` (two linear layers),
            ``sgc-relu`` (two layers with a ReLU), each before two hops, or ``gcn``.
        epochs: how many networks are drawn, one after the other.
        outer, inner: matches per network, and its training steps between two of them.
        feature_rate, model_rate: Adam's rates for X' and for the network.
        distance: between gradients: ``cosine`` per output unit, or ``squared`` error, which is
            steadier with ``gcn``.
        batch: training nodes per class and step at most.
        neighbours: ``all`` of the real nodes' neighbours, at most ``fan_out`` and then
            ``second_fan_out`` ``sampled`` ones, or ``auto``: samples only for networks with a ReLU
            whose neighbourhoods are large.
        units: ``relative`` measures ``feature_rate`` in root mean squares of the initial X';
            ``absolute`` takes it as it is.
        iterate: ``best-val``, the iterate on which a quickly trained GCN validates best, the start
            included; or ``last`` (the authors).
        dtype: the precision of everything and, if it is ``float64``, of the result.
    """

    k: int = 0
    model: str = "sgc"
    hidden: int = 256
    epochs: int = 100
    outer: int = 10
    inner: int = 5
    feature_rate: float = 3e-3
    model_rate: float = 0.01
    distance: Literal["cosine", "squared"] = "cosine"
    batch: int = 256
    neighbours: Literal["auto", "all", "sampled"] = "auto"
    fan_out: int = 10
    second_fan_out: int = 5
    units: Units = "relative"
    iterate: Literal["last", "best-val"] = "best-val"
    dtype: Precision = "float32"

    def _check(self) -> None:
        require_one_of("model", self.model, LEARNERS)
        require_one_of("distance", self.distance, ("cosine", "squared"))
        require_one_of("neighbours", self.neighbours, ("auto", "all", "sampled"))
        require_one_of("units", self.units, UNITS)
        require_one_of("iterate", self.iterate, ("last", "best-val"))
        require_one_of("dtype", self.dtype, PRECISIONS)
        whole_number(self, "k", "epochs", "inner")
        whole_number(self, "hidden", "outer", "batch", "fan_out", "second_fan_out", least=1)
        real_number(self, "feature_rate", "model_rate", above=True)
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

    def _make(
        self,
        view: CondensingView,
        nodes: int,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Made]:
        given = self._given(view, nodes, seeds, device)

        def run(group: slice, report: Progress) -> list[Made]:
            return self._run(view, given, group, seeds[group], report)

        each = self._pair_bytes(nodes)
        return advance_together(run, seeds, device, progress, bytes_each=each)

    def begin(self, view: CondensingView, seeds: Sequence[int], device: torch.device) -> Step:
        """The engine's state before the first epoch, all graphs together."""
        given = self._given(view, self.size(view.visible.num_nodes), seeds, device)
        return self._step(view, given, slice(None), seeds)

    def _given(
        self, view: CondensingView, nodes: int, seeds: Sequence[int], device: torch.device
    ) -> Given:
        visible = view.visible
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, nodes))
        features = propagated_features(visible, self.k, device, PRECISIONS[self.dtype])
        rows = [
            sample_training_rows(features, visible, labels, stream(seed, "initial rows"))
            for seed in seeds
        ]
        source = RealSource.of(
            visible,
            learner_for(self.model, self.hidden).reach,
            RealSettings(
                self._real_edges,
                self.neighbours,
                (self.fan_out, self.second_fan_out),
                self.batch,
            ),
            labels.unique(),
            device,
            PRECISIONS[self.dtype],
        )
        return Given(labels, [self._arranged(start, view, labels) for start in rows], source)

    def _run(
        self,
        view: CondensingView,
        given: Given,
        group: slice,
        seeds: Sequence[int],
        progress: Progress,
    ) -> list[Made]:
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
        recovery = Recovery(chooser, view.journal, seeds, source.device, unit="epoch")
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
            Made(
                x[g],
                a[g],
                labels,
                (*starts[g].notes, *recovery.notes(g), *_skip_note(int(skipped[g]), total)),
                {
                    "matching_loss": {"every": every, "values": recorded(losses[::every, g])},
                    "neighbours": source.neighbours if self._real_edges else "none",
                    **({} if chooser is None else {chooser.measure: chooser.curve(g)}),
                },
            )
            for g in range(len(seeds))
        ]

    def _step(self, view: CondensingView, given: Given, group: slice, seeds: Sequence[int]) -> Step:
        """The engine's state before the first epoch."""
        device, dtype = given.source.device, given.source.dtype
        x = torch.stack([start.x for start in given.starts[group]])
        learner = learner_for(self.model, self.hidden)
        num_classes = view.visible.num_classes
        generators = [stream(seed, "theta of epoch 0") for seed in seeds]
        theta = learner.params(init_batch(learner.model, x.shape[-1], num_classes, generators))
        return Step(
            x=x,
            feature_rate=self.feature_rate * feature_unit(x, self.units),
            structure=self._structure(view, x, seeds),
            learner=learner,
            classes=CondensedClasses.of(given.labels, num_classes, device, dtype),
            real=given.source.side(Draws(tuple(seeds), self.outer)),
            theta=tuple(p.to(device, dtype) for p in theta),
            theta_rate=self.model_rate,
            inner=self.inner,
            distance=self.distance,
        )


def _skip_note(skipped: int, steps: int) -> tuple[str, ...]:
    if not skipped:
        return ()
    return (f"{skipped} of {steps} steps were skipped because their gradient was not finite",)
