"""Where an expert was after every epoch, within a memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gcsr.devices import free_memory_bytes
from gcsr.experts.recipe import ExpertRecipe
from gcsr.models import Params

if TYPE_CHECKING:
    from gcsr.experts.train import LessonState, _School


class Trajectories:
    """Expert weights by expert and epoch.

    Everything is kept where it fits into ``memory_bytes``. Otherwise a checkpoint (weights and Adam's
    moments) is kept every ``stride`` epochs and the epochs after it are trained again when asked for.
    """

    def __init__(
        self, school: _School, recipe: ExpertRecipe, *, memory_bytes: int | None = None
    ) -> None:
        self._school, self.recipe = school, recipe
        sizes = [p.shape[1:] for p in school.initial(range(1))]
        per_state = 4 * sum(size.numel() for size in sizes)
        states = recipe.count * (recipe.kept_epochs + 1)
        budget = free_memory_bytes(school.device) // 4 if memory_bytes is None else memory_bytes
        self.keeps_everything = states * per_state <= budget
        self.stride = 1 if self.keeps_everything else self._stride(per_state, budget)
        self._final: dict[int, Params] = {}
        self._checkpoints: dict[tuple[int, int], tuple[tuple[Tensor, ...], int]] = {}
        self._kept: Params = ()
        if self.keeps_everything:
            self._kept = tuple(
                torch.empty((recipe.count, recipe.kept_epochs + 1, *size), device=school.device)
                for size in sizes
            )

    def _stride(self, per_state: int, budget: int) -> int:
        """The densest checkpoints that fit; the start itself is made again from its seed."""
        for stride in range(2, self.recipe.kept_epochs + 1):
            checkpoints = self.recipe.count * (self.recipe.kept_epochs // stride)
            if 3 * checkpoints * per_state <= budget:
                return stride
        return self.recipe.kept_epochs + 1

    @property
    def nbytes(self) -> int:
        """Bytes that the trajectories hold."""
        kept = sum(p.nbytes for p in self._kept)
        return kept + sum(t.nbytes for tensors, _ in self._checkpoints.values() for t in tensors)

    @property
    def final(self) -> list[Params]:
        """Weights after the last epoch of the schedule, group by group; empty if not run to its end."""
        return [self._final[first] for first in sorted(self._final)]

    def record(self, experts: range, epoch: int, state: LessonState) -> None:
        """Take note of a group of experts after an epoch."""
        if epoch == self.recipe.epochs:
            self._final[experts.start] = tuple(p.clone() for p in state.params)
        if epoch > self.recipe.kept_epochs:
            return
        if self.keeps_everything:
            for kept, p in zip(self._kept, state.params, strict=True):
                kept[experts.start : experts.stop, epoch] = p
        elif epoch and epoch % self.stride == 0:
            (expert,) = experts
            copies = tuple(t.clone() for t in state.tensors())
            self._checkpoints[expert, epoch] = copies, state.steps

    def pairs(
        self, experts: Sequence[int], starts: Sequence[int], steps: int
    ) -> tuple[Params, Params]:
        """Weights at ``starts`` and ``steps`` epochs later, one expert per condensed graph."""
        if self.keeps_everything:
            if len(experts) == 1:
                e, s = experts[0], starts[0]
                # Views: nothing is copied for a single graph.
                return (
                    tuple(kept[e : e + 1, s] for kept in self._kept),
                    tuple(kept[e : e + 1, s + steps] for kept in self._kept),
                )
            where = torch.tensor(
                [self.position(e, s) for e, s in zip(experts, starts, strict=True)],
                device=self._kept[0].device,
            )
            return self.at(where), self.at(where + steps)
        replayed = [self._replay(e, s, steps) for e, s in zip(experts, starts, strict=True)]
        first, last = zip(*replayed, strict=True)
        return tuple(map(torch.cat, zip(*first, strict=True))), tuple(
            map(torch.cat, zip(*last, strict=True))
        )

    def position(self, expert: int, epoch: int) -> int:
        """Where an expert's epoch lies for :meth:`at`; the next epoch follows it."""
        return expert * (self.recipe.kept_epochs + 1) + epoch

    def at(self, positions: Tensor) -> Params:
        """Kept weights at several positions, looked up on the device."""
        return tuple(kept.flatten(0, 1).index_select(0, positions) for kept in self._kept)

    def _replay(self, expert: int, start: int, steps: int) -> tuple[Params, Params]:
        school = self._school
        state = school.begin(range(expert, expert + 1))
        checkpoint = start - start % self.stride
        if checkpoint:
            tensors, state.steps = self._checkpoints[expert, checkpoint]
            n = len(state.params)
            copies = tuple(t.clone() for t in tensors)
            state.params, state.first, state.second = copies[:n], copies[n : 2 * n], copies[2 * n :]
        for epoch in range(checkpoint, start):
            school.teach(state, epoch)
        at_start = tuple(p.clone() for p in state.params)
        for epoch in range(start, start + steps):
            school.teach(state, epoch)
        return at_start, state.params
