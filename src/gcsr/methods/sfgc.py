"""SFGC: structure-free condensation (Zheng et al., NeurIPS 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.features import take_rows
from gcsr.data.views import Target
from gcsr.engines.iterates import Best
from gcsr.engines.loop import PRECISIONS
from gcsr.engines.result import Context
from gcsr.equations.gntk import KernelTarget, kernel_error
from gcsr.methods.selection import KCenterStart
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.models.sparse import SparseTopology
from gcsr.starts.sample import Start
from gcsr.training.expert_recipe import ExpertRecipe, Optimizer
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import Count, Rate, Whole, require


@dataclass(frozen=True, kw_only=True)
class SnapshotCondenser(KCenterStart, TrajectoryCondenser):
    """Settings of methods without edges whose experts are kept as snapshots.

    ``max_start`` and ``expert_steps`` are counted in snapshots, ``expert_epochs`` in epochs.

    Args:
        num_hops: above 0, rows of the chosen nodes after message passing (the paper's SFGC+MPI).
        learn_student_lr: whether η₁ is learned, from ``student_lr`` on.
        score_every: iterations between two comparisons; the start and the end are always compared.
        snapshot_every: epochs between the snapshots of an expert.
        expert_optimizer: ``adam`` or ``sgd``.
        expert_restart: a new optimizer at a tenth of the rate from the middle of the schedule on.
    """

    num_hops: Whole = 0
    learn_student_lr: bool = True
    score_every: Count = 10
    snapshot_every: Count = 1
    expert_optimizer: Optimizer = "adam"
    expert_restart: bool = True

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
        return self._k_center_starts(ctx, labels, self.num_hops, PRECISIONS[self.dtype])


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

    name = "sfgc"
    summary = "structure-free trajectory matching with a kernel's choice (2023)"
    revision = 4
    reference = (
        'Zheng et al., "Structure-free Graph Condensation: From Large-scale Graphs to '
        'Condensed Graph-free Data", NeurIPS 2023'
    )
    ITERATES = ("gntk", "last", "best-val")

    iterate: str = "gntk"
    # Those of MTT, whose start has no message passing either.
    expert_lr: Rate = 1e-3
    feature_lr: Rate = 1e-3
    gntk_ridge: Rate = 1.0
    gntk_nodes: Count | None = None
    gntk_draws: Count = 1

    @property
    def _stops_if_diverged(self) -> bool:
        return self.iterate == "gntk"

    @property
    def _compare_every(self) -> int:
        return self.score_every if self.iterate == "gntk" else super()._compare_every

    def _best(self, ctx: Context) -> Best | str:
        if self.iterate != "gntk":
            return super()._best(ctx)
        return BestByKernel(
            ctx.view.visible.num_classes,
            ctx.view.validation,
            ctx.device,
            ridge=self.gntk_ridge,
            nodes=self.gntk_nodes,
            draws=self.gntk_draws,
        )


# -- The choice of the iterate: the one whose neural tangent kernel fits validation nodes best --------

# Validation nodes of one draw: all of them up to here, then as many of each class.
USUAL_NODES = 1000
# The target's own kernel is a dense matrix of this many rows at most.
MOST_NODES = 4000


class BestByKernel(Best):
    """Keeps, for every graph, the iterate with the lowest error of kernel ridge regression.

    The target is the graph that the validation nodes induce, or a class-balanced draw of them. Nothing
    is trained, and on CUDA nothing waits for the device. A' is the identity, whatever is given.

    Args:
        ridge: lambda, in mean diagonals of the kernel.
        nodes: validation nodes of each class; ``None``: all, or 1,000 in all where there are more.
        draws: how many such draws the error is averaged over.
    """

    measure = "kernel_error"

    def __init__(
        self,
        classes: int,
        validation: Target,
        device: torch.device,
        *,
        ridge: float = 1.0,
        nodes: int | None = None,
        draws: int = 1,
    ) -> None:
        super().__init__(lowest=True)
        self.ridge = ridge
        self.goals = [
            _goal(validation, picked, classes, device)
            for picked in validation_draws(validation.labels, classes, nodes, draws)
        ]

    def score(self, x: Tensor, a: Tensor, y: Tensor) -> Tensor:
        """The mean error of every graph over the draws."""
        x, y = x.detach().double(), y.double()
        found = [kernel_error(target, shares, x, y, self.ridge) for target, shares in self.goals]
        return torch.stack(found).mean(0)

    def curve(self, graph: int) -> dict[str, Any]:
        """Errors of one graph over the iterations, and the iteration that was kept."""
        errors = torch.stack([scores[graph] for _, scores in self.scores])
        place = int(errors.nan_to_num(nan=torch.inf).argmin())
        return {**super().curve(graph), "chosen": self.scores[place][0]}


def validation_draws(labels: Tensor, classes: int, nodes: int | None, draws: int) -> list[Tensor]:
    """Places of the validation nodes of every draw, ``nodes`` of each class at most."""
    if nodes is None:
        if labels.numel() <= USUAL_NODES:
            # Every draw would be the same.
            return [torch.arange(labels.numel())]
        nodes = max(1, USUAL_NODES // classes)
    picked = []
    for draw in range(draws):
        # The same nodes for graphs of all seeds.
        generator = make_generator(0, f"validation nodes of the kernel {draw}")
        order = torch.randperm(labels.numel(), generator=generator)
        members = [order[labels[order] == label][:nodes] for label in range(classes)]
        picked.append(torch.cat(members).sort().values)
    most = max(draw.numel() for draw in picked)
    require(
        most <= MOST_NODES,
        f"gntk_nodes must select at most {MOST_NODES:,} validation nodes, got {nodes} of each class,"
        f" which are {most:,}.",
    )
    return picked


def _goal(
    validation: Target, picked: Tensor, classes: int, device: torch.device
) -> tuple[KernelTarget, Tensor]:
    """The induced graph of some validation nodes, and their one-hot labels."""
    nodes = validation.nodes[picked]
    ids = np.asarray(nodes)
    induced = validation.adjacency[ids][:, ids]
    looped = sp.csr_array(induced + sp.eye_array(ids.size, format="csr"))
    mean = SparseTopology(looped, device, torch.float64).mean
    x = take_rows(validation.x, nodes).to(device, torch.float64)
    shares = torch.nn.functional.one_hot(validation.labels[picked], classes)
    return KernelTarget.of(x, mean), shares.to(device, torch.float64)
