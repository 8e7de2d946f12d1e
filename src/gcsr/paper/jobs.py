"""Cells measured by several processes at once: small condensed graphs leave a device mostly idle."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import torch

from gcsr.errors import InputError
from gcsr.paper.cells import Cell
from gcsr.paper.store import Store
from gcsr.paper.work import Outcome, Plan, Work, failed
from gcsr.progress import Progress

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
