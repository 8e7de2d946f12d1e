"""Independent jobs on the cores of this machine, one thread each.

Small matrix products run faster on one thread than on two, so work is spread over jobs (graphs,
experts) rather than inside a product. Torch releases the interpreter lock while it computes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

from gcsr.utils.devices import release_freed_memory
from gcsr.utils.progress import Progress

T = TypeVar("T")
_limit: list[int] = []
# Jobs at a time inside a block in which torch itself has one thread; every thread has its own.
_allowed: ContextVar[int | None] = ContextVar("jobs at a time", default=None)
# Numbers from which products of whole feature matrices are worth several threads.
MANY_NUMBERS = 10**8


class _StoppedError(BaseException):
    """Ends the other jobs once one of them failed or the user interrupted."""


@contextmanager
def single_threaded() -> Iterator[None]:
    """Torch computes on one thread inside this block."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def suitable_threads(numbers: int, device: torch.device) -> Iterator[None]:
    """Torch computes on one thread inside this block unless the features are many numbers.

    Threads of one product wait for each other. Where another process is busy on a core they wait for
    it too, and work of many small products takes several times as long. Independent jobs
    (:func:`run_jobs`) still use every core.
    """
    if device.type != "cpu" or numbers > MANY_NUMBERS:
        yield
        return
    before = _allowed.set(_allowed.get() or torch.get_num_threads())
    try:
        with single_threaded():
            yield
    finally:
        _allowed.reset(before)


def run_jobs(jobs: Sequence[Callable[[Progress], T]], progress: Progress) -> list[T]:
    """Run every job with a single-threaded torch, as many at a time as torch has threads.

    Results come in the order of the jobs. Progress of the jobs is added up. If one fails, or the
    caller is interrupted, the others end at their next report.
    """
    threads = _allowed.get() or torch.get_num_threads()
    workers = max(1, min(len(jobs), threads, *_limit))
    with single_threaded():
        if len(jobs) == 1:
            return [jobs[0](progress)]
        stop, lock = threading.Event(), threading.Lock()
        finished: dict[str, list[int]] = {}

        def run(number: int, job: Callable[[Progress], T]) -> T:
            def report(stage: str, done: int, total: int) -> None:
                if stop.is_set():
                    raise _StoppedError
                with lock:
                    counts = finished.setdefault(stage, [0] * len(jobs))
                    counts[number] = done
                    progress(stage, sum(counts), total * len(jobs))

            try:
                return job(report)
            finally:
                release_freed_memory()

        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            futures = [pool.submit(run, number, job) for number, job in enumerate(jobs)]
            try:
                return [future.result() for future in futures]
            except BaseException as error:
                stop.set()
                for future in futures:
                    future.cancel()
                # The failure that came first, not the stops it caused.
                ended = (one.exception() for one in futures if one.done() and not one.cancelled())
                failures = (one for one in ended if not isinstance(one, _StoppedError | None))
                raise next(failures, error) from None


def run_jobs_on(
    device: torch.device, jobs: Sequence[Callable[[Progress], T]], progress: Progress
) -> list[T]:
    """:func:`run_jobs` on a CPU; on CUDA, whose work is batched, one job after the other."""
    if device.type == "cpu":
        return run_jobs(jobs, progress)
    return [job(part_of(progress, done, len(jobs))) for done, job in enumerate(jobs)]


def limit_jobs(most: int) -> None:
    """From now on this process runs at most that many jobs at a time, whatever torch may use."""
    _limit[:] = [most]


def part_of(progress: Progress, before: int, parts: int, count: int = 1) -> Progress:
    """Progress of ``count`` of several equal parts that run one after the other."""

    def report(stage: str, done: int, total: int) -> None:
        progress(stage, before * total + count * done, parts * total)

    return report
