"""Units of work on a cluster: retried where a worker is lost, with progress reports."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from gcsr.distributed.start import LOCAL, ClusterError, reachable, start_ray, stop_ray
from gcsr.distributed.worker import Environment, Shared, execute
from gcsr.utils.errors import require_one_of
from gcsr.utils.progress import Progress, silent

# How often a unit is begun again after its worker process or its machine was lost.
RETRIES = 10
# Seconds to wait for the last reports, between polls of finished units, and between polls of the head.
LAST_REPORTS, POLL_EVERY, HEAD_EVERY = 1.0, 0.5, 1.0
# Failed polls in a row before the head counts as lost.
HEAD_MISSES = 3
Answers = Callable[[int, Any], Any]


class ProgressActor:
    """A Ray actor that passes reports and questions of workers to the process that submitted units.

    If it is lost, Ray starts another one; reports and questions are then sent again.
    """

    def __init__(self) -> None:
        self._reports: dict[tuple[int, str], tuple[int, int]] = {}
        self._questions: dict[str, tuple[int, Any, asyncio.Future[Any]]] = {}
        self._new = asyncio.Event()

    async def report(self, unit: int, stage: str, done: int, total: int) -> None:
        """Set the progress of a unit."""
        self._reports[unit, stage] = done, total
        self._new.set()

    async def ask(self, unit: int, question: Any) -> Any:
        """Wait for the answer to a question."""
        future = asyncio.get_running_loop().create_future()
        # No number: names differ from those of an actor before this one.
        self._questions[secrets.token_hex(8)] = unit, question, future
        self._new.set()
        return await future

    async def answer(self, name: str, answer: Any) -> None:
        """Answer a question."""
        asked = self._questions.pop(name, None)
        if asked is not None and not asked[2].done():
            asked[2].set_result(answer)

    async def news(self) -> tuple[list[tuple[int, str, int, int]], list[tuple[str, int, Any]]]:
        """Reports since the last call, and open questions; waits until there are some."""
        await self._new.wait()
        self._new.clear()
        reports = [(unit, stage, *counts) for (unit, stage), counts in self._reports.items()]
        self._reports.clear()
        return reports, [(name, unit, asked) for name, (unit, asked, _) in self._questions.items()]


@dataclass(frozen=True, eq=False)
class Unit:
    """A submitted unit of work: ``done`` is ready when it is finished, ``ref`` is its result."""

    number: int
    done: Any
    ref: Any


@contextmanager
def connected(address: str | Cluster) -> Iterator[Cluster]:
    """A cluster for the block: of this machine (``local``) or that of a head's ``HOST:PORT``.

    A connected cluster is used as it is, and stays connected.
    """
    if isinstance(address, Cluster):
        yield address
        return
    ray = start_ray(address)
    cluster = Cluster(ray, address)
    try:
        yield cluster
    finally:
        if not cluster.lost:
            stop_ray(ray)


@dataclass(eq=False)
class Cluster:
    """A connection to Ray. Made by :func:`connected`."""

    ray: Any
    address: str
    lost: bool = False
    _count: int = 0
    _head_seen: float = 0.0
    _task: Any = None
    _actor: Any = None
    _news: Any = None
    _answered: set[str] = field(default_factory=set)
    _put: tuple[Any, Shared] | None = None
    _environment: Environment = field(default_factory=Environment.here)

    @property
    def cpus(self) -> int:
        """CPUs of all machines."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def store_bytes(self) -> int:
        """Bytes of the object store of the smallest machine."""
        alive = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return int(min((one.get("object_store_memory", 0) for one in alive), default=0))

    def device(self, name: str | torch.device) -> torch.device:
        """Where units compute: ``auto`` is CUDA where a machine of the cluster has it."""
        kind = name.type if isinstance(name, torch.device) else name
        require_one_of("device", kind, ("auto", "cpu", "cuda"))
        gpus = self.ray.cluster_resources().get("GPU", 0)
        if kind == "cuda" and gpus < 1:
            raise ClusterError("device must be cpu or auto: no machine of the cluster has a GPU.")
        return torch.device("cuda" if kind == "cuda" or (kind == "auto" and gpus >= 1) else "cpu")

    def put(self, value: Any) -> Shared:
        """Store an object that many units read; the last object is not stored twice."""
        if self._put is None or self._put[0] is not value:
            self._put = None  # free the memory first
            self._put = value, Shared(self.ray.put(value))
        return self._put[1]

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        device: torch.device | None = None,
        reports: bool = False,
        near: Shared | None = None,
    ) -> Unit:
        """Run ``function(*arguments, progress)`` on one CPU or one GPU of the cluster.

        The function must be importable on every machine. ``reports``: whether it reports progress.
        ``near`` is an argument before the others; the unit runs on a machine that has it, if possible.
        """
        if reports and self._actor is None:
            remote = self.ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            here = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                self.ray.get_runtime_context().get_node_id(), soft=True
            )
            self._actor = remote(ProgressActor).options(scheduling_strategy=here).remote()
            self._news = self._actor.news.remote()
        if self._task is None:
            # Once: a new remote function is registered at the head, which may be lost by then.
            self._task = self.ray.remote(
                num_cpus=1, num_returns=2, max_retries=RETRIES, retry_exceptions=False
            )(execute)
        on_gpu = device is not None and device.type == "cuda"
        task = self._task.options(num_gpus=1 if on_gpu else 0)
        self._count += 1
        actor = self._actor if reports else None
        first = [] if near is None else [near.ref]
        refs = task.remote(self._environment, function, self._count, actor, arguments, *first)
        return Unit(self._count, *refs)

    def finished(
        self, units: Sequence[Unit], progress: Progress = silent, answers: Answers | None = None
    ) -> Iterator[Unit]:
        """Units as they are finished, also those that failed; ``progress`` gets their sum."""
        waiting = list(units)
        listener = _Listener(frozenset(unit.number for unit in units), progress, answers)
        while waiting:
            for unit in self.some_finished(waiting, listener):
                waiting.remove(unit)
                yield unit
        if progress is not silent and self._news is not None:
            # The last reports of units may arrive just after their results.
            self.ray.wait([self._news], timeout=LAST_REPORTS)
            self._listen(listener)
            listener.complete()

    def some_finished(self, units: Sequence[Unit], listener: _Listener | None = None) -> list[Unit]:
        """The finished ones of some units; waits a moment for the first, or for news."""
        known = {unit.done: unit for unit in units}
        first = list(known) if self._news is None else [*known, self._news]
        ready, _ = self.ray.wait(first, num_returns=1, timeout=POLL_EVERY, fetch_local=False)
        if not ready:
            self._check_head()
            return []
        self._listen(listener)
        every = list(known)
        ready, _ = self.ray.wait(every, num_returns=len(every), timeout=0, fetch_local=False)
        return [known[ref] for ref in ready]

    def get(self, ref: Any) -> Any:
        """The result of a finished unit (``unit.ref``); raises what the unit raised.

        ``unit.done`` does this too, and the result stays in the store.
        """
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from None
            raise
        except errors.RayError as error:
            self._check_head(at_once=True)
            raise ClusterError(
                f"cluster: a unit of work was lost {RETRIES + 1} times"
                f" ({type(error).__name__}); the machines may have too little memory."
            ) from None

    def results(
        self, units: Sequence[Unit], progress: Progress = silent, answers: Answers | None = None
    ) -> list[Any]:
        """What every unit returned, in their order; if one fails the others are canceled."""
        try:
            ended = self.finished(units, progress, answers)
            found = {unit.number: self.get(unit.ref) for unit in ended}
            return [found[unit.number] for unit in units]
        except BaseException:
            self.cancel(units)
            raise

    def cancel(self, units: Sequence[Unit]) -> None:
        """End units whose results are not needed."""
        if self.lost:
            return
        for unit in units:
            with suppress(Exception):
                self.ray.cancel(unit.done)

    def _listen(self, listener: _Listener | None) -> None:
        """Pass news on, if there are any; an actor that is being replaced has none."""
        if self._news is None or not self.ray.wait([self._news], timeout=0)[0]:
            return
        news, self._news = self._news, self._actor.news.remote()
        try:
            reports, questions = self.ray.get(news)
        except self.ray.exceptions.RayError:
            return
        if listener is None:
            return
        for report in reports:
            listener.report(*report)
        for name, unit, question in questions:
            asked = unit in listener.numbers and name not in self._answered
            if asked and listener.answers is not None:
                self._answered.add(name)
                self._actor.answer.remote(name, listener.answers(unit, question))

    def _check_head(self, *, at_once: bool = False) -> None:
        """Raise, sooner than Ray would give up, if the head does not answer."""
        now = time.monotonic()
        if not at_once and now - self._head_seen < HEAD_EVERY:
            return
        self._head_seen = now
        head = self.ray.get_runtime_context().gcs_address
        for _ in range(HEAD_MISSES):
            if reachable(head):
                return
            time.sleep(HEAD_EVERY)
        self.lost = True
        where = "this machine's Ray" if self.address == LOCAL else f"the head at {self.address}"
        raise ClusterError(f"cluster: {where} is gone; start one and run the same again.")


@dataclass(eq=False)
class _Listener:
    """Adds up the progress of several units, and answers their questions."""

    numbers: frozenset[int]
    progress: Progress
    answers: Answers | None
    done: dict[str, dict[int, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)

    def complete(self) -> None:
        """Report every stage as finished."""
        for stage, total in self.totals.items():
            every = total * len(self.numbers)
            if sum(self.done[stage].values()) < every:
                self.progress(stage, every, every)

    def report(self, unit: int, stage: str, done: int, total: int) -> None:
        """Take the progress of a unit."""
        if unit in self.numbers:
            counts = self.done.setdefault(stage, {})
            counts[unit], self.totals[stage] = done, total
            self.progress(stage, sum(counts.values()), total * len(self.numbers))
