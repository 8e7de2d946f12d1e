"""The one runner: cells that are not on disk yet are measured, in this process or in several."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.distributed.pool import Cluster, Unit, connected
from gcsr.distributed.start import ClusterError
from gcsr.distributed.worker import Shared
from gcsr.paper.cells import Cell, Experiment, Protocol
from gcsr.paper.store import Store
from gcsr.paper.work import (
    Data,
    GraphCache,
    Measuring,
    Outcome,
    Plan,
    Taken,
    Work,
    failed,
    recalled,
)
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress, silent

# -- Cells measured on a cluster: a group that shares condensed graphs is a unit of work there -------


# Units given away beyond those that can run: a machine that is done has the next at hand.
SPARE_UNITS = 2
Measured = tuple[list[tuple[Cell, Outcome]], list[CondensedGraph]]


def measured_on_cluster(
    groups: Sequence[Sequence[Cell]], plan: Plan, store: Store, cluster: Cluster, patience: float
) -> Generator[tuple[Cell, Outcome], None, None]:
    """Every cell once, in the order in which they are finished; a row is on disk before it is told."""
    work = Work(plan, store, silent)
    waiting, running = deque(groups), dict[Unit, Taken]()
    # Put once per dataset; gone with the last unit that reads it.
    graphs: dict[str, Shared] = {}
    most = cluster.cpus + SPARE_UNITS
    try:
        while waiting or running:
            busy = 0
            while waiting and len(running) < most and busy < len(waiting):
                group = waiting.popleft()
                taken = work.take(group)
                if taken is None:  # another run is at it: something else first
                    waiting.append(group)
                    busy += 1
                    continue
                yield from taken.known
                if taken.graph is None or not taken.missing:
                    taken.claim.close()
                    continue
                name = group[0].dataset
                if name not in graphs:
                    read = {one.missing[0].dataset for one in running.values()}
                    graphs = {one: shared for one, shared in graphs.items() if one in read}
                    graphs[name] = cluster.put(taken.graph)
                running[_given(cluster, taken, work, plan, graphs[name])] = taken
            if not running:
                if waiting:
                    time.sleep(patience)
                continue
            for unit in cluster.some_finished(list(running)):
                yield from _told(cluster, unit, running, work, store)
    finally:
        cluster.call_off(list(running))
        for taken in running.values():
            taken.claim.close()


def _given(cluster: Cluster, taken: Taken, work: Work, plan: Plan, graph: Shared) -> Unit:
    wanted = plan.shelf is not None
    kept = work.kept(taken)
    how = plan.protocol, plan.device, plan.bounds
    arguments = graph, how, taken.missing, kept, wanted and kept is None
    return cluster.give(_measured, *arguments, device=plan.device)


def _told(
    cluster: Cluster, unit: Unit, running: dict[Unit, Taken], work: Work, store: Store
) -> Generator[tuple[Cell, Outcome], None, None]:
    """What became of a unit; rows are appended, and the claim is given back."""
    taken = running[unit]
    small: list[CondensedGraph] = []
    try:
        outcomes, small = cluster.result(unit)
    except ClusterError as error:
        if cluster.lost:
            raise
        outcomes = failed(taken.missing, str(error))
    for cell, outcome in outcomes:
        if outcome.row is not None:
            store.append(outcome.row)
        yield cell, outcome
    # What was measured is safe before a full disk can say no to the graphs.
    work.keep(taken, small)
    running.pop(unit).claim.close()


def _measured(
    shared: Shared,
    how: tuple[Protocol, torch.device, Mapping[str, int]],
    missing: Sequence[Cell],
    kept: list[CondensedGraph] | None,
    wanted: bool,
    progress: Progress,
) -> Measured:
    """The unit: outcomes and, where they are ``wanted``, the condensed graphs behind them."""
    graph: Graph = shared.get()
    made: list[CondensedGraph] = []
    protocol, device, bounds = how
    measuring = Measuring(protocol, device, progress, bounds)
    outcomes = list(measuring.outcomes(missing, graph, kept, made.extend if wanted else _dropped))
    return outcomes, made


def _dropped(small: Sequence[CondensedGraph]) -> None:
    """Nobody keeps them."""


# -- Cells measured by several processes at once: small condensed graphs leave a device mostly idle ---


# Seconds between reports of a worker, and until one that was asked to end is killed.
REPORT_EVERY, END_WITHIN = 0.2, 5.0
_IDLE, _BUSY, _OUTCOME, _STEP, _REFUSED, _FAULT = range(6)


class WorkerError(RuntimeError):
    """A fault of this library in a worker process; the text is its traceback."""


def measured_in_processes(
    groups: Sequence[Sequence[Cell]], plan: Plan, jobs: int, patience: float, progress: Progress
) -> Generator[tuple[Cell, Outcome], None, None]:
    """Every cell once, in the order in which they are finished.

    A worker that dies costs the cells it was at. Workers end with this generator, and when the process
    that runs it dies, whatever kills it.
    """
    data = plan.data.fetched(dict.fromkeys(group[0].dataset for group in groups))
    plan = replace(plan, data=data)
    waiting = deque(groups)
    threads = max(1, torch.get_num_threads() // jobs)
    workers = [_Worker.start(number, plan, threads) for number in range(1, jobs + 1)]
    try:
        while any(worker.alive for worker in workers):
            ready = connection.wait([w.pipe for w in workers if w.alive])
            for worker in workers:
                if worker.pipe in ready:
                    yield from worker.served(waiting, patience, progress)
        for group in waiting:
            yield from failed(group, "every worker process has died.")
    finally:
        for worker in workers:
            worker.end()


@dataclass(eq=False)
class _Worker:
    """The parent's side of a worker process."""

    number: int
    process: BaseProcess
    pipe: Connection
    alive: bool = True
    group: Sequence[Cell] = ()
    told: set[Cell] = field(default_factory=set)

    @classmethod
    def start(cls, number: int, plan: Plan, threads: int) -> _Worker:
        # A fresh interpreter: CUDA cannot be used after a fork.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, plan, threads), daemon=True)
        with _without_interrupts():
            process.start()
        theirs.close()
        return cls(number, process, ours)

    def served(
        self, waiting: deque[Sequence[Cell]], patience: float, progress: Progress
    ) -> Iterator[tuple[Cell, Outcome]]:
        """Take what the worker says, and give it work when it asks."""
        try:
            kind, *said = self.pipe.recv()
        except (EOFError, OSError):
            yield from self._died()
            return
        if kind == _STEP:
            progress(f"job {self.number}", *said)
        elif kind == _OUTCOME:
            cell, outcome = said
            self.told.add(cell)
            yield cell, outcome
        elif kind == _REFUSED:
            raise InputError(said[0])
        elif kind == _FAULT:
            raise WorkerError(said[0])
        else:
            if kind == _BUSY:  # another run is at it: something else first
                waiting.append(self.group)
            self._give(waiting, patience if kind == _BUSY else 0.0)

    def _give(self, waiting: deque[Sequence[Cell]], pause: float) -> None:
        self.group, self.told = (), set()
        if not waiting:
            self.end()
            return
        self.group = waiting.popleft()
        with suppress(OSError):  # it has died, which the next look at the pipe will tell
            self.pipe.send((self.group, pause))

    def _died(self) -> Iterator[tuple[Cell, Outcome]]:
        self.process.join(END_WITHIN)
        left = [cell for cell in self.group if cell not in self.told]
        code = self.process.exitcode
        self.end()
        yield from failed(left, f"the worker process died (exit code {code}); run it again.")

    def end(self) -> None:
        """Make sure that the process is gone."""
        self.alive = False
        self.pipe.close()
        self.process.terminate()
        self.process.join(END_WITHIN)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that start in the block never see Ctrl-C: their parent does, and ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the worker -----------------------------------------------------------------------------------


def _serve(pipe: Connection, plan: Plan, threads: int) -> None:
    """Ask for groups and measure them until the pipe is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    try:
        work = Work(plan, Store(plan.rows), _Reports(pipe))
        pipe.send((_IDLE,))
        while True:
            group, pause = pipe.recv()
            time.sleep(pause)
            outcomes = work.outcomes(group)
            for cell, outcome in outcomes or ():
                pipe.send((_OUTCOME, cell, outcome))
            pipe.send((_IDLE if outcomes is not None else _BUSY,))
    except (EOFError, ConnectionError):
        return
    except InputError as error:
        pipe.send((_REFUSED, str(error)))
    except Exception:
        pipe.send((_FAULT, traceback.format_exc()))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


class _Reports:
    """Progress for the parent, not more often than somebody can read."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= REPORT_EVERY:
            self._last = now
            self._pipe.send((_STEP, done, total))


# Seconds between looks at cells that another process measures.
PATIENCE = 1.0


def reproduce(
    experiment: Experiment,
    store: Store,
    *,
    protocol: Protocol,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    root: Path | None = None,
    download: bool | None = None,
    device: str = "auto",
    jobs: int = 1,
    keep_graphs: Path | None = None,
    bounds: Mapping[str, int] | None = None,
    progress: Progress = silent,
    cluster: str | Cluster | None = None,
) -> dict[Cell, Outcome]:
    """Measure the cells of an experiment (of some datasets or methods) that ``store`` does not hold.

    Every finished cell is in the store before the next begins. A dataset that cannot be had, or a
    cell that cannot be computed, is told in the outcome; the rest runs. ``download``: whether missing
    datasets are fetched, by default unless the protocol is quick. ``jobs`` processes measure at the
    same time; what other processes with the same store are at is left to them, and waited for at the
    end. ``keep_graphs`` is a folder for condensed graphs, which cells of other tables then find there.
    ``bounds`` are the bytes that experts may take (``expert_memory``, ``expert_disk``) in each process.
    ``cluster`` (``local`` or the ``HOST:PORT`` of a Ray cluster's head) measures cells instead.
    """
    for name in datasets:
        experiment.require_part("dataset", name, experiment.datasets)
    whole = isinstance(jobs, int) and not isinstance(jobs, bool) and jobs >= 1
    require(whole, f"jobs: {jobs!r} is not accepted; a whole number >= 1 is.")
    require(
        jobs == 1 or cluster is None,
        f"jobs: {jobs} is not accepted with a cluster, which takes as many as it has CPUs.",
    )
    data = Data(root, not protocol.quick if download is None else download)
    shelf = None if keep_graphs is None else GraphCache(keep_graphs)
    known = {cell.method for cell in experiment.cells}
    for name in methods:
        experiment.require_part("method", name, sorted(known))
    wanted = [
        cell
        for cell in experiment.cells
        if (not datasets or cell.dataset in datasets) and (not methods or cell.method in methods)
    ]
    groups = _groups(wanted)
    stage, total = f"cells of {experiment.name}", len(wanted)
    found: dict[Cell, Outcome] = {}
    progress(stage, 0, total)
    with ExitStack() as connection:
        units = None if cluster is None else connection.enter_context(connected(cluster))
        target = pick_device(device) if units is None else units.device(device)
        plan = Plan(store.path, protocol, data, target, shelf, bounds or {})
        if units is not None:
            measured = measured_on_cluster(groups, plan, store, units, PATIENCE)
        elif jobs > 1 and len(groups) > 1:
            several = min(jobs, len(groups))
            measured = measured_in_processes(groups, plan, several, PATIENCE, progress)
        else:
            measured = _in_turn(groups, Work(plan, store, progress))
        try:
            with closing(measured):  # at once: workers must not outlive an interruption
                for cell, outcome in measured:
                    found[cell] = outcome
                    progress(stage, len(found), total)
        except ClusterError as error:
            sentence = str(error).rstrip(".")
            raise ClusterError(
                f"{sentence}; {len(found)} of {total} cells are finished and kept."
            ) from None
        finally:
            store.refresh()
    return recall(experiment, store, protocol) | found


def recall(experiment: Experiment, store: Store, protocol: Protocol) -> dict[Cell, Outcome]:
    """What is known of every cell without computing anything."""
    return {cell: recalled(cell, store, protocol) for cell in experiment.cells}


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share condensed graphs together, datasets one after the other."""
    by_dataset: dict[str, dict[Cell, list[Cell]]] = {}
    for cell in cells:
        same = by_dataset.setdefault(cell.dataset, {})
        same.setdefault(cell.condensation, []).append(cell)
    return [group for same in by_dataset.values() for group in same.values()]


def _in_turn(
    groups: Iterable[list[Cell]], work: Work
) -> Generator[tuple[Cell, Outcome], None, None]:
    """One group after the other; those that another process is at go to the end."""
    waiting = deque(groups)
    taken = 0  # by others, since the last one that was not
    while waiting:
        group = waiting.popleft()
        outcomes = work.outcomes(group)
        if outcomes is not None:
            taken = 0
            yield from outcomes
            continue
        waiting.append(group)
        taken += 1
        if taken >= len(waiting):
            taken = 0
            time.sleep(PATIENCE)
