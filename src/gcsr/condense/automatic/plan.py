"""How much of the race fits into a budget.

The same graph, size, budget and kind of device give the same plan, and so the same result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gcsr.condense.automatic.costs import Costs
from gcsr.condense.automatic.rounds import (
    DRAWS,
    HOPS,
    OTHER_TEACHERS,
    SCOUT_ITERATIONS,
    TEACHERS,
    Starts,
)
from gcsr.condense.centres import GROUPINGS
from gcsr.views import CondensingView


@dataclass(frozen=True)
class Plan:
    """Which starts are tried, and for how many iterations matching is.

    Args:
        starts: the clustered ones.
        scouts: iterations of every matched candidate; 0: there are none.
        iterations: of the matched candidate that did best.
        seconds: what all this is expected to take.
        without: names of :data:`PARTS` that are switched off.
        unasked: teachers that a larger budget would ask.
    """

    starts: Starts
    scouts: int
    iterations: int
    seconds: float
    without: frozenset[str] = frozenset()
    unasked: tuple[str, ...] = ()


def plan_for(
    view: CondensingView,
    nodes: int,
    budget: float,
    kind: str,
    without: frozenset[str] = frozenset(),
    pins: Mapping[str, Any] | None = None,
    *,
    only_matching: bool = False,
) -> Plan:
    """The largest plan that is expected to take no more than ``budget`` seconds per graph.

    ``pins``: settings that are not up for choice. ``only_matching``: they leave no clustered start, so
    that something is matched however small the budget is.
    """
    costs = Costs(view, nodes, kind, without)
    differ = bool((view.visible.labels < 0).any())
    ladder = _ladder(without, pins or {}, teachers_differ=differ)
    for chosen in reversed(ladder):
        base = costs.starts(chosen)
        left = budget - base - costs.scouting
        most = costs.affordable(left)
        if chosen == ladder[-1] and "matching" not in without and left >= 0:
            longer = most if most >= 2 * SCOUT_ITERATIONS else 0
            seconds = budget - left + (costs.longer(longer) if longer else 0.0)
            return Plan(chosen, SCOUT_ITERATIONS, longer, seconds, without)
        if base <= budget and not only_matching:
            return Plan(chosen, 0, 0, base, without, _more(ladder, chosen))
    least, base = ladder[0], costs.starts(ladder[0])
    if only_matching:
        return Plan(least, SCOUT_ITERATIONS, 0, base + costs.scouting, without)
    return Plan(least, 0, 0, base, without, _more(ladder, least))


# Teachers, hops and further draws of the clustered starts, from the least to the most.
_LADDER = (
    (1, 1, 0),
    (1, 2, 0),
    (1, 3, 0),
    (1, 3, 2),
    (2, 3, 2),
    (2, 3, DRAWS),
    (3, 3, DRAWS),
)


def _more(ladder: list[Starts], chosen: Starts) -> tuple[str, ...]:
    return tuple(name for name in ladder[-1].teachers if name not in chosen.teachers)


def _ladder(
    without: frozenset[str], pins: Mapping[str, Any], *, teachers_differ: bool
) -> list[Starts]:
    """What may be tried, from the least to the most.

    Where every label is known, of an inductive graph, teachers and soft labels change nothing.
    """
    asked: tuple[str, ...] = OTHER_TEACHERS if "consistent" in without else TEACHERS
    if "teachers" in without or not teachers_differ:
        asked = asked[:1]
    grouping = pins.get("grouping", "k-means" if "grouping" in without else GROUPINGS[0])
    choices: dict[str, tuple[Any, ...]] = {"teacher": asked, "k": HOPS}
    choices |= {name: (pins[name],) for name in choices if name in pins}
    # With one kind of label pinned there is nothing to compare it with.
    soft = teachers_differ and "soft-labels" not in without and "soft_labels" not in pins
    steps = [
        Starts(
            choices["teacher"][:teachers],
            choices["k"][:hops],
            grouping,
            0 if "redraws" in without else draws,
            soft,
        )
        for teachers, hops, draws in _LADDER
    ]
    return list(dict.fromkeys(steps))
