"""The rounds of the race: who begins, and how many candidates meet which networks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from gcsr.condense.teachers import TOGETHER

# Who labels the nodes of clustered starts, and how many hops their features have seen: first things
# first, because a small budget takes the first ones alone.
TEACHERS = ("consistent", "together", "mlp")
# And who does where the one that learns from unlabelled nodes is not asked.
OTHER_TEACHERS = ("gcn", "appnp", "mlp")
HOPS = (1, 2, 0)
MATCHED = 6
FINALISTS = 3
SCOUT_ITERATIONS = 300
# How often a matched candidate looks at its iterates, the start and the end included.
LOOKS = 11
MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Starts:
    """Which clustered starts are tried.

    Args:
        teachers, hops: every combination of these.
        grouping: how nodes of a class are grouped.
        draws: how often the best of them begin to group elsewhere.
        soft: whether with soft labels too.
    """

    teachers: tuple[str, ...]
    hops: tuple[int, ...]
    grouping: str
    draws: int
    soft: bool = True

    @property
    def trained(self) -> tuple[str, ...]:
        """The teachers that are trained for them, each once."""
        named = [TOGETHER if name == "together" else (name,) for name in self.teachers]
        return tuple(dict.fromkeys(chain.from_iterable(named)))


@dataclass(frozen=True)
class Look:
    """How closely a round looks: GCNs of some width, trained for some epochs, validated so often.

    ``asks``: whether a teacher is asked for a second opinion.
    """

    hidden: int
    epochs: int
    networks: range
    validations: int = 10
    asks: bool = False


# Small networks tell good starts from bad ones if they learn for long enough: what 64 units said after
# 60 epochs was how quickly a start is learned (correlation with the accuracy of the protocol on nodes
# of no split, over starts of three splits: 0.2; 128 units after 100 epochs: 0.6). The last word have
# networks nobody met before, as wide as those of the protocol.
FIRST = Look(128, 100, range(2))
CLOSER = Look(128, 150, range(2, 5), asks=True)
LAST = Look(256, 200, range(10, 13), 20, asks=True)
CLOSELY = 8
# The best starts begin to group elsewhere too, so often.
REDRAWN, DRAWS = 4, 5
