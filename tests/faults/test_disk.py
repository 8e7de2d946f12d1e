"""Disks that are full, folders that cannot be written, files that vanish, caches that are shared."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from killing import begun, content, finished, loaded

from gcsr import Checkpoint, CondensedGraph, Graph, InputError, condense
from gcsr.cli.app import main
from gcsr.training.obtain_experts import forget_experts
from gcsr.utils.safe_io import write_atomically
from helpers import planted_graph

SMALL: dict[str, Any] = {
    "method": "mtt",
    "nodes": 9,
    "iterations": 150,
    "iterate": "last",
    "experts": 2,
    "expert_epochs": 20,
    "max_start": 10,
    "hidden_channels": 8,
    "device": "cpu",
}
WORDS = [
    f"--set={name.replace('_', '-')}={SMALL[name]}"
    for name in (
        "iterations",
        "iterate",
        "experts",
        "expert_epochs",
        "max_start",
        "hidden_channels",
    )
]
COMMAND = ("--method=mtt", "--nodes=9", *WORDS, "--out=small.safetensors", "--device=cpu")


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


@pytest.fixture
def data(graph, tmp_path) -> Path:
    (tmp_path / "run").mkdir()
    return graph.to_npz(tmp_path / "data.npz")


def bytes_of(small: CondensedGraph) -> tuple[bytes, ...]:
    return tuple(t.numpy().tobytes() for t in (small.x, small.adjacency, small.y))


def full(*args: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# -- disk full -----------------------------------------------------------------------------------


def test_a_run_outlives_a_disk_without_room_for_its_state(graph, tmp_path, monkeypatch, caplog):
    whole = condense(graph, **SMALL)
    monkeypatch.setattr("gcsr.utils.safe_io.os.fsync", full)
    again = condense(graph, checkpoint=Checkpoint(tmp_path / "state", every=0), **SMALL)
    assert bytes_of(again) == bytes_of(whole)
    assert caplog.text.count("No space left on device") == 1
    assert "The run goes on without it" in caplog.text
    assert not (tmp_path / "state").exists()


def test_a_result_that_finds_no_room_is_one_sentence_and_no_file(data, tmp_path, capsys):
    """There is room for the state; once there is for the result the command goes on from there."""
    folder, said = tmp_path / "run", tmp_path / "said"
    argv = ("condense", data, *COMMAND, "--checkpoint-every=0")
    whole = tmp_path / "whole"
    whole.mkdir()
    finished(argv, whole)
    size = (whole / "small.safetensors").stat().st_size
    # What was measured takes a few bytes more or less.
    process = begun(argv, folder, said=said, largest=size - 100)
    process.join()
    assert process.exitcode == 2
    lines = said.read_text().splitlines()
    assert lines[-1].startswith("error: ") and "cannot be written (File too large)" in lines[-1]
    assert len(lines) == 1
    assert [path.name for path in folder.iterdir()] == [".small.safetensors.checkpoint"]
    finished(argv, folder)
    assert content(folder / "small.safetensors") == content(whole / "small.safetensors")
    assert loaded(folder / "small.safetensors").provenance["measured"]["resumed"]
    assert [path.name for path in folder.iterdir()] == ["small.safetensors"]


def test_an_expert_cache_without_room_is_no_error(graph, tmp_path, monkeypatch, caplog):
    whole = condense(graph, **SMALL)
    forget_experts()
    monkeypatch.setattr("gcsr.training.expert_cache.save_file", full)
    again = condense(graph, expert_disk=10**8, **SMALL)
    assert bytes_of(again) == bytes_of(whole)
    assert "could not be stored" in caplog.text and "No space left" in caplog.text
    assert [path.name for path in (tmp_path / "cache" / "experts").iterdir()] == [".lock"]


def test_a_graph_file_finds_no_room(graph, tmp_path, monkeypatch):
    monkeypatch.setattr("gcsr.utils.safe_io.os.fsync", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        graph.to_npz(tmp_path / "graph.npz")
    assert list(tmp_path.iterdir()) == []


def test_threads_that_write_leave_the_umask_as_it_was(tmp_path, monkeypatch):
    """It can only be read by changing it for the whole process."""
    honest = os.umask
    before = honest(0o027)

    def hesitating(mask: int) -> int:
        try:
            return honest(mask)
        finally:
            time.sleep(0.001)

    monkeypatch.setattr(os, "umask", hesitating)
    try:
        with ThreadPoolExecutor(8) as pool:
            blobs = [tmp_path / f"{i}" for i in range(40)]
            list(pool.map(lambda path: write_atomically(path, b"x"), blobs))
        assert honest(0o027) == 0o027
        assert {path.stat().st_mode & 0o777 for path in blobs} == {0o640}
    finally:
        honest(before)


def test_a_kill_while_the_result_is_written_leaves_no_litter(data, tmp_path, monkeypatch):
    """What was prepared beside the result goes with the state of the run."""
    folder = tmp_path / "run"
    stage = folder / ".small.safetensors.checkpoint" / "result"
    stage.mkdir(parents=True)
    (stage / ".small.safetensors.abc").write_bytes(b"half of a")
    finished(("condense", data, *COMMAND), folder)
    assert [path.name for path in folder.iterdir()] == ["small.safetensors"]


# -- folders that cannot be written --------------------------------------------------------------

# Nobody can put a file there, not even root.
FORBIDDEN = Path("/proc/self")


@pytest.mark.skipif(not FORBIDDEN.is_dir(), reason="needs Linux")
def test_a_read_only_folder_is_told_before_the_work(data, capsys):
    out = FORBIDDEN / "small.safetensors"
    words = [*COMMAND, f"--out={out}"]
    assert main(["condense", str(data), *words]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: --out: the folder {FORBIDDEN} is not writable")
    assert len(told.splitlines()) == 1


@pytest.mark.skipif(not FORBIDDEN.is_dir(), reason="needs Linux")
def test_a_state_in_a_read_only_folder_is_refused(graph):
    said = r"^checkpoint must be a folder that can be written, got /proc/self/state \("
    with pytest.raises(InputError, match=said):
        condense(graph, checkpoint=FORBIDDEN / "state", **SMALL)


@pytest.mark.skipif(not FORBIDDEN.is_dir(), reason="needs Linux")
def test_a_read_only_cache_is_no_error(graph, monkeypatch, caplog):
    whole = condense(graph, **SMALL)
    forget_experts()
    monkeypatch.setenv("GCSR_CACHE", str(FORBIDDEN / "cache"))
    assert bytes_of(condense(graph, expert_disk=10**8, **SMALL)) == bytes_of(whole)
    assert "could not be stored" in caplog.text


# -- files that vanish ---------------------------------------------------------------------------


@pytest.mark.parametrize("read", [Graph.from_npz, CondensedGraph.load])
def test_a_file_that_vanishes_before_it_is_opened(read, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    with pytest.raises(InputError, match=r"gone\.") as refused:
        read(tmp_path / "gone.npz")
    assert len(str(refused.value).splitlines()) == 1


def test_a_state_that_vanishes_is_begun_anew(graph, tmp_path, monkeypatch, caplog):
    whole = condense(graph, **SMALL)
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    assert bytes_of(condense(graph, checkpoint=tmp_path / "state", **SMALL)) == bytes_of(whole)
    assert "is ignored and begun anew" in caplog.text


def test_experts_that_vanish_are_trained_again(graph, tmp_path, monkeypatch):
    whole = condense(graph, expert_disk=10**8, **SMALL)
    forget_experts()
    for path in (tmp_path / "cache" / "experts").glob("*.safetensors"):
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_file", lambda self: True)
        again = condense(graph, expert_disk=10**8, **SMALL)
    assert bytes_of(again) == bytes_of(whole)
    assert not again.provenance["measured"]["experts"]["cached"]


def test_a_folder_of_states_that_vanishes_in_the_middle(graph, tmp_path, caplog):
    """Somebody tidies up: the run goes on."""
    whole = condense(graph, **SMALL)

    def tidy(stage: str, done: int, total: int) -> None:
        if stage == "condensing" and done == 50:
            Checkpoint(tmp_path / "state").discard()

    checkpoint = Checkpoint(tmp_path / "state", every=0)
    again = condense(graph, checkpoint=checkpoint, progress=tidy, **SMALL)
    assert bytes_of(again) == bytes_of(whole)
    assert caplog.text.count("The run goes on without it") == 1


# -- caches and clocks ---------------------------------------------------------------------------


def test_several_processes_on_one_cache(data, tmp_path):
    """Three at once, one of them killed: the same bytes, and a cache that can be read."""
    cache = tmp_path / "shared"
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()
    argv = ("condense", data, *COMMAND, "--expert-disk=100MB")
    said = [tmp_path / f"said-{folder.name}" for folder in folders]
    running = [
        begun(argv, folder, said=errors, cache=cache)
        for folder, errors in zip(folders[:3], said, strict=False)
    ]
    killed = begun(argv, folders[3], cache=cache)
    killed.join(0.1)
    killed.kill()
    for process in running:
        process.join()
        assert process.exitcode == 0
    outputs = [folder / "small.safetensors" for folder in folders[:3]]
    assert content(outputs[0]) == content(outputs[1]) == content(outputs[2])
    assert all(errors.read_text() == "" for errors in said[:3])
    last = begun(argv, folders[3], cache=cache)
    last.join()
    again = folders[3] / "small.safetensors"
    assert content(again) == content(outputs[0])
    assert loaded(again).provenance["measured"]["experts"]["cached"]


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_jumps_changes_nothing(graph, tmp_path, monkeypatch, jump):
    """The time of day goes anywhere; durations come from a clock that only goes on."""
    whole = condense(graph, expert_disk=10**8, **SMALL)
    forget_experts()
    calls = 0
    honest = time.time

    def jumping() -> float:
        nonlocal calls
        calls += 1
        return honest() + calls * jump

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * jumping()))
    for path in (tmp_path / "cache").rglob("*.safetensors"):
        os.utime(path, (4e9, 4e9) if jump > 0 else (1, 1))
    again = condense(
        graph, expert_disk=10**8, checkpoint=Checkpoint(tmp_path / "s", every=0), **SMALL
    )
    assert bytes_of(again) == bytes_of(whole)
    told = again.provenance["measured"]
    assert told["experts"]["cached"] and 0 < told["seconds"] < 600
    assert told["checkpoints"]["written"] == 3 and told["checkpoints"]["seconds"] < 600


def test_tensors_are_what_is_compared(graph):
    """The comparison of these tests can fail."""
    small = condense(graph, **SMALL)
    assert bytes_of(small) != bytes_of(condense(graph, **{**SMALL, "iterations": 151}))
    assert torch.isfinite(small.x).all()
