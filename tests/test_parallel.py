"""How many threads torch has while a graph is condensed, and how many jobs run at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from gcsr import MTT, InputError, Random
from gcsr.utils import parallel
from gcsr.utils.parallel import MANY_NUMBERS, run_jobs, suitable_threads
from gcsr.utils.progress import silent
from helpers import CPU, planted_graph

USERS = 3


@pytest.fixture(autouse=True)
def threads_of_the_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Another test of this process may have limited its jobs.
    monkeypatch.setattr(parallel, "_limit", [])
    before = torch.get_num_threads()
    torch.set_num_threads(USERS)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def most_at_a_time(jobs: int) -> int:
    """How many of so many jobs run at the same time; each waits a moment for the others."""
    lock, running, most = threading.Lock(), 0, 0
    crowded = threading.Event()

    def job(_: Any) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if most == USERS:
                crowded.set()
        crowded.wait(0.2)
        with lock:
            running -= 1
        return torch.get_num_threads()

    assert run_jobs([job] * jobs, silent) == [1] * jobs
    return most


def test_small_features_are_computed_on_one_thread():
    with suitable_threads(MANY_NUMBERS, CPU):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == USERS


@pytest.mark.parametrize(
    ("numbers", "device"), [(MANY_NUMBERS + 1, CPU), (10, torch.device("cuda"))]
)
def test_large_features_and_other_devices_keep_what_there_is(numbers, device):
    with suitable_threads(numbers, device):
        assert torch.get_num_threads() == USERS
        assert most_at_a_time(2 * USERS) == USERS
    assert torch.get_num_threads() == USERS


def test_jobs_inside_still_use_every_core():
    with suitable_threads(10, CPU):
        assert most_at_a_time(2 * USERS) == USERS
        assert torch.get_num_threads() == 1
    with suitable_threads(10, CPU), suitable_threads(10, CPU):
        assert most_at_a_time(2 * USERS) == USERS
    assert most_at_a_time(2 * USERS) == USERS


def test_an_error_restores_both():
    def fail() -> None:
        with suitable_threads(10, CPU):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.get_num_threads() == USERS
    # What is allowed is forgotten too: it follows torch again.
    torch.set_num_threads(1)
    assert most_at_a_time(3) == 1


def test_a_small_graph_is_condensed_on_one_thread(graph, monkeypatch):
    honest, seen = Random.run, []

    def make(self, *args):
        seen.append((torch.get_num_threads(), most_at_a_time(2 * USERS)))
        return honest(self, *args)

    monkeypatch.setattr(Random, "run", make)
    Random(nodes=6).condense(graph, device="cpu")
    assert seen == [(1, USERS)] and torch.get_num_threads() == USERS
    with parallel.suitable_threads(parallel.MANY_NUMBERS + 1, torch.device("cpu")):
        assert torch.get_num_threads() == USERS


@pytest.mark.parametrize("ended", [KeyboardInterrupt, InputError, MemoryError])
def test_a_run_that_ends_early_gives_the_threads_back(graph, ended):
    def end(stage: str, done: int, total: int) -> None:
        assert torch.get_num_threads() == 1
        raise ended

    quick = MTT(nodes=6, iterations=4, experts=2, expert_epochs=8, max_start=4, hidden_channels=8)
    with pytest.raises(ended):
        quick.condense(graph, device="cpu", progress=end)
    assert torch.get_num_threads() == USERS
    assert most_at_a_time(2 * USERS) == USERS


def test_threads_of_the_user_do_not_get_in_each_others_way():
    """Blocks that overlap in time, on threads of their own, leave nothing behind."""
    inside, left = threading.Barrier(2), threading.Event()

    def block(first: bool) -> None:
        if not first:
            inside.wait(10)
        with suitable_threads(10, CPU):
            if first:
                inside.wait(10)
                # Long enough for the other to be inside.
                entered.wait(10)
            else:
                entered.set()
                left.wait(10)
        if first:
            left.set()

    entered = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(block, first) for first in (True, False)]:
            done.result()
    torch.set_num_threads(USERS)
    assert most_at_a_time(2 * USERS) == USERS
