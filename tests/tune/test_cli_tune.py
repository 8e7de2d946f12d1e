"""``gcsr tune``: what it prints, writes and refuses."""

from __future__ import annotations

import inspect
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tune_helpers import GRAPH

from gcsr import CondensedGraph
from gcsr.cli.app import main
from gcsr.cli.output import progress_bars

SOURCE = Path(inspect.getfile(CondensedGraph)).parents[1]
SMALL = ["iterations=4", "experts=1", "expert-epochs=4", "max-start=3", "hidden_channels=8", "N=2"]
FIXED = [f"--set={setting}" for setting in SMALL]
SEARCHED = ["--set=feature_lr=0.03..30:log", "--set=alpha=0.1,1,10"]
needs_optuna = pytest.mark.needs("optuna")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    GRAPH.to_npz(tmp_path / "graph.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def gcsr(capsys):
    def run(*argv: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in argv])
        return code, *capsys.readouterr()

    return run


def tuned(gcsr, *more: object) -> tuple[int, str, str]:
    small = ("--nodes=9", "--trials=3", "--device=cpu")
    return gcsr("tune", "graph.npz", *small, *FIXED, *SEARCHED, *more)


@needs_optuna
def test_it_tells_the_best_and_how_to_make_it_again(gcsr, folder):
    code, out, err = tuned(gcsr, "--out=best.safetensors", "--plot=tune.svg")
    assert (code, err) == (0, "")
    assert "graph: 9 nodes by gcsr, 3 trials, 0 of them pruned, in graph-gcsr-9.tune.sqlite" in out
    assert "validation, %" in out and "best: trial" in out
    assert (folder / "tune.svg").read_text().startswith("<?xml")
    best = CondensedGraph.load(folder / "best.safetensors")
    assert best.provenance["tuned"]["trials"] == 3
    assert best.provenance["tuned"]["study"] == "graph-gcsr-9.tune.sqlite"
    line = next(line for line in out.splitlines() if line.startswith("make it again: "))
    words = shlex.split(line.removeprefix("make it again: "))
    assert words[0] == "gcsr" and words[-2:] == ["--out", "best.safetensors"]
    assert gcsr(*words[1:-1], "again.safetensors")[0] == 0
    again = CondensedGraph.load(folder / "again.safetensors")
    assert torch.equal(best.x, again.x) and torch.equal(best.adjacency, again.adjacency)
    # The same command again continues, and as all trials are there it only tells.
    files = {path: path.stat().st_mtime_ns for path in folder.glob("*.sqlite")}
    told = tuned(gcsr, "--json")
    assert told[0] == 0 and len(json.loads(told[1])["trials"]) == 3
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*.sqlite")} == files


@needs_optuna
@pytest.mark.parametrize(
    ("words", "note"),
    [
        (("--method=random",), "note: there is nothing to search, so one trial is all;"),
        (("--method=clusters", "--set=num_hops=1,2"), "note: the space has 2 candidates, and all"),
        (("--method=clusters", "--set=num_hops=1,2", "--trials=2"), ""),
    ],
)
def test_fewer_trials_than_asked_for_are_explained(gcsr, words, note):
    code, out, _ = gcsr("tune", "graph.npz", "--nodes=9", "--trials=3", "--device=cpu", *words)
    assert code == 0 and (note in out if note else "note:" not in out)


@needs_optuna
def test_names_of_files_are_free_and_fit_every_system(gcsr, folder):
    words = (
        "tune",
        "graph.npz",
        "--nodes=9",
        "--trials=1",
        "--method=gcsr.methods.selection:Random",
    )
    code, out, _ = gcsr(*words)
    assert code == 0 and out.endswith("--out best.safetensors\n")
    assert (folder / "graph-gcsr.methods.selection-Random-9.tune.sqlite").exists()
    for name in ("best", "best-2-1"):
        (folder / f"{name}.safetensors").touch()
    assert gcsr(*words)[1].endswith("--out best-2.safetensors\n")
    more = gcsr(*words, "--graphs=2", "--study=more.sqlite")
    assert more[1].endswith("--out best.safetensors\n")
    (folder / "best-0.safetensors").touch()
    assert gcsr(*words, "--graphs=2", "--study=more.sqlite")[1].endswith("best-3.safetensors\n")


@needs_optuna
def test_json_alone_is_printed(gcsr):
    code, out, err = tuned(
        gcsr, "--study=s.sqlite", "--json", "--graphs=2", "--seed=4", "--trials=2"
    )
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert told["method"] == "gcsr" and told["graphs"] == 2 and told["study"] == "s.sqlite"
    assert told["best"]["score"] == max(trial["score"] for trial in told["trials"])
    assert told["settings"]["alpha"] in (0.1, 1.0, 10.0) and told["settings"]["iterations"] == 4
    assert "--graphs 2" in told["command"] and "--seed 4" in told["command"]


@needs_optuna
@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--set=alpha"], "--set must be name=low..high, name=a,b,c or name=value, got 'alpha'."),
        (["--set=tau=3..1"], "tau must be a range whose first end is below the second, got '3..1'"),
        (["--set=alpha=3"], "--set must have every setting once, got 'alpha' twice."),
        (["--set=alfa=3"], "alfa is not a setting of gcsr"),
        (["--space=gone"], "--space must be paper, wide or a TOML file, got 'gone'."),
        (["--method=gone"], "--method must be one of random, "),
        (["--trials=0"], "--trials must be >= 1, got '0'"),
        (["--seconds=0"], "--seconds must be > 0, got 0.0."),
        (["--plot=tune.pdf"], "--plot must end with .png or .svg, got 'tune.pdf'."),
        (["--plot=gone/tune.png"], "--plot: the folder gone does not exist."),
        (["--plot=gone/deep/tune.png"], "--plot: the folder gone/deep does not exist."),
        (["--out=gone/best.safetensors"], "--out: the folder gone does not exist."),
        (["--set=prior=all"], "prior must be predicted or train, got 'all'"),
        (["--preset=paper"], "dataset must be one of citeseer, "),
        (["--study=graph.npz"], "--study: graph.npz is not a study but something else."),
        (["--ratio=0.1"], "exactly one of --nodes and --ratio"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(gcsr, folder, argv, sentence):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    code, out, err = tuned(gcsr, *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {sentence}") and len(err.splitlines()) == 1
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_without_optuna_a_sentence_says_how_to_get_it(gcsr, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, out, err = tuned(gcsr)
    assert (code, out) == (2, "")
    assert err == "error: optuna is not installed; `pip install 'gcsr[tune]'` installs it.\n"


@needs_optuna
def test_all_trials_refused_is_said(gcsr):
    argv = ["--method=sgdd", "--nodes=9", "--set=epochs=1", "--set=structure_loss=gone,off"]
    code, _, err = gcsr("tune", "graph.npz", *argv)
    assert (
        code == 2 and "structure_loss must be one of stabilized, released, off, got 'gone'" in err
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@needs_optuna
def test_the_bar_shows_the_best_so_far(gcsr, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert tuned(gcsr, "--trials=2")[0] == 0
    shown = terminal.getvalue()
    assert "trials, best so far 9" in shown and "2/2" in shown
    with progress_bars() as progress:
        progress.describe("unheard of", "is begun")
    assert "is begun" in terminal.getvalue()


@needs_optuna
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_tells_the_best_and_how_to_go_on(folder):
    ours, theirs = pty.openpty()
    argv = ["tune", "graph.npz", "--nodes=9", "--trials=1000", "--device=cpu", *FIXED, *SEARCHED]
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, "-m", "gcsr", *argv],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm", "COLUMNS": "120"},
    )
    signal.signal(signal.SIGINT, previous)
    os.close(theirs)
    shown = b""
    try:
        while b"best so far" not in shown:
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        while chunk := _read(ours):
            shown += chunk
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(ours)
    assert (process.returncode, output) == (130, b"")
    end = shown.decode().replace("\r\n", "\n")
    assert "of 1,000 trials kept; the same command continues\nbest so far: trial " in end
    assert end.endswith("interrupted; written before that: graph-gcsr-9.tune.sqlite\n")
    assert "Traceback" not in end


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""
