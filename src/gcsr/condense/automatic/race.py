"""Successive halving: many candidates looked at briefly, few of them closely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from gcsr.condense.automatic.calibration import Calibration
from gcsr.condense.automatic.candidates import SIMPLE, Candidate, clustered_starts, matched
from gcsr.condense.automatic.failures import FAILURES
from gcsr.condense.automatic.judge import Mark
from gcsr.condense.automatic.plan import Plan
from gcsr.condense.automatic.rounds import (
    CLOSELY,
    CLOSER,
    FINALISTS,
    FIRST,
    LAST,
    REDRAWN,
    SCOUT_ITERATIONS,
    Look,
)
from gcsr.condense.condenser import Made
from gcsr.progress import Progress


@dataclass(frozen=True, eq=False)
class Entry:
    """A candidate, what it made, and what each round it was in found out about it."""

    candidate: Candidate
    made: Made
    marks: dict[str, Mark] = field(default_factory=dict)

    def validated(self, *rounds: str) -> float:
        """The sum of its validation accuracies in some rounds."""
        return sum(self.marks[name].validation for name in rounds)

    def merit(self, *rounds: str) -> float:
        """The sum of what it is compared by."""
        return sum(self.marks[name].merit for name in rounds)


@dataclass(frozen=True, eq=False)
class Contest:
    """What a race needs: how to make a candidate, who judges, which rates suit, what was pinned."""

    make: Callable[[Candidate], Made]
    judge: Callable[[Made, Look], Mark]
    calibrated: Callable[[], Calibration | None]
    pinned: Callable[[Iterable[Candidate]], list[Candidate]]
    progress: Progress
    left_out: list[tuple[Candidate, str]] = field(default_factory=list)

    def enter(
        self, found: Iterable[Candidate], stage: str, beside: Sequence[Entry] = ()
    ) -> list[Entry]:
        """Make every candidate, as pinned; what equals another one, or one ``beside``, stays out."""
        chosen = self.pinned(found)
        entries: list[Entry] = []
        for done, one in enumerate(chosen):
            self.progress(stage, _percent(done, len(chosen)), 100)
            try:
                made = self.make(one)
            except FAILURES as error:
                self.left_out.append((one, str(error).splitlines()[0]))
                continue
            # Of an inductive graph every label is known: teachers and soft labels change nothing. And
            # where a class has one node, every draw of its group is the same.
            if not any(_same(made, entry.made) for entry in (*beside, *entries)):
                entries.append(Entry(one, made))
        self.progress(stage, 100, 100)
        return entries

    def score(self, entries: Sequence[Entry], name: str, look: Look, stage: str) -> None:
        """Judge every entry, and keep its mark under the name of the round."""
        for done, entry in enumerate(entries):
            entry.marks[name] = self.judge(entry.made, look)
            self.progress(stage, _percent(done, len(entries)), 100)
        self.progress(stage, 100, 100)


def race(contest: Contest, plan: Plan) -> tuple[Entry, list[Entry]]:
    """The winner, and everyone who took part.

    Starts meet small networks, and the best of them begin to group elsewhere too; the best of all
    these, and the simple ones, meet others for longer; matching begins from the best start; of the
    last ones networks nobody met before have half of the word.
    """
    simple = contest.enter(SIMPLE, "simple candidates")
    wanted = clustered_starts(plan.starts, tempered="tempering" not in plan.without)
    starts = contest.enter(wanted, "clustered starts")
    contest.score(starts, "first look", FIRST, "judging starts")
    again = contest.enter(
        (
            entry.candidate.with_settings(draw=draw)
            for entry in _best(starts, "first look", REDRAWN)
            for draw in range(1, 1 + plan.starts.draws)
        ),
        "other draws",
        starts,
    )
    contest.score(again, "first look", FIRST, "judging other draws")
    close = simple + _best(starts + again, "first look", CLOSELY)
    contest.score(close, "closer look", CLOSER, "judging the best starts")
    entries = simple + starts + again
    # Where no start could be made, matching is all there is.
    scouts_for = plan.scouts or (0 if starts else SCOUT_ITERATIONS)
    if scouts_for:
        clustered = [entry for entry in close if entry not in simple]
        best = [entry.candidate for entry in _best(clustered, "closer look", 1)]
        # Pins may leave no start in the race, and matching from one all the same.
        best += wanted[:1]
        contest.progress("calibrating", 0, 100)
        try:
            calibration = contest.calibrated()
        except FAILURES:
            calibration = None
        scouts = contest.enter(
            (
                one.with_settings(iterations=scouts_for, iterate="last")
                for one in matched(best[0], calibration, plan.without)
            ),
            "matching",
        )
        contest.score(scouts, "closer look", CLOSER, "judging matches")
        longer = contest.enter(
            (
                entry.candidate.with_settings(iterations=plan.iterations, iterate="best-val")
                for entry in _best(scouts, "closer look", 1 if plan.iterations else 0)
            ),
            "longer matching",
        )
        contest.score(longer, "closer look", CLOSER, "judging the longer match")
        close += scouts + longer
        entries += scouts + longer
    last = simple + [
        entry for entry in _best(close, "closer look", FINALISTS) if entry not in simple
    ]
    contest.score(last, "last word", LAST, "the last word")
    return _winner(simple, last), entries


def _winner(simple: Sequence[Entry], last: Sequence[Entry]) -> Entry:
    """The best of those that validate no worse than the simple ones do."""
    rounds = ("closer look", "last word")
    least = max((entry.validated(*rounds) for entry in simple), default=0.0)
    fit = [entry for entry in last if entry.validated(*rounds) >= least]
    # The first of equals is the simplest: entries come in that order.
    return max(fit, key=lambda entry: entry.merit(*rounds))


def _same(one: Made, other: Made) -> bool:
    if not torch.equal(one.x, other.x) or not torch.equal(one.adjacency, other.adjacency):
        return False
    hard, soft = sorted((one.y, other.y), key=lambda y: y.ndim)
    if hard.ndim == soft.ndim:
        return torch.equal(hard, soft)
    return bool(soft.gather(1, hard.clamp_min(0).to(soft.device)[:, None]).min() == 1)


def _percent(done: int, total: int) -> int:
    return 100 * done // total


def _best(entries: Iterable[Entry], name: str, count: int) -> list[Entry]:
    """The best of a round; of equals the earlier."""
    return sorted(entries, key=lambda entry: -entry.merit(name))[:count]
