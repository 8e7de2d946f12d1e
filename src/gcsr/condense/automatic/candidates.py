"""What takes part in the race: methods with settings in units of the data.

The numbers come from runs on seven graphs, compared by validation accuracy. Rates are in root mean
squares of X', ``alpha`` and ``beta`` in mean diagonals of X'X'ᵀ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gcsr.condense.automatic.calibration import Calibration
from gcsr.condense.automatic.rounds import Starts

Settings = tuple[tuple[str, Any], ...]
# Slow experts: the matched steps are then those of early training, as in the paper.
SLOW = {"expert_rate": 1e-3}
# Fewer experts than methods have by default: training them takes as long as matching.
EXPERTS = {"experts": 8}
# Beside the calibrated rates: early epochs first and, for sampled rows, which lie anywhere in their
# class, the pull of the class means. Centres gain nothing from that.
EXPANDING = {"window": "expanding"}
HELD = {"class_means": 1.0}
# Settings that mean something with centres alone.
OF_CENTRES = ("teacher", "tempered", "grouping", "soft_labels", "draw")


@dataclass(frozen=True)
class Candidate:
    """A method and its settings, sorted by name so that equal candidates are equal."""

    method: str
    settings: Settings = ()

    @property
    def label(self) -> str:
        """How the race calls it."""
        told = " ".join(f"{name}={value}" for name, value in self.settings)
        return f"{self.method} {told}".strip()

    @property
    def options(self) -> dict[str, Any]:
        """Its settings by name."""
        return dict(self.settings)

    def with_settings(self, **settings: Any) -> Candidate:
        """The same method with some settings replaced."""
        return candidate(self.method, self.options | settings)


def candidate(method: str, settings: Mapping[str, Any]) -> Candidate:
    """A candidate whose settings are in order."""
    return Candidate(method, tuple(sorted(settings.items())))


# Always in the race: no answer validates worse than these.
# Herding looks at the embedding of a network that is small and trained briefly.
SIMPLE = (Candidate("random"), candidate("herding", {"epochs": 100, "hidden": 64}))


def clustered_starts(starts: Starts, *, tempered: bool = True) -> list[Candidate]:
    """Centres by every teacher and number of hops, with hard labels and with soft ones."""
    cold = {} if tempered else {"tempered": False}
    return [
        candidate(
            "clusters",
            {"teacher": teacher, "k": k, "grouping": starts.grouping, "soft_labels": labels} | cold,
        )
        for teacher in starts.teachers
        for k in starts.hops
        for labels in ((True, False) if starts.soft else (False,))
    ]


def matched(
    start: Candidate, calibration: Calibration | None, without: Collection[str] = ()
) -> list[Candidate]:
    """Trajectory matching from sampled rows and from a clustered start.

    From centres it is gentle, because that start is good already. Candidates that share their experts
    follow one another; those that ask them for predictions come first.
    """
    begin = start.options | {"initialise": "clusters"} | EXPERTS
    expanding = {} if "window" in without else EXPANDING
    held = {} if "class-means" in without else HELD
    calibrated = [one | expanding for one in calibrations(calibration)]
    return [
        candidate("gcsr", begin | {"feature_rate": 3e-4, "alpha": 60.0, "beta": 60.0} | SLOW),
        candidate("mtt", begin | {"feature_rate": 3e-4} | SLOW),
        candidate("gcsr", EXPERTS | calibrated[0] | held),
        candidate(
            "gcsr", begin | {"feature_rate": 1e-4, "alpha": 0.1, "beta": 1.0} | calibrated[0]
        ),
        *(candidate("mtt", begin | {"feature_rate": 1e-4} | one) for one in calibrated),
    ]


def calibrations(found: Calibration | None) -> list[dict[str, Any]]:
    """Calibrated settings of experts and students; none of their own without a calibration."""
    if found is None or not found.students:
        return [{}]
    return [found.settings(pair) for pair in range(len(found.students))]


def pinned(
    found: Iterable[Candidate],
    pins: Mapping[str, Any],
    known: Mapping[str, set[str]],
    bounds: frozenset[str] = frozenset(),
) -> list[Candidate]:
    """Candidates as the user pinned them, each once.

    One whose method does not have a pinned setting is left out; Random and Herding stay as they are.
    ``bounds`` are settings that bound memory or disk: they reach whoever has them and rule out nobody.
    """
    decisive = {name: value for name, value in pins.items() if name not in bounds}
    kept: dict[Candidate, None] = {}
    for one in found:
        if one in SIMPLE:
            kept[one] = None
        elif set(decisive) <= known[one.method]:
            own = {name: value for name, value in pins.items() if name in known[one.method]}
            options = one.options | own
            if options.get("initialise") == "sample":
                options = {name: v for name, v in options.items() if name not in OF_CENTRES}
            kept[candidate(one.method, options)] = None
    return list(kept)
