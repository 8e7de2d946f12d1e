"""Automatic: the method and settings that do best on this graph in a race, within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar

import torch

from gcsr.blocks import Work
from gcsr.condense.automatic import (
    PARTS,
    Calibration,
    Candidate,
    Contest,
    Entry,
    Judge,
    Opinion,
    Plan,
    calibrate,
    candidates,
    plan_for,
    race,
    remembering,
    second_opinion,
)
from gcsr.condense.automatic.candidates import Settings
from gcsr.condense.automatic.rounds import Starts
from gcsr.condense.condenser import Condenser, Made
from gcsr.condense.fields import real_number
from gcsr.condense.held import held_bytes
from gcsr.condense.labels import class_budget
from gcsr.condense.methods.clusters import Clusters
from gcsr.condense.methods.gcsr import GCSR
from gcsr.condense.methods.herding import Herding
from gcsr.condense.methods.mtt import MTT
from gcsr.condense.methods.random import Random
from gcsr.errors import InputError, require, require_one_of
from gcsr.graph import Graph
from gcsr.graph.stored import StoredGraph
from gcsr.parallel import part_of
from gcsr.progress import Progress
from gcsr.views import CondensingView

CONTESTANTS: dict[str, type[Condenser]] = {
    method.name: method for method in (Random, Herding, Clusters, MTT, GCSR)
}
OWN = ("nodes", "ratio")
# Settings that bound memory or disk and change no result.
BOUNDS = frozenset(
    f.name for method in CONTESTANTS.values() for f in fields(method) if f.metadata.get("resource")
)
# Parts that are switched off, and the one value that a pinned setting may then have.
CONTRADICTED = {
    "tempering": ("tempered", False),
    "grouping": ("grouping", "k-means"),
    "soft-labels": ("soft_labels", False),
    "window": ("window", "fixed"),
    "class-means": ("class_means", 0.0),
}
# Parts of the race that matter where trajectories are matched.
OF_MATCHING = frozenset({"calibration", "window", "class-means"})
KNOWN = {name: {f.name for f in fields(method)} - set(OWN) for name, method in CONTESTANTS.items()}


@dataclass(frozen=True, kw_only=True)
class Automatic(Condenser):
    """A race of candidates, judged by what GCNs trained on what they made say of validation nodes.

    Random and Herding always take part, so the answer validates no worse than they do. Candidates are
    clustered starts, and trajectory matching (MTT, GCSR) from the best of them and from sampled rows,
    with rates and regularisers in units of the data. Test labels are never read.

    Args:
        budget: seconds that one graph should take on one core or a GPU. It decides how many
            candidates run, and how long, by a count of operations: nothing is timed, so the same
            budget gives the same result.
        without: parts that are switched off, separated by commas: ``teachers``, ``consistent``,
            ``tempering``, ``grouping``, ``soft-labels``, ``redraws``, ``agreement``, ``matching``,
            ``calibration``, ``window``, ``class-means``. For ablations.
        pins: names and values of settings that are not up for choice. ``gcsr.condense(..., k=2)`` and
            ``--set k=2`` end up here.
    """

    name: ClassVar[str] = "auto"
    revision: ClassVar[int] = 2
    summary: ClassVar[str] = "what does best in a race: clusters, GCSR, MTT, Herding or Random"
    # Some candidates see another draw of dropout on another device.
    same_on_every_device: ClassVar[bool] = False
    beyond_training_nodes: ClassVar[bool] = True
    hands_on_to: ClassVar[tuple[type[Condenser], ...]] = (Clusters, MTT, GCSR)

    budget: float = 120.0
    without: str = ""
    pins: Settings = ()

    def _check(self) -> None:
        real_number(self, "budget", above=True)
        require(isinstance(self.without, str), f"without: {self.without!r} is not a text.")
        for part in self._off:
            require_one_of("without", part, PARTS)
        require(isinstance(self.pins, tuple), f"pins: {self.pins!r} is not a tuple of pairs.")
        accepted = set[str]().union(*(KNOWN[method.name] for method in self.hands_on_to))
        for name in dict(self.pins):
            require(name in accepted, f"pins: no candidate has the setting {name!r}.")
        self._require_consistent()
        failure: InputError | None = None
        for one in self._field():
            try:
                _built(one, 1)
                return
            except InputError as error:
                failure = error
        raise failure or InputError("pins: no candidate has all of these settings.")

    def _require_consistent(self) -> None:
        """What is pinned must not be switched off."""
        pins = dict(self.pins)
        for part in sorted(self._off & CONTRADICTED.keys()):
            name, accepted = CONTRADICTED[part]
            require(
                pins.get(name, accepted) == accepted,
                f"without: {part!r} contradicts the pinned {name}={pins.get(name)}; leave one out.",
            )
        require(
            "consistent" not in self._off or pins.get("teacher") != "consistent",
            "without: 'consistent' contradicts the pinned teacher=consistent; leave one out.",
        )
        own = sorted(set(pins) - KNOWN["clusters"] - BOUNDS)
        require(
            "matching" not in self._off or self._has_starts,
            f"without: 'matching' contradicts the pinned {', '.join(own)}, which only matching has;"
            " leave one out.",
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the result, by name; pins under their own names."""
        own = {name: value for name, value in super().settings.items() if name != "pins"}
        return own | {name: value for name, value in self.pins if name not in BOUNDS}

    @property
    def _off(self) -> frozenset[str]:
        """Parts that are switched off; where the draw is pinned there is no other."""
        named = frozenset(part.strip() for part in self.without.split(",") if part.strip())
        return named | {"redraws"} if "draw" in dict(self.pins) else named

    def _others(self) -> Iterable[type[Condenser]]:
        return CONTESTANTS.values()

    def _work(self, nodes: int) -> Work:
        return Work(nodes, hops=2, least=self.budget)

    def _foreseen(self, work: Work, graph: Graph) -> Work:
        """What is planned, and the largest of what teachers and, where it matches, experts hold."""
        if isinstance(graph, StoredGraph):
            return work  # of what stays on disk nothing is read for an estimate
        view, pins = self._seen(graph), dict(self.pins)
        plan = self._plan(view, work.nodes, "cpu")
        held = held_bytes(view, plan.starts.trained, matching=bool(plan.scouts), pins=pins)
        return replace(work, least=plan.seconds, held=held)

    def _field(self) -> list[Candidate]:
        """Everyone who could take part, the simple ones aside."""
        start = candidates.clustered_starts(Starts(("gcn",), (1,), "halves", 0))
        return self._pinned([*start, *candidates.matched(start[0], None)])

    @property
    def _has_starts(self) -> bool:
        """Whether pins leave clustered starts in the race."""
        return any(one.method == "clusters" for one in self._field())

    def _plan(self, view: CondensingView, nodes: int, kind: str) -> Plan:
        alone = not self._has_starts
        pins = dict(self.pins)
        return plan_for(view, nodes, self.budget, kind, self._off, pins, only_matching=alone)

    def _pinned(self, found: Iterable[Candidate]) -> list[Candidate]:
        return candidates.pinned(found, dict(self.pins), KNOWN, BOUNDS)

    @property
    def leaks_test_labels(self) -> bool:
        """A pinned prior over all labels leaks, as it does in GCSR."""
        pins = dict(self.pins)
        return pins.get("prior") == "all" and pins.get("regulariser", "prior") == "prior"

    def _make(
        self,
        view: CondensingView,
        nodes: int,
        seeds: Sequence[int],
        device: torch.device,
        progress: Progress,
    ) -> list[Made]:
        # Too few nodes for the classes is an error of the user's, not of a candidate.
        class_budget(view.visible.train_labels, view.visible.num_classes, nodes)
        # Iterates of different candidates do not compare: nobody watches them.
        journal, view = view.journal, replace(view, watch=None, journal=None)
        pins = dict(self.pins)
        plan = self._plan(view, nodes, device.type)

        @cache
        def opinion() -> Opinion | None:
            """What the teachers of the clustered starts say, found once for all seeds."""
            if "agreement" in self._off or not self._has_starts:
                return None
            return second_opinion(
                view,
                plan.starts.teachers,
                seed=pins.get("expert_seed", 0),
                device=device,
                tempered=pins.get("tempered", "tempering" not in self._off),
            )

        judge = Judge(view.validation, view.visible.num_classes, device, opinion)

        @cache
        def calibrated() -> Calibration | None:
            """Rates for this graph, found once for all seeds."""
            if "calibration" in self._off:
                return None
            return calibrate(view, device, pins)

        def chosen(done: int, seed: int) -> Made:
            def make(one: Candidate) -> Made:
                return _built(one, nodes)._make(view, nodes, [seed], device, _unheard)[0]

            part = part_of(progress, done, len(seeds))
            made_before = remembering(journal, seed, device, make, judge)
            contest = Contest(*made_before, calibrated, self._pinned, part)
            winner, entries = race(contest, plan)
            found = calibrated() if calibrated.cache_info().currsize else None
            return _told(winner, entries, contest, plan, found, opinion(), self.budget)

        return [chosen(done, seed) for done, seed in enumerate(seeds)]


def _built(one: Candidate, nodes: int) -> Condenser:
    return CONTESTANTS[one.method](nodes=nodes, **one.options)


def _unheard(stage: str, done: int, total: int) -> None:
    """Candidates are counted as a whole."""


def _told(
    winner: Entry,
    entries: Sequence[Entry],
    contest: Contest,
    plan: Plan,
    calibration: Calibration | None,
    opinion: Opinion | None,
    budget: float,
) -> Made:
    """The winner, with the story of the race."""
    made, one = winner.made, winner.candidate
    notes = [*made.notes]
    if one in candidates.SIMPLE:
        notes.append(f"{one.method} did best: nothing that was tried beat a choice of real nodes")
    idle = sorted(plan.without & OF_MATCHING)
    if idle and not plan.scouts:
        notes.append(
            f"without {', '.join(idle)} made no difference: nothing is matched within this budget"
        )
    if plan.unasked:
        notes.append(
            f"within this budget the teachers {', '.join(map(repr, plan.unasked))} were not asked; more"
            " seconds (--budget) ask them"
        )
    if plan.seconds > budget:
        notes.append(
            f"the shortest race is expected to take {plan.seconds:.0f} s on one core or GPU, more than"
            f" the budget of {budget:g} s"
        )
    story = {
        "chosen": {"method": one.method, "settings": one.options},
        "plan": {
            "teachers": list(plan.starts.teachers),
            "hops": list(plan.starts.hops),
            "grouping": plan.starts.grouping,
            "redraws": plan.starts.draws,
            "scouting_iterations": plan.scouts,
            "iterations": plan.iterations,
            "expected_seconds": plan.seconds,
        },
        "calibration": None if calibration is None else calibration.told,
        "second_opinion": None if opinion is None else opinion.told,
        "race": [_marked(entry) for entry in entries],
        "left_out": [
            {"method": out.method, "settings": out.options, "reason": reason}
            for out, reason in contest.left_out
        ],
    }
    return Made(
        made.x,
        made.adjacency,
        made.y,
        tuple(notes),
        {**made.details, "automatic": story},
        # Experts that another candidate trained are part of the seconds of this race.
        {name: value for name, value in made.measured.items() if name != "experts"},
    )


def _marked(entry: Entry) -> dict[str, Any]:
    """A candidate and its marks, by round, for the provenance."""
    asked = {name: mark for name, mark in entry.marks.items() if mark.agreement is not None}
    return {
        "method": entry.candidate.method,
        "settings": entry.candidate.options,
        "validation": {name: mark.validation for name, mark in entry.marks.items()},
        **({"agreement": {name: mark.agreement for name, mark in asked.items()}} if asked else {}),
        "merit": {name: mark.merit for name, mark in entry.marks.items()},
    }
