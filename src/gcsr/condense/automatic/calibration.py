"""What trajectories suit a graph: how fast experts should learn and for how long, and students too.

Experts are tried at a few rates until they validate no better. A student's rate is the one with which
steps on the *real* training nodes come closest to where the expert is some epochs later: what a
condensed graph can teach is at best what the real one does. Validation labels choose the expert's
rate and nothing else; test labels are unreachable here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.equations import trajectory_distance
from gcsr.experts import ExpertRecipe, School
from gcsr.models import Model, Params, SparseTopology, condensing_model
from gcsr.training import accuracy
from gcsr.views import CondensingView, Target

EXPERTS = 2
EXPERT_RATES = (1e-3, 3e-3, 1e-2, 3e-2)
# Experts are looked at every so many epochs; after so many looks without a gain they have learned.
LOOK_EVERY, PATIENCE, MOST_EPOCHS = 5, 4, 100
LEAST_EPOCHS = 10
# A look this close to the best one is as good: half a percentage point.
CLOSE = 0.005
# Student steps and expert epochs (N, M) that students are calibrated for.
PAIRS = ((5, 2), (10, 10))
# Where students begin: at these shares of the epochs in which experts learn.
STARTS = (0.1, 0.6)
# From coarse to fine: factors of 4 first, then of about 1.4 around the best.
STUDENT_RATES = tuple(1e-4 * 4**i for i in range(9))
FINER = (0.5, 2**-0.5, 2**0.5, 2.0)
WEIGHT_DECAY = 5e-4


@dataclass(frozen=True)
class StudentRate:
    """The rate of N student steps that come closest to M expert epochs, and how close they come."""

    steps: int
    expert_steps: int
    rate: float
    distance: float


@dataclass(frozen=True)
class Calibration:
    """Settings of experts and students for this graph.

    Args:
        expert_rate: the slowest at which experts validate about as well as at any.
        learned: epochs until they validated as well as they ever did.
        validation: the best mean validation accuracy at every rate that was tried.
        students: a rate for every pair of student steps and expert epochs that has a finite one.
    """

    expert_rate: float
    learned: int
    validation: tuple[tuple[float, float], ...]
    students: tuple[StudentRate, ...]

    @property
    def expert_epochs(self) -> int:
        """The schedule: its rate drops in the middle, when the experts stop learning."""
        return 2 * self.learned

    def settings(self, pair: int) -> dict[str, Any]:
        """Settings of trajectory matching with one of the pairs.

        Every pair looks up the same epochs, so that they share their experts.
        """
        chosen = self.students[min(pair, len(self.students) - 1)]
        longest = max(student.expert_steps for student in self.students)
        last = min(self.learned + longest - 1, self.expert_epochs)
        return {
            "expert_rate": self.expert_rate,
            "expert_epochs": self.expert_epochs,
            "max_start": max(1, last - chosen.expert_steps + 1),
            "student_steps": chosen.steps,
            "expert_steps": chosen.expert_steps,
            "student_rate": chosen.rate,
        }

    @property
    def told(self) -> dict[str, Any]:
        """For the provenance."""
        return {
            "expert_rate": self.expert_rate,
            "expert_epochs": self.expert_epochs,
            "epochs_until_learned": self.learned,
            "validation_by_expert_rate": [list(pair) for pair in self.validation],
            "students": [vars(student) for student in self.students],
        }


def calibrate(view: CondensingView, device: torch.device, pins: Mapping[str, Any]) -> Calibration:
    """Look for rates; what is pinned is taken as it is."""
    model = condensing_model(pins.get("model", "sgc"), pins.get("hidden", 256))
    watch = _Watch(model, view.validation, device)
    tried = (pins["expert_rate"],) if "expert_rate" in pins else EXPERT_RATES
    found: list[tuple[float, float, int]] = []
    for rate in tried:
        recipe = _recipe(rate, MOST_EPOCHS, pins, restart=False)
        school = School(model, view.visible, recipe, device, torch.float32)
        found.append((rate, *watch.until_learned(school)))
    # The slowest that comes close to the best: its steps are the easiest to follow.
    best = max(score for _, score, _ in found)
    rate, _, learned = next(one for one in found if one[1] >= best - CLOSE)
    pairs = tuple(
        dict.fromkeys(
            (pins.get("student_steps", steps), pins.get("expert_steps", later))
            for steps, later in PAIRS
        )
    )
    learned = max(learned, LEAST_EPOCHS, pins.get("max_start", 1), *(later for _, later in pairs))
    if "expert_epochs" in pins:
        learned = max(1, pins["expert_epochs"] // 2)
    fitting = [pair for pair in pairs if pair[1] + pins.get("max_start", 1) - 1 <= 2 * learned]
    recipe = _recipe(rate, 2 * learned, pins, restart=True)
    school = School(model, view.visible, recipe, device, torch.float32)
    students = (_student_rate(school, learned, *pair, pins) for pair in fitting or pairs[:1])
    # Where every rate diverges, as on features of huge scale, there is none to take.
    near = tuple(student for student in students if math.isfinite(student.distance))
    return Calibration(rate, learned, tuple((r, score) for r, score, _ in found), near)


def _recipe(rate: float, epochs: int, pins: Mapping[str, Any], *, restart: bool) -> ExpertRecipe:
    return ExpertRecipe(
        count=EXPERTS,
        epochs=epochs,
        trained_epochs=epochs,
        kept_epochs=epochs,
        rate=rate,
        weight_decay=pins.get("expert_weight_decay", WEIGHT_DECAY),
        seed=pins.get("expert_seed", 0),
        restart=restart,
    )


class _Watch:
    """How well experts validate while they learn."""

    def __init__(self, model: Model, validation: Target, device: torch.device) -> None:
        topology = SparseTopology(validation.adjacency, device)
        self._model = model
        self._prepared = model.prepare(validation.x.to(device), topology, validation.nodes)
        self._labels = validation.labels.to(device)

    def until_learned(self, school: School) -> tuple[float, int]:
        """The best mean accuracy, and the first epoch that comes close to it."""
        scores: list[float] = []
        for epoch, state in school.lessons(range(EXPERTS)):
            if epoch % LOOK_EVERY or not epoch:
                continue
            found = accuracy(
                self._model, state.params, self._prepared, self._labels, at_once=EXPERTS
            )
            scores.append(float(found.mean()))
            if len(scores) - 1 - scores.index(max(scores)) >= PATIENCE:
                break
        best = max(scores)
        near = next(i for i, score in enumerate(scores) if score >= best - CLOSE)
        return best, (near + 1) * LOOK_EVERY


def _student_rate(
    school: School, learned: int, steps: int, later: int, pins: Mapping[str, Any]
) -> StudentRate:
    """The rate that brings students of the real graph closest to its experts."""
    starts = sorted({int(share * learned) for share in STARTS})
    last = school.recipe.epochs
    wanted = {min(epoch, last) for start in starts for epoch in (start, start + later)}
    seen = {
        epoch: tuple(p.clone() for p in state.params)
        for epoch, state in school.lessons(range(EXPERTS))
        if epoch in wanted
    }
    ways = [
        (_one(seen[min(start, last)], one), _one(seen[min(start + later, last)], one))
        for start in starts
        for one in range(EXPERTS)
        if start < last
    ]

    def missed(rates: tuple[float, ...]) -> list[float]:
        found = torch.stack(
            [_missed(school, start, goal, steps, rates) for start, goal in ways]
        ).mean(0)
        return [value if math.isfinite(value) else math.inf for value in found.tolist()]

    if "student_rate" in pins:
        rates: tuple[float, ...] = (pins["student_rate"],)
        distances = missed(rates)
    else:
        coarse = missed(STUDENT_RATES)
        best = min(range(len(coarse)), key=coarse.__getitem__)
        rates = (STUDENT_RATES[best], *(factor * STUDENT_RATES[best] for factor in FINER))
        distances = [coarse[best], *missed(rates[1:])]
    chosen = min(range(len(rates)), key=distances.__getitem__)
    # What is written into the provenance has a short name.
    return StudentRate(steps, later, float(f"{rates[chosen]:.3g}"), distances[chosen])


def _one(params: Params, number: int) -> Params:
    return tuple(p[number : number + 1] for p in params)


def _missed(
    school: School, start: Params, goal: Params, steps: int, rates: tuple[float, ...]
) -> Tensor:
    """How far students end from the goal, one per rate, relative to how far the expert went."""
    each = torch.tensor(rates).to(start[0])
    begun, ends = (
        tuple(p.expand(len(rates), *p.shape[1:]) for p in params) for params in (start, goal)
    )
    params = begun
    for _ in range(steps):
        gradients = school.rows.gradients(tuple(p.detach().requires_grad_() for p in params))
        params = tuple(
            p - each.view(-1, *[1] * (p.ndim - 1)) * g
            for p, g in zip(params, gradients, strict=True)
        )
    return trajectory_distance(params, begun, ends)
