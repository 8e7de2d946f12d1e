"""The outer loop of every learned method, with rollback of a run whose loss is not finite.

States are kept at fixed iterations, independent of time. So a run gives the same result if it was
interrupted and resumed, and however often its state was written. Parts of a run that do not depend on
each other run side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from gcsr.distributed.worker import Shared
from gcsr.engines.iterates import CURVE_POINTS, Best, BestValidated, recorded
from gcsr.engines.result import CondensationResult, Context
from gcsr.utils.checkpoint import CheckpointLog, State
from gcsr.utils.devices import free_memory_bytes, within_memory
from gcsr.utils.errors import InputError
from gcsr.utils.parallel import run_jobs_on, single_threaded, suitable_threads
from gcsr.utils.progress import Progress, silent

T = TypeVar("T")
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
    """The loss is still not finite after all rollbacks. ``reason`` does not name the checkpoint."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


def reason_of(error: Exception) -> str:
    """The first line of a message, without anything that depends on where a run is kept."""
    return str(getattr(error, "reason", error)).splitlines()[0]


@dataclass(frozen=True)
class Rollback:
    """A graph whose loss was not finite at ``iteration``; it continued from ``back_to``."""

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
        # The last good state: before an iteration, with finite values only.
        self._iteration = 0
        self._buffers: tuple[Tensor, ...] = ()
        self._kept: Mapping[str, Tensor] = {}
        self._part = None
        if checkpoint is not None and device is not None:
            self._part = checkpoint.part(f"graphs-{seeds[0]}-{seeds[-1]}-{len(seeds)}", device)

    def begin(self, buffers: Sequence[Tensor], losses: Tensor) -> int:
        """The first iteration: that of the checkpoint, without one 0."""
        state = None if self._part is None else self._part.load()
        iteration = 0
        if state is not None:
            iteration = int(state.values["iteration"])
            self.rollbacks = [Rollback(*one) for one in state.values["rollbacks"]]
            for i, buffer in enumerate(buffers):
                buffer.copy_(state.tensors[f"buffer {i}"])
            losses[:iteration] = state.tensors["losses"]
            if self._best is not None:
                self._best.restore(state.tensors)
        self._keep(iteration, buffers)
        return iteration

    def accept(self, iteration: int, buffers: Sequence[Tensor], losses: Tensor) -> None:
        """Keep the state before an iteration, which is finite."""
        self._keep(iteration, buffers)
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
        graphs = bad.nonzero().flatten().tolist()
        if any(self._halvings(graph) >= MOST_ROLLBACKS for graph in graphs):
            if self._part is not None:
                self._part.save(self._state(losses))
            return None
        self.rollbacks += [Rollback(graph, iteration, self._iteration) for graph in graphs]
        for buffer, saved in zip(buffers, self._buffers, strict=True):
            buffer.copy_(saved)
        if self._best is not None:
            self._best.restore(self._kept)
        return self._iteration

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
        return f"; the state before {self._unit} {self._iteration} is kept in {folder}"

    def _halvings(self, graph: int) -> int:
        return sum(one.graph == graph for one in self.rollbacks)

    def _keep(self, iteration: int, buffers: Sequence[Tensor]) -> None:
        self._iteration, self._buffers = iteration, tuple(buffer.clone() for buffer in buffers)
        self._kept = {} if self._best is None else self._best.state()

    def _state(self, losses: Tensor) -> State:
        tensors = {f"buffer {i}": buffer for i, buffer in enumerate(self._buffers)}
        tensors |= {"losses": losses[: self._iteration], **self._kept}
        rollbacks = [[one.graph, one.iteration, one.back_to] for one in self.rollbacks]
        return State(tensors, {"iteration": self._iteration, "rollbacks": rollbacks})


class OuterStep(ABC):
    """One iteration of several condensed graphs, which lie along the first dimension of ``x``."""

    x: Tensor

    @abstractmethod
    def buffers(self) -> tuple[Tensor, ...]:
        """Every tensor that an iteration changes in place."""

    @abstractmethod
    def __call__(self, iteration: int, lr_scale: Tensor | None = None) -> Tensor:
        """Run an iteration and return the loss of every graph.

        ``lr_scale`` has shape ``(graphs, 1, 1)`` and scales all learning rates. It is ``None`` until a
        graph was rolled back, and a new tensor after every rollback.
        """

    @abstractmethod
    def divergence_message(self, iteration: int) -> str:
        """The error if a graph diverges too often, without the final period."""

    def release(self) -> None:  # noqa: B027 - most capture nothing
        """Free what was captured on a device."""

    def is_finite(self) -> Tensor:
        """Whether the state of each graph is finite."""
        return finite_graphs(self.x)


def finite_graphs(*tensors: Tensor) -> Tensor:
    """For every graph, whether its slice of each tensor is finite."""
    return torch.stack([torch.isfinite(tensor.flatten(1)).all(1) for tensor in tensors]).all(0)


def optimize(
    step: OuterStep,
    iterations: int,
    *,
    progress: Progress,
    guard: DivergenceGuard | None = None,
    check_every: int,
    keep_every: int | None = None,
    compare: Callable[[int], None] | None = None,
    compare_at: Container[int] = (),
    stop_if_diverged: bool = False,
) -> Tensor:
    """Run the loop in place and return the losses ``(iterations, graphs)``.

    A graph with a loss that is not finite is rolled back to the last good state, with half of its
    learning rates. A graph that diverges too often raises :class:`InputError`.

    Args:
        step: the iteration.
        iterations: their number; a run that is resumed does the rest of them.
        progress: called after every check.
        guard: keeps good states, and writes them to the checkpoint; by default without a checkpoint.
        check_every: iterations between two checks of the losses. A check waits for the device.
        keep_every: iterations between two states that are kept; by default every check.
        compare: called before the iterations in ``compare_at``, and after the last one.
        compare_at: see ``compare``.
        stop_if_diverged: return the losses so far instead of raising an error.
    """
    guard, keep_every = guard or DivergenceGuard(), keep_every or check_every
    graphs = step.x.shape[0]
    losses = torch.zeros((iterations, graphs), dtype=torch.float64, device=step.x.device)
    i = guard.begin(step.buffers(), losses)
    lr_scale = guard.lr_scale(step.x)
    try:
        while i < iterations:
            if compare is not None and i in compare_at:
                compare(i)
            losses[i] = step(i, lr_scale)
            i += 1
            keep = i % keep_every == 0 or i == iterations
            if i % check_every and not keep:
                continue
            bad = ~finite_graphs(losses[(i - 1) // check_every * check_every : i].T)
            if keep:
                bad |= ~step.is_finite()
            if not bool(bad.any()):
                if keep:
                    guard.accept(i, step.buffers(), losses)
                progress("condensing", i, iterations)
                continue
            back = guard.rollback(i, bad, step.buffers(), losses)
            if back is not None:
                i, lr_scale = back, guard.lr_scale(step.x)
            elif stop_if_diverged:
                progress("condensing", iterations, iterations)
                return losses[:i].cpu()
            else:
                reason = step.divergence_message(i)
                raise DivergedError(f"{reason}{guard.saved_at}.", f"{reason}.")
    finally:
        step.release()
    if compare is not None:
        compare(iterations)
    return losses.cpu()


# How often iterates are compared, beside the last one.
COMPARISONS = 10


@dataclass(frozen=True, eq=False)
class Learned:
    """What a run made of some graphs.

    Attributes:
        iterate: X', A', Y' and what the method adds, with the graphs along their first dimension.
        losses: ``(iterations, graphs)``.
        details: the loss and the scores of iterates, for the provenance of every graph.
        notes: on every graph's rollbacks.
    """

    iterate: tuple[Tensor, ...]
    losses: Tensor
    details: list[dict[str, Any]]
    notes: list[tuple[str, ...]]


def learn(
    ctx: Context,
    step: OuterStep,
    iterations: int,
    iterate: Callable[[int], tuple[Tensor, ...]],
    best: Best | str,
    *,
    loss: str = "matching_loss",
    part: Sequence[int] = (),
    compare_at: Container[int] | None = None,
    watch_every: int = 1,
    unit: str = "iteration",
    **options: Any,
) -> Learned:
    """Run the loop of a method for some graphs, and return the best iterate or the last one.

    Args:
        ctx, step, iterations: what runs.
        iterate: X', A', Y' of every graph as they are now, before an iteration, and what the method
            adds.
        best: compares iterates at ``compare_at``, by default ten times; ``best-val``:
            :class:`BestValidated` does; ``last``: the last one is returned.
        loss: the provenance key of the losses.
        part: names this part of the checkpoint; by default the seeds.
        watch_every: where ``best`` does not validate, ``view.watch`` gets the validation accuracy of
            iterations that are a multiple of this. It changes no result.
        unit: the method's word for an iteration.
        options: those of :func:`optimize`.
    """
    view, seeds = ctx.view, ctx.seeds
    if compare_at is None:
        compare_at = range(0, iterations, max(1, iterations // COMPARISONS))
    chosen, watched = None if isinstance(best, str) else best, -1
    if best == "best-val":
        chosen = BestValidated(view.validation, ctx.device)
    guard = DivergenceGuard(chosen, view.checkpoint, part or seeds, ctx.device, unit)
    validated = chosen
    if view.watch is not None and not isinstance(chosen, BestValidated):
        validated = BestValidated(view.validation, ctx.device)

    def compare(iteration: int) -> None:
        nonlocal watched
        now = iterate(iteration)
        if chosen is not None:
            chosen(iteration, now)
        # A run that was rolled back repeats iterations.
        if view.watch is None or validated is None or iteration <= watched:
            return
        if validated is chosen or iteration % watch_every == 0:
            scores = validated.scores[-1][1] if validated is chosen else validated.score(*now[:3])
            watched = iteration
            view.watch(iteration, dict(zip(seeds, scores.tolist(), strict=True)))

    losses = optimize(
        step,
        iterations,
        progress=ctx.progress,
        guard=guard,
        compare=None if validated is None else compare,
        compare_at=compare_at,
        **options,
    )
    every = max(1, iterations // CURVE_POINTS)
    details: list[dict[str, Any]] = [
        {loss: {"every": every, "values": recorded(one)}} for one in losses[::every].T
    ]
    if chosen is not None:
        details = [one | {chosen.measure: chosen.curve(g)} for g, one in enumerate(details)]
    found = chosen.kept if chosen is not None else iterate(iterations)
    return Learned(found, losses, details, [guard.notes(g) for g in range(len(seeds))])


Units = Literal["relative", "absolute"]
Precision = Literal["float32", "float64"]
PRECISIONS: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}


def feature_unit(x: Tensor, units: Units) -> Tensor:
    """What Adam's rate for X' is measured in, one number per graph: 1, or the root mean square."""
    if units == "absolute":
        return torch.ones((x.shape[0], 1, 1), dtype=x.dtype, device=x.device)
    return x.square().mean((1, 2), keepdim=True).sqrt()


# -- Independent parts of a run: side by side in this process, or as units of a cluster --------------


def advance_together(
    run: Callable[[Context, slice], list[CondensationResult]], ctx: Context, *, bytes_each: int = 0
) -> list[CondensationResult]:
    """``run`` for every graph: all along one leading dimension on CUDA, each on a thread on a CPU.

    It gets the context of some of the seeds, and which of the seeds they are.
    Small products leave a CUDA device idle; on a CPU a graph of its own stays in the cache. Graphs
    that take ``bytes_each`` go together only as far as half of the device's free memory, and half as
    many where that does not suffice.
    """
    count, size = len(ctx.seeds), 1
    if ctx.device.type == "cuda":
        size = count
        if bytes_each:
            size = min(count, max(1, free_memory_bytes(ctx.device) // 2 // bytes_each))

    def some(group: slice, progress: Progress) -> list[CondensationResult]:
        return run(replace(ctx, seeds=ctx.seeds[group], progress=progress), group)

    def everyone(size: int) -> list[CondensationResult]:
        jobs = [partial(some, slice(first, first + size)) for first in range(0, count, size)]
        return [made for group in run_jobs_on(ctx.device, jobs, ctx.progress) for made in group]

    return within_memory(everyone, size, "condensed graphs")


def run_tasks(ctx: Context, tasks: Sequence[Callable[[Context], T]]) -> list[T]:
    """Independent tasks, one thread each: in this process, or as units of ``ctx.cluster``."""
    if ctx.cluster is not None:
        return run_units(ctx, [partial(_on_one_thread, task) for task in tasks])
    jobs = [partial(_reporting, task, ctx) for task in tasks]
    return run_jobs_on(ctx.device, jobs, ctx.progress)


def run_units(ctx: Context, tasks: Sequence[Callable[[Context], T]]) -> list[T]:
    """Results of tasks that are units of ``ctx.cluster``, in their order; workers import the tasks."""
    assert ctx.cluster is not None
    shared, reports = ctx.cluster.put(ctx.view), ctx.progress is not silent
    units = [
        ctx.cluster.submit(_task_unit, task, shared, ctx.nodes, ctx.seeds, reports=reports)
        for task in tasks
    ]
    return ctx.cluster.results(units, ctx.progress)


def _on_one_thread(task: Callable[[Context], T], ctx: Context) -> T:
    with single_threaded():
        return task(ctx)


def _reporting(task: Callable[[Context], T], ctx: Context, progress: Progress) -> T:
    return task(replace(ctx, progress=progress))


def _task_unit(
    task: Callable[[Context], T],
    shared: Shared,
    nodes: int,
    seeds: Sequence[int],
    progress: Progress,
) -> T:
    view, device = shared.get(), torch.device("cpu")
    with suitable_threads(view.visible.x.numel(), device):
        return task(Context(view, nodes, seeds, device, progress))
