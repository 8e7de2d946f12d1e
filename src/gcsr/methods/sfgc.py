"""SFGC: structure-free condensation (Zheng et al., NeurIPS 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor

from gcsr.engines.iterates import Best
from gcsr.engines.loop import PRECISIONS
from gcsr.engines.result import Context
from gcsr.engines.trajectory.engine import LearnedRate
from gcsr.engines.trajectory.gntk import BestByKernel
from gcsr.methods.kcenter import k_center_starts
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.starts.sample import Start
from gcsr.training.expert_recipe import ExpertRecipe, Optimizer
from gcsr.utils.errors import Count, Rate, Weight, Whole


@dataclass(frozen=True, kw_only=True)
class SnapshotCondenser(TrajectoryCondenser):
    """Settings of methods without edges whose experts are kept as snapshots.

    ``max_start`` and ``expert_steps`` are counted in snapshots, ``expert_epochs`` in epochs.

    Args:
        selection: ``kcenter``, on the hidden units of a GCN trained with ``embedding_weight_decay``
            for ``embedding_epochs``; or ``random``. ``num_hops`` above 0 takes the chosen nodes'
            rows after message passing (the paper's SFGC+MPI).
        learn_student_lr: whether η₁ is learned, from ``student_lr`` on.
        score_every: iterations between two comparisons; the start and the end are always compared.
        snapshot_every: epochs between the snapshots of an expert.
        expert_optimizer: ``adam`` or ``sgd``.
        expert_restart: a new optimizer at a tenth of the rate from the middle of the schedule on.
    """

    # As in :class:`~gcsr.methods.selection.EmbeddedSelection`.
    same_on_every_device: ClassVar[bool] = False

    num_hops: Whole = 0
    selection: Literal["kcenter", "random"] = "kcenter"
    learn_student_lr: bool = True
    score_every: Count = 10
    embedding_epochs: Count = 600
    embedding_weight_decay: Weight = 5e-4
    snapshot_every: Count = 1
    expert_optimizer: Optimizer = "adam"
    expert_restart: bool = True

    @property
    def _learned_rate(self) -> LearnedRate | None:
        return LearnedRate() if self.learn_student_lr else None

    @property
    def _snapshot_every(self) -> int:
        return self.snapshot_every

    def _recipe(self) -> ExpertRecipe:
        return replace(
            super()._recipe(), optimizer=self.expert_optimizer, restart=self.expert_restart
        )

    def _starts(self, ctx: Context, labels: Tensor) -> list[Start]:
        if self.selection == "random" or self.init == "clusters":
            return super()._starts(ctx, labels)
        return k_center_starts(
            ctx,
            labels,
            hops=self.num_hops,
            dtype=PRECISIONS[self.dtype],
            epochs=self.embedding_epochs,
            weight_decay=self.embedding_weight_decay,
        )


@dataclass(frozen=True, kw_only=True)
class SFGC(SnapshotCondenser):
    """MTT with a K-Center start, a learned student rate and a kernel that chooses the iterate.

    Args:
        iterate: ``gntk``, the iterate whose graph neural tangent kernel predicts validation labels
            with the least error; ``best-val``; or ``last``.
        gntk_ridge: λ of its ridge regression, in mean diagonals of the kernel.
        gntk_nodes: validation nodes of each class that it predicts; by default all of them, 1,000
            in all where there are more.
        gntk_draws: over how many draws of such nodes its error is averaged.
    """

    name: ClassVar[str] = "sfgc"
    summary: ClassVar[str] = "structure-free trajectory matching with a kernel's choice (2023)"
    ITERATES: ClassVar[tuple[str, ...]] = ("gntk", "last", "best-val")

    iterate: str = "gntk"
    gntk_ridge: Rate = 1.0
    gntk_nodes: Count | None = None
    gntk_draws: Count = 1

    @property
    def _stops_if_diverged(self) -> bool:
        return self.iterate == "gntk"

    def _best(self, ctx: Context, targets: Tensor) -> tuple[Best | None, int]:
        if self.iterate != "gntk":
            return super()._best(ctx, targets)
        kernel = BestByKernel(
            targets,
            ctx.view.validation,
            ctx.device,
            ridge=self.gntk_ridge,
            nodes=self.gntk_nodes,
            draws=self.gntk_draws,
        )
        return kernel, self.score_every
