"""MTT: matching training trajectories without structure (Cazenavette et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.utils.errors import Rate, Whole


@dataclass(frozen=True, kw_only=True)
class MTT(TrajectoryCondenser):
    """GCSR's engine with A' = I and rows sampled without message passing (``num_hops=0``).

    ``num_hops`` above 0 is the GCSR paper's ablation "message-passing initialization only".
    """

    revision: ClassVar[int] = 4

    name: ClassVar[str] = "mtt"
    summary: ClassVar[str] = "trajectory matching of features alone (the paper's ablation)"

    works_in_blocks: ClassVar[bool] = True

    num_hops: Whole = 0
    # With GCSR's rates, chosen for starts with message passing, iterates were no better than the start.
    expert_lr: Rate = 1e-3
    feature_lr: Rate = 1e-3
