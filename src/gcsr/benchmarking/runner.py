"""Measures cells that are not on disk: here, in several processes, or on Ray."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from gcsr.benchmarking.cells import Cell, Protocol
from gcsr.benchmarking.measurement import (
    CellRunner,
    ClaimedCells,
    Data,
    Limits,
    Measurement,
    Outcome,
    failed,
)
from gcsr.benchmarking.store import Store
from gcsr.data.condensed import CondensedGraph
from gcsr.distributed.pool import Cluster, Unit, connected
from gcsr.distributed.start import ClusterError
from gcsr.distributed.worker import Shared
from gcsr.utils.devices import pick_device, share_device
from gcsr.utils.errors import InputError, require, require_integer
from gcsr.utils.progress import Progress, silent

logger = logging.getLogger(__name__)
# Seconds to wait for groups that another process measures.
PATIENCE = 1.0
# Units on a cluster beyond those that can run, so that a free machine has the next one at once.
SPARE_UNITS = 2
# Seconds between reports of a worker process, and until one that was asked to end is killed.
REPORT_EVERY, END_WITHIN = 0.2, 5.0
Measured = Generator[tuple[Cell, Outcome], None, None]


def measure(
    cells: Sequence[Cell],
    store: Store,
    *,
    stage: str,
    protocol: Protocol,
    data: Data,
    device: str = "auto",
    jobs: int = 1,
    keep_graphs: Path | None = None,
    bounds: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    progress: Progress = silent,
    cluster: str | Cluster | None = None,
) -> dict[Cell, Outcome]:
    """Measure the cells that ``store`` does not hold, those that share condensed graphs together.

    Every finished cell is in the store before the next begins. Outcomes also name datasets that are
    absent and cells that failed. Cells that other processes with the same store measure are waited
    for at the end. ``bounds`` are bytes that experts may take in each process (``expert_memory``,
    ``expert_disk``). ``progress`` gets the number of finished cells under the name ``stage``.
    """
    require_integer("jobs", jobs, 1)
    require(
        jobs == 1 or cluster is None,
        f"jobs must be 1 with a cluster, which uses all its CPUs, got {jobs}.",
    )
    limits = limits or Limits()
    by_graphs: dict[Cell, list[Cell]] = {}
    for cell in cells:
        by_graphs.setdefault(cell.condensation, []).append(cell)
    groups = Waiting(by_graphs.values(), limits.seconds)
    found: dict[Cell, Outcome] = {}
    progress(stage, 0, len(cells))
    with ExitStack() as stack:
        units = None if cluster is None else stack.enter_context(connected(cluster))
        target = pick_device(device) if units is None else units.device(device)
        jobs = min(jobs, len(groups))
        measurement = Measurement(protocol, target, bounds or {}, limits, max(1, jobs))
        runner = CellRunner(store, data, measurement, keep_graphs)
        if units is not None:
            measured = measure_on_cluster(groups, runner, units)
        elif jobs > 1:
            measured = _in_processes(groups, runner, jobs, progress)
        else:
            measured = _here(groups, replace(runner, progress=progress))
        try:
            with closing(measured):  # at once: workers must not outlive an interruption
                for cell, outcome in measured:
                    found[cell] = outcome
                    state = outcome.reason or outcome.state
                    logger.info("%d of %d: %s: %s", len(found), len(cells), cell.place, state)
                    progress(stage, len(found), len(cells))
        except ClusterError as error:
            sentence = str(error).rstrip(".")
            raise ClusterError(
                f"{sentence}; {len(found)} of {len(cells)} cells are finished and kept."
            ) from None
        finally:
            store.refresh()
    return found


class Waiting(deque[Sequence[Cell]]):
    """Groups of cells that nobody has begun; none once the seconds of the run are over."""

    def __init__(self, groups: Iterable[Sequence[Cell]], seconds: float) -> None:
        super().__init__(groups)
        self._end = time.monotonic() + seconds

    def __bool__(self) -> bool:
        if time.monotonic() >= self._end:
            self.clear()
        return len(self) > 0


def _here(waiting: Waiting, runner: CellRunner) -> Measured:
    """One group after the other; those that another process measures go to the end."""
    busy = 0  # groups of others in a row
    while waiting:
        group = waiting.popleft()
        claimed = runner.claim(group)
        if claimed is not None:
            busy = 0
            yield from runner.measured(claimed)
            continue
        waiting.append(group)
        busy += 1
        if busy >= len(waiting):
            busy = 0
            time.sleep(PATIENCE)


# -- On a cluster: a group that shares condensed graphs is a unit of work -----------------------------


def measure_on_cluster(waiting: Waiting, runner: CellRunner, cluster: Cluster) -> Measured:
    """Every cell once, as the units of the cluster finish."""
    running = dict[Unit, ClaimedCells]()
    # Put once per dataset; dropped with the last unit that reads it.
    graphs: dict[str, Shared] = {}
    most = cluster.cpus + SPARE_UNITS
    try:
        while waiting or running:
            busy = 0
            while waiting and len(running) < most and busy < len(waiting):
                group = waiting.popleft()
                claimed = runner.claim(group)
                if claimed is None:
                    waiting.append(group)
                    busy += 1
                    continue
                if claimed.graph is None:
                    claimed.lock.close()
                    yield from claimed.known
                    continue
                name = group[0].dataset
                if name not in graphs:
                    read = {one.missing[0].dataset for one in running.values()}
                    graphs = {one: shared for one, shared in graphs.items() if one in read}
                    graphs[name] = cluster.put(claimed.graph)
                arguments = graphs[name], runner.measurement, claimed.missing, runner.kept(claimed)
                unit = cluster.submit(_unit, *arguments, device=runner.measurement.device)
                running[unit] = claimed
                yield from claimed.known  # from here on the claim is closed whatever happens
            if not running:
                if waiting:
                    time.sleep(PATIENCE)
                continue
            for unit in cluster.some_finished(list(running)):
                yield from _collected(cluster, unit, running, runner)
    finally:
        cluster.cancel(list(running))
        for claimed in running.values():
            claimed.lock.close()


def _collected(
    cluster: Cluster, unit: Unit, running: dict[Unit, ClaimedCells], runner: CellRunner
) -> Iterator[tuple[Cell, Outcome]]:
    """The outcomes of a unit; rows are appended, and the claim is closed."""
    claimed = running[unit]
    small: list[CondensedGraph] = []
    try:
        outcomes, small = cluster.get(unit.ref)
    except ClusterError as error:
        if cluster.lost:
            raise
        outcomes = failed(claimed.missing, str(error))
    for cell, outcome in outcomes:
        yield cell, runner.stored(outcome)
    # Rows are stored before saving the graphs can fail on a full disk.
    runner.keep(claimed, small)
    running.pop(unit).lock.close()


def _unit(
    graph: Shared,
    measurement: Measurement,
    missing: Sequence[Cell],
    kept: list[CondensedGraph] | None,
    progress: Progress,
) -> tuple[list[tuple[Cell, Outcome]], list[CondensedGraph]]:
    """What a worker of the cluster computes: outcomes, and the condensed graphs it made."""
    made: list[CondensedGraph] = []
    outcomes = list(measurement.outcomes(missing, graph.get(), kept, made.extend, progress))
    if any(outcome.state == "failed" and cell.own for cell, outcome in outcomes):
        graph.forget()
    return outcomes, made


# -- In several processes: small condensed graphs leave a device mostly idle --------------------------


class WorkerError(RuntimeError):
    """A fault of this library in a worker process; the text is its traceback."""


def _in_processes(waiting: Waiting, runner: CellRunner, jobs: int, progress: Progress) -> Measured:
    """Every cell once, in the order in which they are finished.

    If a worker dies, its cells fail. One that is far over the limit of a cell and reports nothing is
    replaced. Workers end with this generator, and when the process that runs it dies.
    """
    names = dict.fromkeys(group[0].dataset for group in waiting)
    runner = replace(runner, data=runner.data.fetched(names))
    limit = runner.measurement.limits.cell
    wait = None if math.isinf(limit) else REPORT_EVERY
    workers = [_Worker(number, runner, jobs) for number in range(1, jobs + 1)]
    try:
        while any(worker.alive for worker in workers):
            ready = connection.wait([w.pipe for w in workers if w.alive], wait)
            for place, worker in enumerate(workers):
                if worker.pipe in ready:
                    yield from worker.receive(waiting, progress)
                elif worker.alive and worker.overdue(limit):
                    worker.end()
                    yield from runner.given_up(worker.left)
                    workers[place] = _Worker(worker.number, runner, jobs)
        for group in waiting:
            yield from failed(group, "every worker process has died.")
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """The parent's side of one of several worker processes, which is started."""

    def __init__(self, number: int, runner: CellRunner, jobs: int) -> None:
        self.number, self.alive, self.begun = number, True, 0.0
        # Cells of its group that are not finished.
        self.left: list[Cell] = []
        # A fresh interpreter: CUDA cannot be used after a fork.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        threads = max(1, torch.get_num_threads() // jobs)
        self.process = context.Process(
            target=_serve, args=(theirs, runner, threads, jobs), daemon=True
        )
        with _without_interrupts():
            self.process.start()
        theirs.close()

    def overdue(self, limit: float) -> bool:
        """Whether a cell takes twice as long as it may (condensing and testing), and more."""
        return bool(self.left) and time.monotonic() - self.begun > 2 * limit + END_WITHIN

    def receive(self, waiting: Waiting, progress: Progress) -> Measured:
        """Handle one message; a worker without work gets the next group."""
        try:
            message = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(END_WITHIN)
            code = self.process.exitcode
            self.end()
            yield from failed(
                self.left, f"the worker process died (exit code {code}); run it again."
            )
            return
        match message:
            case Exception():
                raise message
            case int(done), int(total):
                progress(f"job {self.number}", done, total)
            case Cell() as cell, Outcome() as outcome:
                self.left.remove(cell)
                self.begun = time.monotonic()
                yield cell, outcome
            case bool(busy):
                if busy:  # another run has the group
                    waiting.append(self.left)
                if not waiting:
                    self.end()
                    return
                self.left, self.begun = list(waiting.popleft()), time.monotonic()
                with suppress(OSError):  # it has died: the next message is the end of the pipe
                    self.pipe.send((self.left, PATIENCE if busy else 0.0))

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
    if not hasattr(signal, "pthread_sigmask"):  # Windows: a worker ignores it once it runs
        yield
        return
    resource_tracker.ensure_running()  # its own start would unblock interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection, runner: CellRunner, threads: int, jobs: int) -> None:
    """In the worker: ask for groups and measure them until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    share_device(runner.measurement.device, jobs)
    reported = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal reported
        if time.monotonic() - reported >= REPORT_EVERY:
            reported = time.monotonic()
            pipe.send((done, total))

    try:
        runner = replace(runner, progress=report)
        busy = False
        while True:
            pipe.send(busy)
            group, pause = pipe.recv()
            time.sleep(pause)
            claimed = runner.claim(group)
            for message in () if claimed is None else runner.measured(claimed):
                pipe.send(message)
            busy = claimed is None
    except (EOFError, ConnectionError):
        return
    except Exception as error:
        fault = error if isinstance(error, InputError) else WorkerError(traceback.format_exc())
        with suppress(OSError):  # the parent may be gone
            pipe.send(fault)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
