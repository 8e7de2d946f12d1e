"""Where an expert was after every epoch, within a memory budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gcsr.experts.recipe import ExpertRecipe
from gcsr.models import Params

if TYPE_CHECKING:
    from gcsr.experts.train import LessonState, _School


class Trajectories:
    """Expert weights by expert and epoch.

    Everything is ``kept`` where it fits into a budget of bytes. Otherwise a checkpoint (weights and
    Adam's moments) is kept every ``stride`` epochs and the epochs after it are trained again, by the
    ``school`` that trained them, when asked for.
    """

    def __init__(
        self,
        recipe: ExpertRecipe,
        kept: Params = (),
        *,
        school: _School | None = None,
        stride: int = 1,
    ) -> None:
        self.recipe, self.kept, self.stride = recipe, kept, stride
        self._school = school
        self._checkpoints: dict[tuple[int, int], tuple[tuple[Tensor, ...], int]] = {}

    @classmethod
    def within(cls, budget: int, school: _School) -> Trajectories:
        """Room for what a school teaches, as much of it as ``budget`` bytes hold."""
        recipe, one = school.recipe, school.initial(range(1))
        per_state = sum(p.nbytes for p in one)
        if recipe.count * (recipe.kept_epochs + 1) * per_state > budget:
            return cls(recipe, school=school, stride=_stride(recipe, per_state, budget))
        shape = (recipe.count, recipe.kept_epochs + 1)
        return cls(recipe, tuple(p.new_empty((*shape, *p.shape[1:])) for p in one))

    @property
    def keeps_everything(self) -> bool:
        """Whether no epoch ever has to be trained again."""
        return bool(self.kept)

    @property
    def nbytes(self) -> int:
        """Bytes that the trajectories hold."""
        kept = sum(p.nbytes for p in self.kept)
        return kept + sum(t.nbytes for tensors, _ in self._checkpoints.values() for t in tensors)

    def record(self, experts: range, epoch: int, state: LessonState) -> None:
        """Take note of a group of experts after an epoch."""
        if epoch > self.recipe.kept_epochs:
            return
        if self.keeps_everything:
            for kept, p in zip(self.kept, state.params, strict=True):
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
                    tuple(kept[e : e + 1, s] for kept in self.kept),
                    tuple(kept[e : e + 1, s + steps] for kept in self.kept),
                )
            where = torch.tensor(
                [self.position(e, s) for e, s in zip(experts, starts, strict=True)],
                device=self.kept[0].device,
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
        return tuple(kept.flatten(0, 1).index_select(0, positions) for kept in self.kept)

    def _replay(self, expert: int, start: int, steps: int) -> tuple[Params, Params]:
        school = self._school
        if school is None:
            raise RuntimeError("trajectories without a school cannot be replayed")
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


def _stride(recipe: ExpertRecipe, per_state: int, budget: int) -> int:
    """The densest checkpoints that fit; the start itself is made again from its seed."""
    for stride in range(2, recipe.kept_epochs + 1):
        checkpoints = recipe.count * (recipe.kept_epochs // stride)
        if 3 * checkpoints * per_state <= budget:
            return stride
    return recipe.kept_epochs + 1
