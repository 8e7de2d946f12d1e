"""The installed program: pipes, terminals, signals."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, TINY, program

from gcsr.cli.output import progress_bars
from gcsr.utils.progress import prefixed, silent


def test_results_alone_go_into_a_pipe(data: Path, tmp_path: Path) -> None:
    out = "out.safetensors"
    made = program("condense", data, "--nodes", 6, *TINY, "--out", out, "--json", cwd=tmp_path)
    assert (made.code, made.err) == (0, "")
    assert made.json["nodes"] == 6 and (tmp_path / out).is_file()
    told = program(
        "evaluate", out, "--data", data, "--runs=1", "--epochs=2", "--json", cwd=tmp_path
    )
    assert (told.code, told.err) == (0, "")
    assert told.json["nodes"] == 6


def test_errors_of_the_program(tmp_path: Path) -> None:
    result = program("condense", "corra", "--nodes", 6, "--out", "out.safetensors", cwd=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: dataset must be one of")
    assert len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_fault(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [PROGRAM, "methods", "--json"], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("how", ["--no-checkpoint", "--checkpoint-every=0"])
def test_ctrl_c_on_a_terminal(how: str, tmp_path: Path) -> None:
    """The bar says that the work has begun; Ctrl-C then ends it without a trace but a checkpoint."""
    ours, theirs = pty.openpty()
    argv = [
        "condense",
        "digits",
        "--method",
        "gcsr",
        "--nodes",
        "20",
        "--set",
        "iterations=100000",
        "--set",
        "experts=2",
        how,
    ]
    # A process that ignores Ctrl-C, as those in the background may, hands that down.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [PROGRAM, *argv, "--out", "out.safetensors"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    signal.signal(signal.SIGINT, previous)
    os.close(theirs)
    shown = b""
    try:
        while b"condensing" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        while chunk := _read(ours):
            shown += chunk
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert process.returncode == 130
    assert output == b""
    assert b"training experts" in shown and b"remaining" in shown
    assert b"Traceback" not in shown
    left = [path.name for path in tmp_path.iterdir()]
    if how == "--no-checkpoint":
        assert b"interrupted; nothing was written" in shown
        assert left == []
    else:
        folder = ".out.safetensors.checkpoint"
        assert f"interrupted; the same command continues from {folder}".encode() in shown
        assert left == [folder]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bars() as progress:
        assert progress is silent
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bars() as progress:
        progress("loading", 0, 0)
        report = prefixed(progress, "first [1]")
        for done in (10, 20, 5):
            report("training", done, 20)
    shown = terminal.getvalue()
    assert "first [1]: training" in shown and "5/20" in shown and "remaining" in shown
