"""MTT: matching training trajectories without structure (Cazenavette et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.utils.errors import Whole


@dataclass(frozen=True, kw_only=True)
class MTT(TrajectoryCondenser):
    """GCSR's engine with A' = I and rows sampled without message passing (``num_hops=0``).

    ``num_hops`` above 0 is the GCSR paper's ablation "message-passing initialization only".
    """

    name = "mtt"
    summary = "trajectory matching of features alone (the paper's ablation)"
    reference = (
        'Cazenavette et al., "Dataset Distillation by Matching Training Trajectories", CVPR 2022'
    )

    works_in_blocks = True

    num_hops: Whole = 0
