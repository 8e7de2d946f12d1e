"""A race that was ended: candidates that were made and judged before are not made and judged again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import torch
from torch import Tensor

from gcsr.checkpoint import Journal, State
from gcsr.condense.automatic.candidates import Candidate
from gcsr.condense.automatic.judge import Mark
from gcsr.condense.automatic.rounds import Look
from gcsr.condense.condenser import Made

Make = Callable[[Candidate], Made]
Verdict = Callable[[Made, Look], Mark]


def remembering(
    journal: Journal | None, seed: int, device: torch.device, make: Make, judge: Verdict
) -> tuple[Make, Verdict]:
    """``make`` and ``judge`` of the race of one graph, with what a journal remembers of it."""
    if journal is None:
        return make, judge
    memory = _Memory(journal, seed, device, make, judge)
    return memory.make, memory.judge


class _Memory:
    def __init__(
        self, journal: Journal, seed: int, device: torch.device, make: Make, judge: Verdict
    ) -> None:
        self._make, self._judge = make, judge
        self._made: dict[str, Made] = {}
        self._labels: dict[Made, str] = {}
        self._marks: dict[str, Mark] = {}
        self._part = journal.part(f"race-{seed}", device)
        state = self._part.load()
        if state is not None:
            self._marks = {name: Mark(*mark) for name, mark in state.values["marks"].items()}
            for number, told in enumerate(state.values["made"]):
                self._keep(told["label"], _made(state, number, told))

    def make(self, one: Candidate) -> Made:
        if one.label not in self._made:
            self._keep(one.label, self._make(one))
            self._offer()
        return self._made[one.label]

    def judge(self, made: Made, look: Look) -> Mark:
        question = f"{look} of {self._labels[made]}"
        if question not in self._marks:
            self._marks[question] = self._judge(made, look)
            self._offer()
        return self._marks[question]

    def _keep(self, label: str, made: Made) -> None:
        self._made[label] = made
        self._labels[made] = label

    def _offer(self) -> None:
        nbytes = sum(one.x.nbytes + one.adjacency.nbytes for one in self._made.values())
        self._part.offer(nbytes, self._state)

    def _state(self) -> State:
        tensors: dict[str, Tensor] = {}
        told: list[dict[str, Any]] = []
        for number, (label, made) in enumerate(self._made.items()):
            tensors |= {
                f"{number} x": made.x,
                f"{number} a": made.adjacency,
                f"{number} y": made.y,
            }
            story = {"notes": made.notes, "details": made.details, "measured": made.measured}
            told.append({"label": label, **story})
        marks = {name: list(astuple(mark)) for name, mark in self._marks.items()}
        return State(tensors, {"made": told, "marks": marks})


def _made(state: State, number: int, told: dict[str, Any]) -> Made:
    x, a, y = (state.tensors[f"{number} {name}"] for name in ("x", "a", "y"))
    return Made(x, a, y, tuple(told["notes"]), told["details"], told["measured"])
