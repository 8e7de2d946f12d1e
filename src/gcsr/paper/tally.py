"""How many numbers lie within the published mean ± one deviation, and which do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gcsr.paper.cells import Protocol
from gcsr.paper.compare import Compared, Number
from gcsr.wording import nouns


@dataclass(frozen=True)
class Outside:
    """A number that is further from the published one than that one's deviation."""

    compared: Compared
    number: Number

    def __str__(self) -> str:
        line, number = self.compared.line, self.number
        size = "" if line.nodes is None else f", {line.nodes} {nouns(line.nodes, 'node')}"
        ours = f"{number.mean:.{line.digits}f}" + (
            "" if number.std is None else f" ± {number.std:.{line.digits}f}"
        )
        known = f"{line.published:.{line.digits}f} ± {line.published_std:.{line.digits}f}"
        leak = " †" if number.leaks else ""
        gap = f"{number.difference:+.{line.digits}f}"
        return f"{line.dataset}{size}, {line.label}: {gap} (ours {ours}{leak}, published {known})"


@dataclass(frozen=True)
class Tally:
    """Of the ``counted`` numbers that have a published deviation, those ``outside`` of it."""

    counted: int
    outside: tuple[Outside, ...]

    @property
    def within(self) -> int:
        """How many agree."""
        return self.counted - len(self.outside)

    def __str__(self) -> str:
        return f"{self.within} of {self.counted}"


def tally(compared: Sequence[Compared], *, fair: bool = False) -> Tally:
    """Count; ``fair`` takes the number without the leak where there are two."""
    counted = 0
    outside = []
    for one in compared:
        number = one.without_leak if fair and one.without_leak is not None else one.ours
        spread = one.line.published_std
        if number.difference is None or spread is None:
            continue
        counted += 1
        # Published numbers are decimals: 0.1 + 0.2 counts as 0.3.
        if abs(number.difference) > spread + 1e-9:
            outside.append(Outside(one, number))
    return Tally(counted, tuple(outside))


def verdict(compared: Sequence[Compared], protocol: Protocol) -> tuple[list[str], list[str]]:
    """Sentences that count, and one line per number outside; both empty where nothing counts.

    A smoke run is not judged.
    """
    as_published = tally(compared)
    if protocol.quick or not as_published.counted:
        return [], []
    said = "cells lie within the published mean ± one std"
    leaks = any(one.without_leak is not None for one in compared)
    if not leaks:
        return [f"{as_published} {said}."], [str(one) for one in as_published.outside]
    fair = tally(compared, fair=True)
    twice = {id(one.number) for one in as_published.outside}
    listed = [*as_published.outside]
    listed += [one for one in fair.outside if id(one.number) not in twice]
    sentence = f"{as_published} {said} with the paper's prior (†); {fair} without the leak."
    return [sentence], [str(one) for one in listed]
