"""Propagation on disk that is killed goes on where it was, and ends with the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.speed.planted import Planted

import gcsr
from gcsr import InputError
from gcsr.data.array_file import ArrayFile, ArrayWriter
from gcsr.data.folder import write_folder
from gcsr.data.stored_graph import StoredGraph, open_folder
from gcsr.models.sparse import SparseTopology
from gcsr.outofcore import hops
from gcsr.outofcore.hops import Propagated
from gcsr.outofcore.products import DenseSide
from helpers import CPU, planted_graph

PROGRAM = """
import sys
from gcsr.outofcore import hops
from gcsr.outofcore.hops import Propagated
from gcsr.data.stored_graph import open_folder
hops.SAVE_EVERY = 0.0
Propagated(open_folder(sys.argv[1], memory=200_000).disk).features(2)
"""


@pytest.fixture
def stored(tmp_path: Path) -> StoredGraph:
    return open_folder(write_folder(planted_graph(per_class=90), tmp_path / "graph"), memory=2000)


def expected(stored: StoredGraph) -> np.ndarray:
    graph = stored.to_memory()
    operator = SparseTopology(graph.adjacency, CPU).normalized
    return operator(operator(graph.x)).numpy()


class _StopError(Exception):
    """Stands for whatever ends a process."""


def test_what_a_hop_was_made_of_is_forgotten_and_can_be_read_again(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten = []
    plain = ArrayFile.forget
    monkeypatch.setattr(ArrayFile, "forget", lambda file: forgotten.append(file) or plain(file))
    before = stored.disk.features.read()
    Propagated(stored.disk).features(2)
    # The first features; what the last hop was made of may be wanted next.
    assert forgotten == [stored.disk.features]
    assert stored.disk.features.read().tobytes() == before.tobytes()
    stored.disk.features.path.unlink()
    stored.disk.features.forget()


def test_goes_on_where_it_was(stored: StoredGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "SAVE_EVERY", 0.0)
    seen: list[int] = []

    def stop_in_the_second_hop(stage: str, done: int, total: int) -> None:
        if done > 1.6 * stored.num_nodes:
            raise _StopError

    with pytest.raises(_StopError):
        Propagated(stored.disk, stop_in_the_second_hop).features(2)
    note = json.loads(next(stored.disk.scratch.glob("*.json")).read_text())
    (rows,) = set(note["rows"])
    assert 0.5 * stored.num_nodes < rows < stored.num_nodes

    counted = DenseSide.times

    def count(side, rows):
        seen.append(rows.count)
        return counted(side, rows)

    monkeypatch.setattr(DenseSide, "times", count)
    found = Propagated(stored.disk).features(2).read()
    assert np.array_equal(found, expected(stored))
    assert sum(seen) == 2 * (stored.num_nodes - rows), "nothing is computed twice"
    assert {path.suffix for path in stored.disk.scratch.iterdir()} == {".npy", ""}


@pytest.mark.parametrize(
    "note",
    [
        {"key": "another", "rows": [9, 9]},
        {"rows": [10**9, 9]},
        {"rows": [-5, 9]},
        {"rows": [float("inf"), 9]},
        {"rows": 9},
        [],
        "[" * 10**5,
    ],
)
def test_what_cannot_be_gone_on_from_is_made_again(stored: StoredGraph, note: object) -> None:
    """A note of another graph, or of more rows than there are."""
    note = {"key": stored.content_hash, **note} if isinstance(note, dict) else note
    name = f"features-1-{stored.content_hash[:16]}"
    stored.disk.scratch.mkdir()
    for what in (name, name.replace("features", "ones")):
        (stored.disk.scratch / f"{what}.part").write_bytes(b"\1" * 10**5)
    (stored.disk.scratch / f"{name}.json").write_text(
        note if isinstance(note, str) else json.dumps(note)
    )
    assert np.array_equal(Propagated(stored.disk).features(2).read(), expected(stored))


def test_a_spoilt_file_is_told(stored: StoredGraph) -> None:
    path = Propagated(stored.disk).features(1).path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="features-1"):
        Propagated(stored.disk).features(2)


def test_a_folder_that_cannot_be_written(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    monkeypatch.setenv("GCSR_SCRATCH", str(tmp_path / "taken"))
    other = open_folder(tmp_path / "graph", memory=2000)
    with pytest.raises(InputError, match="GCSR_SCRATCH"):
        Propagated(other.disk).features(1)


def test_a_full_disk(stored: StoredGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, and what was saved is gone on from."""
    monkeypatch.setattr(hops, "SAVE_EVERY", 0.0)
    real, written = ArrayWriter.append, []

    def append(writer: ArrayWriter, block: np.ndarray) -> None:
        written.append(writer.rows)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        real(writer, block)

    monkeypatch.setattr(ArrayWriter, "append", append)
    with pytest.raises(InputError, match="No space left"):
        Propagated(stored.disk).features(1)
    monkeypatch.setattr(ArrayWriter, "append", real)
    assert np.array_equal(Propagated(stored.disk).features(2).read(), expected(stored))


def test_too_little_disk_is_known_before(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(InputError, match="disk"):
        gcsr.condense(stored, nodes=6, method="gcsr", device="cpu")
    assert not stored.disk.scratch.exists()


def test_too_little_memory_is_known_before(
    stored: StoredGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcsr.outofcore.estimate.free_memory_bytes", lambda _: 10**6)
    with pytest.raises(InputError, match="memory=BYTES"):
        gcsr.condense(stored, nodes=6, method="gcsr", device="cpu")


def killed_until_done(folder: Path, kills: int, longest: float) -> int:
    """Run, kill -9 at random moments, run again; returns how many kills there were."""
    rng = np.random.default_rng(0)
    done = 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    while True:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)], env=environment)
        if done < kills:
            time.sleep(float(rng.uniform(0.3, 1)) * longest)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
                continue
        assert process.wait() == 0
        return done


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path) -> None:
    folder = Planted(20_000).write(tmp_path / "graph")
    graph = open_folder(folder, memory=10**9)
    killed = killed_until_done(folder, 12, 5.0)
    operator = SparseTopology(graph.to_memory().adjacency, torch.device("cpu")).normalized
    assert killed >= 3, "too quick to be killed"
    found = Propagated(graph.disk).features(2).read()
    assert np.array_equal(found, operator(operator(graph.to_memory().x)).numpy())


@pytest.mark.slow
def test_fifty_runs_killed_at_random_moments(tmp_path: Path) -> None:
    """Each is killed once, somewhere between its first block and its last, and then goes on."""
    kept = Planted(20_000).write(tmp_path / "graph")
    graph = open_folder(kept, memory=10**9)
    whole = graph.to_memory()
    operator = SparseTopology(whole.adjacency, CPU).normalized
    right = operator(operator(whole.x)).numpy()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    rng = np.random.default_rng(1)
    began = alive = went_on = same = 0
    takes = 1.0
    while began < 50:
        began += 1
        shutil.rmtree(graph.disk.scratch, ignore_errors=True)
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(kept)], env=environment)
        while process.poll() is None and not graph.disk.scratch.exists():
            time.sleep(0.001)
        first = time.perf_counter()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=float(rng.uniform(0, takes)))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            alive += 1
        else:
            takes = time.perf_counter() - first
        went_on += any(graph.disk.scratch.glob("*.json"))
        same += np.array_equal(Propagated(graph.disk).features(2).read(), right)
    print(
        f"\nof {began} runs {alive} were killed alive, {went_on} went on, {same} gave the same bytes"
    )
    assert same == began == 50
    assert alive >= 25 and went_on >= 10
