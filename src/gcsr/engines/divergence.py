"""Rollback of a run whose loss is not finite, and its checkpoint.

States are kept at fixed iterations, independent of time. So a run gives the same result if it was
interrupted and resumed, and however often its state was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.engines.iterates import Best
from gcsr.utils.checkpoint import CheckpointLog, State
from gcsr.utils.errors import InputError

# How often the learning rates of a graph are halved before its run fails.
MOST_ROLLBACKS = 3


# Errors of one run among several: its settings are refused, need too much memory, or diverge.
RUN_ERRORS: tuple[type[Exception], ...] = (
    InputError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    torch.OutOfMemoryError,
    MemoryError,
)


class DivergedError(InputError):
    """A run whose loss stays not finite. ``reason`` leaves out where a checkpoint is."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


def reason_of(error: Exception) -> str:
    """The first line of a message, without anything that depends on where a run is kept."""
    return str(getattr(error, "reason", error)).splitlines()[0]


@dataclass(frozen=True, eq=False)
class _Good:
    """A state before an iteration, with finite values only."""

    iteration: int
    buffers: tuple[Tensor, ...]
    best: Mapping[str, Tensor]
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Rollback:
    """A graph's loss was not finite by an iteration, and its run went back to another."""

    graph: int
    iteration: int
    back_to: int


class DivergenceGuard:
    """Keeps the last good state of a run and writes it to the checkpoint.

    Args:
        best: keeps the best iterate; it is rolled back with the run.
        checkpoint: the open checkpoint; by default there is none.
        seeds: of the graphs that are condensed together; they name this part of the checkpoint.
        device: of the run's tensors.
        unit: the method's word for an iteration.
    """

    def __init__(
        self,
        best: Best | None = None,
        checkpoint: CheckpointLog | None = None,
        seeds: Sequence[int] = (),
        device: torch.device | None = None,
        unit: str = "iteration",
    ) -> None:
        self.rollbacks: list[Rollback] = []
        self._unit = unit
        self._best = best
        self._good = _Good(0, (), {}, {})
        self._part = None
        if checkpoint is not None and device is not None:
            self._part = checkpoint.part(f"graphs-{seeds[0]}-{seeds[-1]}-{len(seeds)}", device)

    def begin(self, buffers: Sequence[Tensor], losses: Tensor) -> tuple[int, Mapping[str, Any]]:
        """The first iteration and the values of the checkpoint; without one 0 and no values."""
        state = None if self._part is None else self._part.load()
        iteration, values = 0, {}
        if state is not None:
            iteration, values = int(state.values["iteration"]), state.values["more"]
            self.rollbacks = [Rollback(*one) for one in state.values["rollbacks"]]
            for i, buffer in enumerate(buffers):
                buffer.copy_(state.tensors[f"buffer {i}"])
            losses[:iteration] = state.tensors["losses"]
            if self._best is not None:
                self._best.restore(state.tensors)
        self._keep(iteration, buffers, values)
        return iteration, values

    def accept(
        self, iteration: int, buffers: Sequence[Tensor], losses: Tensor, values: Mapping[str, Any]
    ) -> None:
        """Keep the state before an iteration, which is finite."""
        self._keep(iteration, buffers, values)
        if self._part is not None:
            nbytes = sum(buffer.nbytes for buffer in buffers) + losses[:iteration].nbytes
            self._part.offer(nbytes, lambda: self._state(losses))

    def rollback(
        self, iteration: int, bad: Tensor, buffers: Sequence[Tensor], losses: Tensor
    ) -> int | None:
        """Go back to the last good state because the graphs ``bad`` diverged.

        Returns its iteration, or ``None`` if one of them was rolled back too often. Then the good
        state is written to the checkpoint, and the buffers stay as they are.
        """
        good = self._good
        graphs = bad.nonzero().flatten().tolist()
        if any(self._halvings(graph) >= MOST_ROLLBACKS for graph in graphs):
            if self._part is not None:
                self._part.save(self._state(losses))
            return None
        self.rollbacks += [Rollback(graph, iteration, good.iteration) for graph in graphs]
        for buffer, saved in zip(buffers, good.buffers, strict=True):
            buffer.copy_(saved)
        if self._best is not None:
            self._best.restore(good.best)
        return good.iteration

    def lr_scale(self, x: Tensor) -> Tensor | None:
        """Factors of the learning rates after the halvings, ``(graphs, 1, 1)`` and like ``x``."""
        if not self.rollbacks:
            return None
        factors = [0.5 ** self._halvings(graph) for graph in range(x.shape[0])]
        return x.new_tensor(factors).view(-1, 1, 1)

    def notes(self, graph: int) -> tuple[str, ...]:
        """Notes for the provenance of a graph."""
        return tuple(
            f"the loss was not finite by {self._unit} {one.iteration}: the run went back to"
            f" {self._unit} {one.back_to} and halved its rate"
            for one in self.rollbacks
            if one.graph == graph
        )

    @property
    def saved_at(self) -> str:
        """Where the last good state is, as the end of a sentence; empty without a checkpoint."""
        if self._part is None:
            return ""
        folder = self._part.path.parent
        return f"; the state before {self._unit} {self._good.iteration} is kept in {folder}"

    def _halvings(self, graph: int) -> int:
        return sum(one.graph == graph for one in self.rollbacks)

    def _keep(self, iteration: int, buffers: Sequence[Tensor], values: Mapping[str, Any]) -> None:
        best = {} if self._best is None else self._best.state()
        self._good = _Good(iteration, tuple(buffer.clone() for buffer in buffers), best, values)

    def _state(self, losses: Tensor) -> State:
        good = self._good
        tensors = {f"buffer {i}": buffer for i, buffer in enumerate(good.buffers)}
        tensors |= {"losses": losses[: good.iteration], **good.best}
        rollbacks = [[one.graph, one.iteration, one.back_to] for one in self.rollbacks]
        values = {"iteration": good.iteration, "rollbacks": rollbacks, "more": dict(good.values)}
        return State(tensors, values)
