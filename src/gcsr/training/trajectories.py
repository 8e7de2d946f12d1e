"""Weights of experts at every snapshot, within a memory budget."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gcsr.models.base import Params, joined
from gcsr.training.expert_cache import cache_folder
from gcsr.training.expert_recipe import ExpertRecipe

if TYPE_CHECKING:
    from gcsr.training.experts import ExpertTrainer, TrainingState

logger = logging.getLogger(__name__)


def scratch_tensors(
    shapes: Sequence[Sequence[int]], dtype: torch.dtype, folder: Path
) -> Params | None:
    """Writable tensors mapped from a file without a name; ``None`` where the disk has no room.

    The file is gone with the last tensor, or with the process, however it ends. Its blocks are
    reserved at once: a disk that runs full later would kill the process with a signal.
    """
    plain = torch.empty(0, dtype=dtype).numpy().dtype
    sizes = [int(np.prod(shape)) * plain.itemsize for shape in shapes]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            if not hasattr(os, "posix_fallocate"):
                raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
            os.posix_fallocate(file.fileno(), 0, sum(sizes))
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            arrays = [
                np.memmap(file, plain, mode="r+", offset=int(start), shape=tuple(shape))
                for start, shape in zip(starts, shapes, strict=True)
            ]
    except OSError as error:
        logger.warning("experts cannot be kept in %s: %s", folder, error.strerror)
        return None
    return tuple(torch.from_numpy(array) for array in arrays)


class Trajectories:
    """Expert weights by expert and snapshot (by default every epoch is one).

    Everything that can be asked for is ``kept`` where it fits into a budget of bytes, or on disk
    (``mapped``). Otherwise a checkpoint (weights and Adam's moments) is kept every ``stride`` epochs
    and the epochs after it are trained again, by ``trainer``, when they are needed.
    """

    def __init__(
        self,
        recipe: ExpertRecipe,
        kept: Params = (),
        *,
        trainer: ExpertTrainer | None = None,
        stride: int = 1,
        mapped: bool = False,
    ) -> None:
        self.recipe, self.kept, self.stride, self.mapped = recipe, kept, stride, mapped
        self._trainer = trainer
        self._checkpoints: dict[tuple[int, int], tuple[tuple[Tensor, ...], int]] = {}
        self._rows: Tensor | None = None
        if kept and (recipe.final or recipe.rows <= recipe.last_snapshot):
            # From positions, which count what is not kept too, to rows; those to an expert's start.
            rows = torch.tensor([recipe.row(s) or 0 for s in range(recipe.snapshots)])
            first = torch.arange(recipe.count).view(-1, 1) * recipe.rows
            self._rows = (first + rows).flatten().to(kept[0].device)

    @classmethod
    def within(cls, budget: int, trainer: ExpertTrainer, disk: int = 0) -> Trajectories:
        """Memory of at most ``budget`` bytes, else a file of at most ``disk`` bytes."""
        recipe, one = trainer.recipe, trainer.initial(range(1))
        per_state = sum(p.nbytes for p in one)
        whole = recipe.count * recipe.rows * per_state
        shapes = [(recipe.count, recipe.rows, *p.shape[1:]) for p in one]
        if whole <= budget:
            return cls(
                recipe, tuple(p.new_empty(shape) for p, shape in zip(one, shapes, strict=True))
            )
        if whole <= disk and one[0].device.type == "cpu":
            mapped = scratch_tensors(shapes, one[0].dtype, cache_folder() / "scratch")
            if mapped is not None:
                return cls(recipe, mapped, mapped=True)
        return cls(recipe, trainer=trainer, stride=_stride(recipe, per_state, budget))

    @property
    def keeps_everything(self) -> bool:
        """Whether no epoch ever has to be trained again."""
        return bool(self.kept)

    @property
    def nbytes(self) -> int:
        """Bytes that the trajectories hold, in memory or in a file."""
        kept = sum(p.nbytes for p in self.kept)
        return kept + sum(t.nbytes for tensors, _ in self._checkpoints.values() for t in tensors)

    def record(self, experts: range, epoch: int, state: TrainingState) -> None:
        """Keep the weights of a group of experts after an epoch."""
        recipe = self.recipe
        final = recipe.final and epoch == recipe.final_snapshot * recipe.snapshot_every
        if epoch > recipe.kept_epochs and not final:
            return
        if self.keeps_everything:
            snapshot, between = divmod(epoch, recipe.snapshot_every)
            row = None if between else recipe.row(snapshot)
            if row is not None:
                for kept, p in zip(self.kept, state.params, strict=True):
                    kept[experts.start : experts.stop, row] = p
        elif epoch and epoch % self.stride == 0 and not final:
            (expert,) = experts
            copies = tuple(t.clone() for t in state.tensors())
            self._checkpoints[expert, epoch] = copies, state.steps

    def pairs(
        self, experts: Sequence[int], starts: Sequence[int], steps: int
    ) -> tuple[Params, Params]:
        """Weights at ``starts`` and ``steps`` snapshots later, one expert per condensed graph."""
        if self.keeps_everything:
            if len(experts) == 1:
                # Views: nothing is copied for a single graph.
                return self._one(experts[0], starts[0]), self._one(experts[0], starts[0] + steps)
            where = torch.tensor(
                [self.position(e, s) for e, s in zip(experts, starts, strict=True)],
                device=self.kept[0].device,
            )
            return self.at(where), self.at(where + steps)
        replayed = [self._replay(e, s, steps) for e, s in zip(experts, starts, strict=True)]
        first, last = zip(*replayed, strict=True)
        return joined(first), joined(last)

    def position(self, expert: int, snapshot: int) -> int:
        """Where an expert's snapshot lies for :meth:`at`; the next snapshot follows it."""
        return expert * self.recipe.snapshots + snapshot

    def at(self, positions: Tensor) -> Params:
        """Kept weights at several positions, looked up on the device."""
        if self._rows is not None:
            positions = self._rows.index_select(0, positions)
        return tuple(kept.flatten(0, 1).index_select(0, positions) for kept in self.kept)

    def _one(self, expert: int, snapshot: int) -> Params:
        row = self.recipe.row(snapshot)
        if row is None:
            raise IndexError(f"snapshot {snapshot} was not kept")
        return tuple(kept[expert : expert + 1, row] for kept in self.kept)

    def _replay(self, expert: int, start: int, steps: int) -> tuple[Params, Params]:
        trainer = self._trainer
        if trainer is None:
            raise RuntimeError("trajectories without a trainer cannot be replayed")
        first, last = (s * self.recipe.snapshot_every for s in (start, start + steps))
        epoch, state = self._nearest(trainer, expert, first)
        for done in range(epoch, first):
            trainer.step(state, done)
        at_start = tuple(p.clone() for p in state.params)
        epoch = first
        if last - last % self.stride > first:
            # A checkpoint lies on the way: what is before it need not be walked.
            epoch, state = self._nearest(trainer, expert, last)
        for done in range(epoch, last):
            trainer.step(state, done)
        return at_start, state.params

    def _nearest(
        self, trainer: ExpertTrainer, expert: int, epoch: int
    ) -> tuple[int, TrainingState]:
        """The last checkpoint up to an epoch, or the start, and the state there."""
        state = trainer.begin(range(expert, expert + 1))
        checkpoint = min(epoch, self.recipe.kept_epochs) // self.stride * self.stride
        if checkpoint:
            tensors, state.steps = self._checkpoints[expert, checkpoint]
            copies = tuple(t.clone() for t in tensors)
            n, m = len(state.params), len(state.first)
            state.params, state.first, state.second = copies[:n], copies[n : n + m], copies[n + m :]
        return checkpoint, state


def _stride(recipe: ExpertRecipe, per_state: int, budget: int) -> int:
    """The densest checkpoints that fit; the start itself is made again from its seed."""
    tensors = 3 if recipe.optimizer == "adam" else 1
    every = recipe.snapshot_every
    for stride in range(2 * every, recipe.kept_epochs + 1, every):
        checkpoints = recipe.count * (recipe.kept_epochs // stride)
        if tensors * checkpoints * per_state <= budget:
            return stride
    return recipe.kept_epochs + 1
