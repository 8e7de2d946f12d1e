"""Whole processes: several at once, killed in the middle, interrupted."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import pytest
from paper_helpers import standins

from gcsr.benchmarking.cells import Protocol, cell
from gcsr.benchmarking.runner import WorkerError
from gcsr.benchmarking.store import Store
from gcsr.paper.experiments import Experiment, Line, experiment, reproduce

CLOCKED = ("finished", "condense_seconds", "evaluate_seconds", "jobs")
OUTPUTS = ["table2-quick.csv", "table2-quick.md", "table2-quick.png", "table2-quick.svg"]
KEPT = ["rows-quick.jsonl", "rows-quick.lock"]
CELLS = sum(cell.dataset == "cora" for cell in experiment("table2").cells)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return standins(tmp_path_factory.mktemp("data") / "root", "cora")


def started(data: Path, out: Path, *more: str, name: str = "table2") -> subprocess.Popen[str]:
    argv = ["reproduce", name, "--quick", "--dataset", "cora", "--device", "cpu"]
    return subprocess.Popen(
        [sys.executable, "-m", "gcsr", *argv, "--root", str(data), "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "GCSR_DATA": str(data)},
        start_new_session=True,
    )


def count(out: Path) -> int:
    path = out / "rows-quick.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def members(group: int) -> list[int]:
    """Processes of a process group that are not over."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(pgrp) == group and state not in "ZX":
            found.append(int(path.parent.name))
    return found


def rows(out: Path) -> dict[str, dict[str, Any]]:
    """Every row by key, without what a clock says; each key is there once."""
    lines = (out / "rows-quick.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    keyed = {
        row["key"]: {name: value for name, value in row.items() if name not in CLOCKED}
        for row in found
    }
    assert len(keyed) == len(found)
    return keyed


def unexpected(errors: str) -> list[str]:
    """Lines on stderr, without the warnings that subsets of this tiny graph repeat nodes."""
    return [line for line in errors.splitlines() if "nodes repeat a training node" not in line]


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir())


@pytest.fixture(scope="module")
def straight(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that nothing happens to, and what it printed."""
    out = tmp_path_factory.mktemp("straight")
    done = started(data, out)
    text, errors = done.communicate(timeout=120)
    assert (done.returncode, unexpected(errors)) == (0, [])
    assert len(rows(out)) == CELLS and names(out) == [*KEPT, *OUTPUTS]
    return out, text


def test_killed_three_times(data: Path, straight: tuple[Path, str], tmp_path: Path) -> None:
    """SIGKILL at different moments, once with a row cut off and a file half written."""
    # Far enough from the last cell that no machine is through with it before the kill.
    for kill, finished in enumerate((1, 11, 24)):
        process = started(data, tmp_path)
        until(lambda process=process, least=finished: count(tmp_path) >= least)
        time.sleep(0.02 * kill)
        assert process.poll() is None
        process.kill()
        process.communicate()
        assert 0 < len(rows(tmp_path)) < CELLS
    with (tmp_path / "rows-quick.jsonl").open("a") as stream:
        stream.write('{"cell": "cut')
    (tmp_path / ".table2-quick.md.abcdef").write_text("half")
    last = started(data, tmp_path)
    text, errors = last.communicate(timeout=120)
    assert (last.returncode, unexpected(errors)) == (0, [])
    assert rows(tmp_path) == rows(straight[0])
    assert names(tmp_path) == [*KEPT, *OUTPUTS]
    for name in OUTPUTS:
        assert (tmp_path / name).read_bytes() == (straight[0] / name).read_bytes()
    assert text.replace(str(tmp_path), "") == straight[1].replace(str(straight[0]), "")


@pytest.mark.slow
def test_two_runs_and_jobs_share_a_folder(
    data: Path, straight: tuple[Path, str], tmp_path: Path
) -> None:
    """Each cell is measured once, whoever does it, and both runs end with the whole table."""
    first, second = started(data, tmp_path, "--jobs", "2"), started(data, tmp_path)
    for process in (first, second):
        text, errors = process.communicate(timeout=120)
        assert (process.returncode, unexpected(errors)) == (0, [])
        assert text.replace(str(tmp_path), "") == straight[1].replace(str(straight[0]), "")
    assert rows(tmp_path) == rows(straight[0])
    assert names(tmp_path) == [*KEPT, *OUTPUTS]


@pytest.mark.slow
def test_ctrl_c_ends_every_job(data: Path, tmp_path: Path) -> None:
    process = started(data, tmp_path, "--jobs", "2")
    until(lambda: count(tmp_path) >= 2)
    os.killpg(process.pid, signal.SIGINT)
    text, errors = process.communicate(timeout=20)
    assert (process.returncode, text) == (130, "")
    written = tmp_path / "rows-quick.jsonl"
    assert unexpected(errors) == [f"interrupted; written before that: {written}"]
    until(lambda: not members(process.pid), 5)
    assert 2 <= len(rows(tmp_path)) < CELLS


def test_jobs_end_when_their_parent_is_killed(data: Path, tmp_path: Path) -> None:
    process = started(data, tmp_path, "--jobs", "2")
    until(lambda: count(tmp_path) >= 2)
    process.kill()
    process.communicate()
    until(lambda: not members(process.pid), 5)
    # Nothing that they held stays locked.
    with Store(tmp_path / "rows-quick.jsonl").claim("anything") as mine:
        assert mine
    assert len(rows(tmp_path)) < CELLS


@pytest.mark.slow
def test_a_job_that_dies_costs_its_cells(data: Path, tmp_path: Path) -> None:
    process = started(data, tmp_path, "--jobs", "2", name="table4")
    until(lambda: count(tmp_path) >= 1)
    victim = next(pid for pid in members(process.pid) if _works(pid))
    os.kill(victim, signal.SIGKILL)
    text, errors = process.communicate(timeout=120)
    assert (process.returncode, unexpected(errors)) == (1, [])
    assert "failed: the worker process died (exit code -9)" in text
    again = started(data, tmp_path, name="table4")
    assert "failed" not in again.communicate(timeout=120)[0] and again.returncode == 0


@pytest.mark.slow
def test_a_fault_of_the_library_in_a_job_is_not_swallowed(data: Path, tmp_path: Path) -> None:
    """Its traceback arrives, and no worker is left."""
    cells = [cell("random", "cora", nodes, analysis="nothing known") for nodes in (6, 9)]
    lines = tuple(Line("cora", c.nodes, "a", cells=(c,)) for c in cells)
    with pytest.raises(WorkerError, match=r"(?s)Traceback.*KeyError: 'nothing known'"):
        reproduce(
            Experiment("t", "t", lines),
            Store(tmp_path / "rows.jsonl"),
            protocol=Protocol(1, 1, quick=True),
            root=data,
            device="cpu",
            jobs=2,
        )
    assert multiprocessing.active_children() == []


def test_jobs_need_no_masks_of_signals(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has none, and no process to start the workers from."""
    resource_tracker.ensure_running()
    monkeypatch.delattr("signal.pthread_sigmask")
    monkeypatch.delattr("gcsr.benchmarking.runner.resource_tracker")
    monkeypatch.setattr("multiprocessing.resource_tracker._HAVE_SIGMASK", False)
    cells = [cell("random", "cora", nodes) for nodes in (6, 9)]
    lines = tuple(Line("cora", c.nodes, "a", cells=(c,)) for c in cells)
    store = Store(tmp_path / "rows.jsonl")
    options = {"protocol": Protocol(1, 1, quick=True), "root": data, "device": "cpu", "jobs": 2}
    reproduce(Experiment("t", "t", lines), store, **options)
    assert len(store) == 2


def _works(pid: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
