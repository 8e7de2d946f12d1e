"""How experts are trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Optimiser = Literal["adam", "sgd"]
OPTIMISERS: tuple[Optimiser, ...] = ("adam", "sgd")


@dataclass(frozen=True)
class ExpertRecipe:
    """Coupled weight decay; by default a fresh Adam at a tenth of the rate from the middle on.

    Weights are looked up by *snapshot*: snapshot i is the state after ``i * snapshot_every`` epochs.

    Attributes:
        count: number of experts.
        epochs: length of the training schedule.
        trained_epochs: how much of it is run; predictions want all of it.
        kept_epochs: the last epoch that can be looked up later.
        seed: experts depend on this seed and the graph only, so that condensed graphs of different
            seeds learn from the same experts, as in the paper.
        snapshot_every: epochs from one snapshot to the next.
        optimiser: ``adam``, or plain ``sgd``.
        restart: whether the rate drops to a tenth, with fresh moments, in the middle.
        unread: snapshots from the first of these up to, not including, the second are never looked
            up and not kept.
    """

    count: int
    epochs: int
    trained_epochs: int
    kept_epochs: int
    rate: float
    weight_decay: float
    seed: int
    snapshot_every: int = 1
    optimiser: Optimiser = "adam"
    restart: bool = True
    unread: tuple[int, int] = (0, 0)

    @property
    def last_snapshot(self) -> int:
        """The last snapshot that can be looked up."""
        return self.kept_epochs // self.snapshot_every

    @property
    def rows(self) -> int:
        """How many snapshots of an expert are kept."""
        return self.last_snapshot + 1 - (self.unread[1] - self.unread[0])

    def row(self, snapshot: int) -> int | None:
        """Where a snapshot lies among the kept ones of its expert; ``None`` if it is not kept."""
        first, end = self.unread
        if snapshot > self.last_snapshot or first <= snapshot < end:
            return None
        return snapshot if snapshot < first else snapshot - (end - first)
