"""MTT: matching training trajectories without structure (Cazenavette et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from gcsr.data.views import CondensingView
from gcsr.engines.structure import IdentityStructure, State, Structure
from gcsr.engines.trajectory.engine import ExpertSource
from gcsr.methods.trajectory_matching import TrajectoryCondenser
from gcsr.starts.sample import Start


@dataclass(frozen=True, kw_only=True)
class MTT(TrajectoryCondenser):
    """GCSR's engine with A' = I and rows sampled without message passing (``num_hops=0``).

    ``num_hops`` above 0 is the paper's ablation "message-passing initialization only".
    """

    name: ClassVar[str] = "mtt"
    summary: ClassVar[str] = "trajectory matching of features alone (the paper's ablation)"

    works_in_blocks: ClassVar[bool] = True

    num_hops: int = 0

    def _check_structure(self) -> None:
        """There is no structure to check."""

    def _graph_statistics(self, view: CondensingView, source: ExpertSource) -> dict[str, Any]:
        return {}

    def _structure(
        self,
        view: CondensingView,
        knowledge: dict[str, Any],
        labels: Tensor,
        starts: Sequence[Start],
        seeds: Sequence[int],
    ) -> tuple[Structure, State]:
        return IdentityStructure(), ()
