"""Units of work given to a cluster: retried where a worker is lost, told of while they run."""

from __future__ import annotations

import asyncio
import functools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from gcsr.distributed.start import LOCAL, ClusterError, reachable, start_ray, stop_ray
from gcsr.distributed.worker import Shared, Terms, execute
from gcsr.utils.errors import require_one_of
from gcsr.utils.progress import Progress, silent

# -- Where units say how far they are and ask what only the process that gave them knows -------------


class ProgressActor:
    """A Ray actor between workers and the process that gave them units.

    Nothing on it is needed twice: where it is lost, Ray begins another one, reports come again and
    questions are asked again.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[int, str], tuple[int, int]] = {}
        self._asked: dict[str, tuple[int, Any, asyncio.Future[Any]]] = {}
        # Names of questions are never those of a desk before this one.
        self._name, self._count = secrets.token_hex(4), 0
        self._new = asyncio.Event()

    async def tell(self, unit: int, stage: str, done: int, total: int) -> None:
        """Unit ``unit`` has done so much of a stage."""
        self._told[unit, stage] = done, total
        self._new.set()

    async def ask(self, unit: int, question: Any) -> Any:
        """Wait for the answer to a question."""
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        self._asked[f"{self._name} {self._count}"] = unit, question, future
        self._new.set()
        return await future

    async def answer(self, name: str, answer: Any) -> None:
        """Give an answer to whoever waits for it."""
        asked = self._asked.pop(name, None)
        if asked is not None and not asked[2].done():
            asked[2].set_result(answer)

    async def news(self) -> tuple[list[tuple[int, str, int, int]], list[tuple[str, int, Any]]]:
        """Reports and questions since the last time; waits until there are some."""
        await self._new.wait()
        self._new.clear()
        told = [(unit, stage, *counts) for (unit, stage), counts in self._told.items()]
        self._told.clear()
        return told, [(name, unit, asked) for name, (unit, asked, _) in self._asked.items()]


# How often a unit is begun again after its worker process, or the machine under it, was lost.
RETRIES = 10
# Seconds that are waited for the last reports.
LAST_NEWS = 1.0
# Seconds between looks at what is finished, and between looks at whether the head is there.
LOOK_EVERY, HEAD_EVERY = 0.5, 1.0
# Looks in a row at which it was not, before it counts as lost.
HEAD_MISSES = 3
Answers = Callable[[int, Any], Any]


@dataclass(frozen=True, eq=False)
class Unit:
    """A unit of work that was given away: ``done`` says that it is, ``ref`` is what it made."""

    number: int
    done: Any
    ref: Any


@contextmanager
def connected(address: str | Cluster) -> Iterator[Cluster]:
    """A cluster while the block runs: of this machine (``local``) or that of a head's ``HOST:PORT``.

    One that is connected already is used as it is, and stays.
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
    _looked: float = 0.0
    _desk: Any = None
    _news: Any = None
    _answered: set[str] = field(default_factory=set)
    _put: tuple[Any, Shared] | None = None
    _terms: Terms = field(default_factory=Terms.here)

    @property
    def cpus(self) -> int:
        """CPUs of all machines."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @property
    def store_bytes(self) -> int:
        """What the object store of the smallest machine holds."""
        found = [
            node["Resources"].get("object_store_memory", 0)
            for node in self.ray.nodes()
            if node["Alive"]
        ]
        return int(min(found, default=0))

    def device(self, name: str | torch.device) -> torch.device:
        """Where units compute: ``auto`` is CUDA where a machine of the cluster has it."""
        kind = name.type if isinstance(name, torch.device) else name
        require_one_of("device", kind, ("auto", "cpu", "cuda"))
        gpus = self.ray.cluster_resources().get("GPU", 0)
        if kind == "cuda" and gpus < 1:
            raise ClusterError("device: cuda is not there: no machine of the cluster has a GPU.")
        return torch.device("cuda" if kind == "cuda" or (kind == "auto" and gpus >= 1) else "cpu")

    def put(self, value: Any) -> Shared:
        """An object that many units read: it goes to each machine once.

        What was put last is not put again.
        """
        if self._put is None or self._put[0] is not value:
            self._put = None  # room first
            self._put = value, Shared(self.ray.put(value))
        return self._put[1]

    def give(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        device: torch.device | None = None,
        heard: bool = False,
        near: Shared | None = None,
    ) -> Unit:
        """Begin ``function(*arguments, progress)`` somewhere: on one CPU, or one GPU.

        The function must be found under its name on every machine. ``heard``: whether it reports.
        ``near`` is an argument before the others, read before it begins, on a machine that has it if
        there is one.
        """
        if heard and self._desk is None:
            remote = self.ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            self._desk = remote(ProgressActor).options(scheduling_strategy=self._here()).remote()
            self._news = self._desk.news.remote()
        on_gpu = device is not None and device.type == "cuda"
        task = self.ray.remote(
            num_cpus=1,
            num_gpus=1 if on_gpu else 0,
            num_returns=2,
            max_retries=RETRIES,
            retry_exceptions=False,
        )(execute)
        self._count += 1
        desk = self._desk if heard else None
        first = [] if near is None else [near.ref]
        refs = task.remote(self._terms, function, self._count, desk, arguments, *first)
        return Unit(self._count, *refs)

    def finished(
        self,
        units: Sequence[Unit],
        progress: Progress = silent,
        answers: Answers | None = None,
    ) -> Iterator[Unit]:
        """Units as they are finished, well or not; their reports are added up meanwhile."""
        waiting = list(units)
        heard = _Heard([unit.number for unit in units], progress, answers)
        while waiting:
            for unit in self.some_finished(waiting, heard):
                waiting.remove(unit)
                yield unit
        if progress is not silent and self._news is not None:
            # The last reports of units may arrive just after their results.
            self.ray.wait([self._news], timeout=LAST_NEWS)
            self._listen(heard)
            heard.complete()

    def some_finished(self, units: Sequence[Unit], heard: _Heard | None = None) -> list[Unit]:
        """Those of some units that are finished; waits a moment for the first, or for news."""
        known = {unit.done: unit for unit in units}
        first = list(known) if self._news is None else [*known, self._news]
        ready, _ = self.ray.wait(first, num_returns=1, timeout=LOOK_EVERY, fetch_local=False)
        if not ready:
            self._look_for_head()
            return []
        self._listen(heard)
        every = list(known)
        ready, _ = self.ray.wait(every, num_returns=len(every), timeout=0, fetch_local=False)
        return [known[ref] for ref in ready]

    def result(self, unit: Unit) -> Any:
        """What a finished unit returned; raises what it raised."""
        return self._got(unit.ref)

    def check(self, unit: Unit) -> None:
        """Raise what a finished unit raised; what it returned stays where it is."""
        self._got(unit.done)

    def _got(self, ref: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, Exception):
                raise cause from None
            raise
        except errors.RayError as error:
            self._look_for_head(at_once=True)
            raise ClusterError(
                f"cluster: a unit of work was lost {RETRIES + 1} times"
                f" ({type(error).__name__}); the machines may have too little memory."
            ) from None

    def results(
        self, units: Sequence[Unit], progress: Progress = silent, answers: Answers | None = None
    ) -> list[Any]:
        """What every unit returned, in their order; if one fails the others are called off."""
        try:
            found = {}
            for unit in self.finished(units, progress, answers):
                found[unit.number] = self.result(unit)
            return [found[unit.number] for unit in units]
        except BaseException:
            self.call_off(units)
            raise

    def call_off(self, units: Sequence[Unit]) -> None:
        """End units that nobody waits for any more."""
        if self.lost:
            return
        for unit in units:
            with suppress(Exception):
                self.ray.cancel(unit.done)

    def _here(self) -> Any:
        strategies = self.ray.util.scheduling_strategies
        here = self.ray.get_runtime_context().get_node_id()
        return strategies.NodeAffinitySchedulingStrategy(here, soft=True)

    def _listen(self, heard: _Heard | None) -> None:
        """Take the news, if there are any; a desk that is being replaced has none."""
        if self._news is None or not self.ray.wait([self._news], timeout=0)[0]:
            return
        news, self._news = self._news, self._desk.news.remote()
        try:
            told, asked = self.ray.get(news)
        except self.ray.exceptions.RayError:
            return
        if heard is not None:
            for report in told:
                heard.told(*report)
            for name, unit, question in asked:
                if name not in self._answered:
                    self._answered.add(name)
                    answer = functools.partial(self._desk.answer.remote, name)
                    heard.asked(unit, question, answer)

    def _look_for_head(self, *, at_once: bool = False) -> None:
        """End with a sentence, sooner than Ray would give up, where the head does not answer."""
        now = time.monotonic()
        if not at_once and now - self._looked < HEAD_EVERY:
            return
        self._looked = now
        head = self.ray.get_runtime_context().gcs_address
        for _ in range(HEAD_MISSES):
            if reachable(head):
                return
            time.sleep(HEAD_EVERY)
        self.lost = True
        where = "this machine's Ray" if self.address == LOCAL else f"the head at {self.address}"
        raise ClusterError(f"cluster: {where} is gone; start one and run the same again.")


class _Heard:
    """Adds up the progress of several units, and answers what they ask."""

    def __init__(self, numbers: Sequence[int], progress: Progress, answers: Answers | None) -> None:
        self._numbers, self._progress, self._answers = frozenset(numbers), progress, answers
        self._done: dict[str, dict[int, int]] = {}
        self._totals: dict[str, int] = {}

    def complete(self) -> None:
        """Every unit is done with every stage, whatever its last report was."""
        for stage, total in self._totals.items():
            if sum(self._done[stage].values()) < total * len(self._numbers):
                self._progress(stage, total * len(self._numbers), total * len(self._numbers))

    def told(self, unit: int, stage: str, done: int, total: int) -> None:
        """A unit has done so much of a stage."""
        if unit in self._numbers:
            counts = self._done.setdefault(stage, {})
            counts[unit], self._totals[stage] = done, total
            self._progress(stage, sum(counts.values()), total * len(self._numbers))

    def asked(self, unit: int, question: Any, answer: Callable[[Any], Any]) -> None:
        """A unit waits for an answer; one that nobody waits for any more asks in vain."""
        if unit in self._numbers and self._answers is not None:
            answer(self._answers(unit, question))
