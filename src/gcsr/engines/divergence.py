"""What a run goes back to: a good state in memory when a loss is not finite, on disk when it was ended.

States are taken at iterations that do not depend on time, so that what happens after a state is the
same whether or not somebody was killed, and how often states are written changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gcsr.engines.iterates import Keeper, Kept
from gcsr.utils.checkpoint import Journal, Part, State

# How often a graph's rate is halved before its run gives up.
MOST_ROLLBACKS = 3


@dataclass(frozen=True, eq=False)
class _Good:
    """A state in which everything was finite, before an iteration."""

    iteration: int
    buffers: tuple[Tensor, ...]
    kept: Kept | None
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Rollback:
    """A graph's loss was not finite by an iteration, and its run went back to another."""

    graph: int
    iteration: int
    back_to: int


class DivergenceGuard:
    """Knows the last good state of a run and, where there is a journal, writes it down.

    Args:
        chooser: whoever keeps an iterate, and goes back with the run.
        journal: where states are written; nowhere by default.
        seeds: of the graphs that advance together; they name the run's part of the journal.
        device: where the run's tensors are.
        unit: what the method calls an iteration.
    """

    def __init__(
        self,
        chooser: Keeper | None = None,
        journal: Journal | None = None,
        seeds: Sequence[int] = (),
        device: torch.device | None = None,
        unit: str = "iteration",
    ) -> None:
        self.rollbacks: list[Rollback] = []
        self._unit = unit
        self._chooser = chooser
        self._good: _Good | None = None
        self._part: Part | None = None
        if journal is not None and device is not None:
            name = f"graphs-{seeds[0]}-{seeds[-1]}-{len(seeds)}"
            self._part = journal.part(name, device)

    def begin(self, buffers: Sequence[Tensor], losses: Tensor) -> tuple[int, Mapping[str, Any]]:
        """Where the run begins: at 0, or where its state on disk says, with the values there."""
        state = None if self._part is None else self._part.load()
        iteration, values = 0, {}
        if state is not None:
            iteration, values = int(state.values["iteration"]), state.values["more"]
            self.rollbacks = [Rollback(*one) for one in state.values["rollbacks"]]
            for i, buffer in enumerate(buffers):
                buffer.copy_(state.tensors[f"buffer {i}"])
            losses[:iteration] = state.tensors["losses"]
            if self._chooser is not None:
                self._chooser.put_back(Kept.of(state.tensors))
        self._remember(iteration, buffers, values)
        return iteration, values

    def accept(
        self,
        iteration: int,
        buffers: Sequence[Tensor],
        losses: Tensor,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """The state before an iteration is good; ``values`` are plain ones that belong to it."""
        good = self._remember(iteration, buffers, values or {})
        if self._part is not None:
            nbytes = sum(buffer.nbytes for buffer in good.buffers) + losses[:iteration].nbytes
            self._part.offer(nbytes, lambda: self._state(good, losses))

    def rollback(
        self, iteration: int, bad: Tensor, buffers: Sequence[Tensor], losses: Tensor
    ) -> int | None:
        """Go back to the last good state because of the graphs that are ``bad``.

        Returns the iteration there; ``None`` if one of them went back often enough: the state then
        stays as it is, and the good one is on disk where there is a journal.
        """
        good = self._good
        if good is None:
            raise RuntimeError("a run that never began cannot go back")
        graphs = bad.nonzero().flatten().tolist()
        if any(self.halvings(graph) >= MOST_ROLLBACKS for graph in graphs):
            if self._part is not None:
                self._part.save(self._state(good, losses))
            return None
        self.rollbacks += [Rollback(graph, iteration, good.iteration) for graph in graphs]
        for buffer, saved in zip(buffers, good.buffers, strict=True):
            buffer.copy_(saved)
        if self._chooser is not None:
            self._chooser.put_back(good.kept)
        return good.iteration

    def halvings(self, graph: int) -> int:
        """How often the rate of a graph was halved."""
        return sum(one.graph == graph for one in self.rollbacks)

    def scaled_lr(self, rate: Tensor) -> Tensor:
        """A rate, one number per graph, after the halvings; the same tensor if there were none."""
        if not self.rollbacks:
            return rate
        graphs = max(rate.shape[0], 1 + max(one.graph for one in self.rollbacks))
        shares = [0.5 ** self.halvings(graph) for graph in range(graphs)]
        return rate * rate.new_tensor(shares).view(-1, *(1 for _ in rate.shape[1:]))

    def notes(self, graph: int) -> tuple[str, ...]:
        """What somebody who uses a graph should know."""
        return tuple(
            f"the loss was not finite by {self._unit} {one.iteration}: the run went back to"
            f" {self._unit} {one.back_to} and halved its rate"
            for one in self.rollbacks
            if one.graph == graph
        )

    @property
    def saved_at(self) -> str:
        """Where the last good state lies, as the end of a sentence; nothing without a journal."""
        if self._part is None or self._good is None:
            return ""
        folder = self._part.path.parent
        return f"; the state before {self._unit} {self._good.iteration} is kept in {folder}"

    def _remember(
        self, iteration: int, buffers: Sequence[Tensor], values: Mapping[str, Any]
    ) -> _Good:
        kept = None if self._chooser is None else self._chooser.kept()
        self._good = _Good(iteration, tuple(buffer.clone() for buffer in buffers), kept, values)
        return self._good

    def _state(self, good: _Good, losses: Tensor) -> State:
        tensors = {f"buffer {i}": buffer for i, buffer in enumerate(good.buffers)}
        tensors["losses"] = losses[: good.iteration]
        if good.kept is not None:
            tensors |= good.kept.tensors()
        rollbacks = [[one.graph, one.iteration, one.back_to] for one in self.rollbacks]
        values = {"iteration": good.iteration, "rollbacks": rollbacks, "more": dict(good.values)}
        return State(tensors, values)
