"""How experts are trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExpertRecipe:
    """Adam with coupled weight decay; a fresh Adam at a tenth of the rate from the middle on.

    Attributes:
        count: number of experts.
        epochs: length of the training schedule.
        trained_epochs: how much of it is run; predictions want all of it.
        kept_epochs: the last epoch that can be looked up later.
        seed: experts depend on this seed and the graph only, so that condensed graphs of different
            seeds learn from the same experts, as in the paper.
    """

    count: int
    epochs: int
    trained_epochs: int
    kept_epochs: int
    rate: float
    weight_decay: float
    seed: int
