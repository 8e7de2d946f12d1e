"""How much of the race fits into a budget.

The same graph, size, budget and kind of device give the same plan, and so the same result.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcsr.condense.automatic.costs import Costs
from gcsr.condense.automatic.rounds import DRAWS, HOPS, SCOUT_ITERATIONS, TEACHERS
from gcsr.views import CondensingView


@dataclass(frozen=True)
class Plan:
    """Which starts are tried, and for how many iterations matching is.

    Args:
        teachers, hops: of the clustered starts.
        draws: how often the best of them begin k-means elsewhere.
        scouts: iterations of every matched candidate; 0: there are none.
        iterations: of the matched candidate that did best.
        seconds: what all this is expected to take.
        without: names of :data:`PARTS` that are switched off.
    """

    teachers: tuple[str, ...]
    hops: tuple[int, ...]
    draws: int
    scouts: int
    iterations: int
    seconds: float
    without: frozenset[str] = frozenset()


def plan_for(
    view: CondensingView,
    nodes: int,
    budget: float,
    kind: str,
    without: frozenset[str] = frozenset(),
) -> Plan:
    """The largest plan that is expected to take no more than ``budget`` seconds per graph."""
    costs = Costs(view, nodes, kind, without)
    asked = [name for name in TEACHERS if name not in without]
    most_teachers = 1 if "teachers" in without else len(asked)
    starts = [
        (tuple(asked[:teachers]), HOPS[:hops], 0 if "redraws" in without else draws)
        for teachers, hops, draws in _LADDER
        if teachers <= most_teachers
    ]
    for chosen in reversed(starts):
        base = costs.starts(*chosen)
        left = budget - base - costs.scouting
        most = costs.affordable(left)
        if chosen == starts[-1] and "matching" not in without and left >= 0:
            longer = most if most >= 2 * SCOUT_ITERATIONS else 0
            seconds = budget - left + (costs.longer(longer) if longer else 0.0)
            return Plan(*chosen, SCOUT_ITERATIONS, longer, seconds, without)
        if base <= budget:
            return Plan(*chosen, 0, 0, base, without)
    return Plan(*starts[0], 0, 0, costs.starts(*starts[0]), without)


# Teachers, hops and further draws of the clustered starts, from the least to the most.
_LADDER = (
    (1, 1, 0),
    (1, 2, 0),
    (1, 2, 2),
    (1, 3, 2),
    (2, 3, 2),
    (2, 3, DRAWS),
    (3, 3, DRAWS),
)
