"""SimGC: losses of a frozen teacher and of class statistics (Xiao et al., 2024)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gcsr.engines.gradient.blocks import CondensedClasses
from gcsr.engines.gradient.engine import AlternatingStep
from gcsr.engines.iterates import QUICK_RUNS
from gcsr.engines.loop import PRECISIONS
from gcsr.engines.result import Context
from gcsr.equations.alignment import alignment, class_moments, smoothness
from gcsr.equations.propagation import normalized_adjacency
from gcsr.methods.gradient_matching import InitialState, StructuredCondenser
from gcsr.models.base import Params, Prepared
from gcsr.models.mlp import MLP
from gcsr.outofcore.estimate import Work
from gcsr.starts.sample import Start, block_labels, class_budget, rows_by_hop, sample_training_rows
from gcsr.training.classification import cross_entropy
from gcsr.training.fit import DropoutShare, TrainingRecipe, fit
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Rate, Share, Weight, Whole

HOPS = 2


@dataclass(eq=False)
class ImitateTeacher(AlternatingStep):
    """One step on the teacher's loss, the alignment and the smoothness; see :class:`SimGC`.

    Attributes:
        teacher: of every graph.
        unit: of the features.
        moments: of the real classes.
    """

    teacher: Params
    unit: float
    moments: tuple[Tensor, Tensor]
    settings: SimGC

    def loss_of(self, x: Tensor, adjacency: Tensor | None, *, train: bool) -> Tensor:
        """See :class:`SimGC`."""
        assert adjacency is not None
        adjacency = torch.where(adjacency >= self.settings.threshold, adjacency, 0)
        operator = normalized_adjacency(adjacency)
        hops = [x]
        for _ in range(HOPS):
            hops.append(operator @ hops[-1])
        scores = MLP().logits(self.teacher, Prepared(hops[-1]))
        loss = cross_entropy(scores, self.classes.targets)
        share = self.classes.share[..., 0]
        align, smooth = self.settings.alignment, self.settings.smoothness
        if align:
            condensed = class_moments(torch.cat(hops, -1) / self.unit, share)
            sizes = (share > 0).sum(-1)
            loss = loss + align * alignment(condensed, self.moments, sizes)
        if smooth:
            loss = loss + smooth * smoothness(x / self.unit, adjacency)
        return loss


@dataclass(frozen=True, kw_only=True)
class SimGC(StructuredCondenser):
    """A frozen teacher, trained on the real graph, classifies the condensed nodes.

    The loss is the teacher's cross-entropy on the condensed graph, plus ``alignment`` times the
    distance of class means and deviations of features after 0, 1 and 2 hops, plus ``smoothness`` times
    a term that is low if edges join nodes with similar features.

    Args:
        init: ``noise``, normally distributed numbers; or ``sample``, rows of random training nodes.
        alignment: weight of the statistics.
        smoothness: weight of the smoothness.
        threshold: entries of A' below it are zero, in the loss and in the result.
        units: ``relative`` measures features, and so ``feature_lr`` and both terms, in root mean
            squares of the real ones; ``absolute`` takes them as they are.
        teacher_hidden_channels, teacher_epochs, teacher_lr, teacher_dropout: the teacher, two layers on
            features after two hops, as it is when it validates best.
        validate_every: epochs between two iterates that ``best-val`` compares.
    """

    name = "simgc"
    summary = "a frozen teacher and class statistics, with generated edges (ECML 2024)"
    reference = 'Xiao et al., "Simple Graph Condensation", ECML PKDD 2024'
    beyond_training_nodes = True

    epochs: Whole = 1500
    feature_lr: Rate = 0.05
    structure_lr: Weight = 1e-3
    threshold: Share = 0.01
    smoothness: Weight = 0.1
    init: Literal["noise", "sample"] = "noise"
    alignment: Weight = 10.0
    teacher_hidden_channels: Count = 256
    teacher_epochs: Count = 600
    teacher_lr: Rate = 1e-3
    teacher_dropout: DropoutShare = 0.0
    validate_every: Count = 100

    def _work(self, nodes: int) -> Work:
        compared = len(self._compared) if self.iterate == "best-val" else 0
        return Work(
            nodes,
            hops=HOPS,
            iterations=self.epochs,
            steps=1,
            real_epochs=self.teacher_epochs,
            hidden_channels=self.teacher_hidden_channels,
            comparisons=1 + QUICK_RUNS * compared,
        )

    @property
    def _compared(self) -> Collection[int]:
        return range(0, self.epochs, self.validate_every)

    def initial_state(self, ctx: Context) -> InitialState:
        """The teachers, statistics of the real classes, and the initial rows."""
        visible, validation, dtype = ctx.view.visible, ctx.view.validation, PRECISIONS[self.dtype]
        labels = block_labels(class_budget(visible.train_labels, visible.num_classes, ctx.nodes))
        rows = [part.to(dtype) for part in rows_by_hop(visible, visible.train, HOPS, ctx.device)]
        unit = 1.0 if self.units == "absolute" else float(rows[0].square().mean().sqrt())
        real = CondensedClasses.of(visible.train_labels, visible.num_classes, ctx.device, dtype)
        *_, validated = rows_by_hop(validation, validation.nodes, HOPS, ctx.device)
        fitted = fit(
            MLP(self.teacher_hidden_channels),
            Prepared(rows[-1]),
            real.targets,
            Prepared(validated.to(dtype)),
            validation.labels.to(ctx.device),
            features=int(visible.x.shape[1]),
            recipe=TrainingRecipe(
                epochs=self.teacher_epochs,
                lr=self.teacher_lr,
                weight_decay=0.0,
                dropout=self.teacher_dropout,
            ),
            networks=list(ctx.seeds),
            seed=0,
            on_epoch=lambda epoch: ctx.progress("training", epoch, self.teacher_epochs),
        )
        starts = [self._start(ctx, rows[0], labels, unit, seed) for seed in ctx.seeds]
        moments = class_moments(torch.cat(rows, -1) / unit, real.share[..., 0])

        def step(group: slice) -> ImitateTeacher:
            x = torch.stack([start.x for start in starts[group]]).to(moments[0])
            structure = self._structure(ctx.view, x, ctx.seeds[group])
            # Here smoothness is that of features, a term of the loss.
            structure.smoothness = 0.0
            return ImitateTeacher(
                seeds=ctx.seeds[group],
                x=x,
                feature_lr=torch.full_like(x[:, :1, :1], self.feature_lr * unit),
                structure=structure,
                classes=CondensedClasses.of(labels, visible.num_classes, x.device, x.dtype),
                outer=1,
                teacher=tuple(p.detach()[group] for p in fitted.params),
                unit=unit,
                moments=moments,
                settings=self,
            )

        return InitialState(labels, starts, step)

    def _start(self, ctx: Context, rows: Tensor, labels: Tensor, unit: float, seed: int) -> Start:
        generator = make_generator(seed, "initial rows")
        if self.init == "noise":
            noise = torch.randn((labels.numel(), rows.shape[1]), generator=generator)
            return Start(unit * noise.to(rows), torch.empty(0, dtype=torch.long))
        visible = ctx.view.visible
        return sample_training_rows(visible.features, visible, labels, generator)
