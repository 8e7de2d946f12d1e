"""``gcsr condense`` and what an earlier run left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcsr import CondensedGraph, InputError
from gcsr.cli import condense
from gcsr.cli.app import main
from helpers import planted_graph

WORDS = ("--method=mtt", "--nodes=9", "--set=iterations=100", "--set=iterate=last")
EXPERTS = (
    "--set=experts=2",
    "--set=expert-epochs=20",
    "--set=max-start=10",
    "--set=hidden_channels=8",
)


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    data = planted_graph().to_npz(tmp_path / "data.npz")
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "small.safetensors"
    often = "--checkpoint-every=0"
    return ["condense", str(data), *WORDS, *EXPERTS, often, "--device=cpu", f"--out={out}"]


@pytest.fixture
def left(argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Path:
    """The state of a run that was interrupted just before its result was written."""

    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "out" / ".small.safetensors.checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(condense, "write_graphs", interrupted)
        assert main(argv) == 130
    told = capsys.readouterr()
    assert told.err == f"interrupted; the same command continues from {folder}\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [folder.name]
    return folder


def made(tmp_path: Path) -> CondensedGraph:
    (path,) = (tmp_path / "out").iterdir()
    return CondensedGraph.load(path)


def test_the_same_command_goes_on(argv, left, tmp_path, capsys):
    assert main(argv) == 0
    assert "continued from what an earlier run left behind" in capsys.readouterr().out
    again = made(tmp_path)
    assert again.provenance["measured"]["resumed"] is True
    (tmp_path / "out" / "small.safetensors").unlink()
    assert main([*argv, "--no-checkpoint"]) == 0
    whole = made(tmp_path)
    assert "resumed" not in whole.provenance["measured"]
    assert "checkpoints" not in whole.provenance["measured"]
    assert again.x.equal(whole.x) and again.adjacency.equal(whole.adjacency)


def test_another_command_is_refused_and_can_begin_anew(argv, left, tmp_path, capsys):
    other = [*(word.replace("iterations=100", "iterations=90") for word in argv), "--seed=1"]
    assert main(other) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error: checkpoint must be of the same run, got {left} of a run with ")
    assert "iterations 100, not 90; seeds [0], not [1]" in told and "--fresh" in told
    assert len(told.splitlines()) == 1
    assert main([*other, "--fresh"]) == 0
    assert "continued" not in capsys.readouterr().out
    assert made(tmp_path).provenance["seed"] == 1


def test_without_checkpoints_what_is_there_is_left_alone(argv, left, tmp_path, capsys):
    before = {path: path.read_bytes() for path in left.iterdir()}
    assert main([*argv, "--seed=1", "--no-checkpoint"]) == 0
    assert {path: path.read_bytes() for path in left.iterdir()} == before


def test_a_result_that_cannot_be_written_leaves_the_state(argv, tmp_path, monkeypatch, capsys):
    def full(self: CondensedGraph, path: Path) -> None:
        raise InputError(f"{path}: cannot be written (No space left on device).")

    with monkeypatch.context() as patch:
        patch.setattr(CondensedGraph, "save", full)
        simple = ["condense", argv[1], "--method=random", "--nodes=9", argv[-1]]
        assert main([*simple, "--fresh"]) == 2
        assert list((tmp_path / "out").iterdir()) == []
        assert main(argv) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert main(argv) == 0
    assert made(tmp_path).provenance["measured"]["resumed"] is True


def test_methods_that_have_no_state_leave_none(argv, tmp_path, capsys):
    data, often, out = argv[1], argv[-3], argv[-1]
    assert main(["condense", data, "--method=random", "--nodes=9", often, out]) == 0
    assert made(tmp_path).provenance["measured"]["checkpoints"]["written"] == 0


def test_a_command_that_fails_before_its_first_state_leaves_nothing(argv, tmp_path, capsys):
    assert main([*argv, "--set=student-lr=1e30"]) == 2
    assert "not a number from the start" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
