"""The rounds of the race: how many candidates meet which networks."""

from __future__ import annotations

from dataclasses import dataclass

# Who labels the nodes of clustered starts, and how many hops their features have seen: first things
# first, because a small budget takes the first ones alone.
TEACHERS = ("consistent", "gcn", "appnp")
HOPS = (1, 2, 0)
MATCHED = 6
FINALISTS = 3
SCOUT_ITERATIONS = 300
# How often a matched candidate looks at its iterates, the start and the end included.
LOOKS = 11
MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Look:
    """How closely a round looks: GCNs of some width, trained for some epochs."""

    hidden: int
    epochs: int
    networks: range


# Narrow networks tell good starts from bad ones; the last word have networks nobody met before, as
# wide as those of the protocol.
FIRST = Look(64, 60, range(2))
CLOSER = Look(128, 150, range(2))
LAST = Look(256, 200, range(10, 13))
CLOSELY = 6
# The best starts begin k-means elsewhere too, so often. Where it begins matters as much as teachers do,
# and half of the validation nodes agree with the other half on it (Cora: correlation 0.7 over draws).
REDRAWN, DRAWS = 4, 5
