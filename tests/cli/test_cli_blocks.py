"""Graph folders, ``--memory`` and ``--estimate`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gcsr import CondensedGraph
from gcsr.cli.app import main
from gcsr.data.folder import write_folder
from gcsr.training.obtain_experts import forget_experts
from helpers import planted_graph

QUICK = ["--set", "iterations=2", "--set", "experts=2", "--set", "iterate=last"]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(write_folder(planted_graph(), tmp_path / "planted"))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_condense_and_evaluate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, folder: str
) -> None:
    """With and without blocks the same file content, and the same accuracies."""
    files = []
    for name, memory in (("disk", ["--memory", "2kB"]), ("memory", [])):
        forget_experts()
        out = str(tmp_path / f"{name}.safetensors")
        words = ["condense", folder, "--nodes", "6", "--method", "gcsr", "--out", out]
        assert run(capsys, *words, *QUICK, *memory)[0] == 0
        files.append(out)
        assert (Path(folder) / "propagated").exists() or name == "memory"
    first, second = (CondensedGraph.load(Path(file)) for file in files)
    assert torch.equal(first.x, second.x) and torch.equal(first.adjacency, second.adjacency)
    words = ["evaluate", files[0], "--data", folder, "--runs", "2", "--epochs", "5", "--json"]
    scores = [json.loads(run(capsys, *words, *m)[1])["scores"] for m in (["--memory", "2kB"], [])]
    assert scores[0] == scores[1]


def test_estimate(capsys: pytest.CaptureFixture[str], tmp_path: Path, folder: str) -> None:
    words = ["condense", folder, "--nodes", "6", "--method", "gcsr", "--out"]
    words += [str(tmp_path / "never.safetensors"), "--estimate"]
    code, out, _ = run(capsys, *words)
    assert code == 0 and out.startswith("in memory: about") and out.count("\n") == 2
    found = json.loads(run(capsys, *words, "--memory", "2kB", "--json")[1])
    assert found["in_blocks"] and found["disk_bytes"] == 2 * 66 * 13 * 4
    assert not (tmp_path / "never.safetensors").exists()
    assert not (Path(folder) / "propagated").exists()
    nameless = ["condense", folder, "--nodes", "6", "--method", "gcsr"]
    assert run(capsys, *nameless, "--estimate")[0] == 0
    for missing in (
        nameless,
        ["condense", "digits", "--nodes", "20", "--out", "a.safetensors", "--memory", "1MB"],
    ):
        code, _, said = run(capsys, *missing)
        assert code == 2 and said.count("\n") == 1 and ("--out" in said or "--memory" in said)
    words[words.index("gcsr")] = "auto"
    seconds = json.loads(run(capsys, *words, "--budget", "50", "--json")[1])["seconds"]
    # The whole race takes less than that here.
    assert 5 < seconds < 50
    assert run(capsys, *words, "--memory", "2kB")[0] == 0
    words[words.index("--method") + 1] = "gcond"
    assert run(capsys, *words)[0] == 0
    code, _, said = run(capsys, *words, "--memory", "2kB")
    assert code == 2 and said.count("\n") == 1 and "gcond" in said


STATUS = Path("/proc/self/status")
PEAK = f"""
import sys
from gcsr.cli.app import main
assert main(sys.argv[1:]) == 0
print(*(line.split()[1] for line in open({str(STATUS)!r}) if line.startswith("VmHWM:")))
"""


@pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA's libraries take memory too")
@pytest.mark.skipif(not STATUS.is_file(), reason="the system does not tell a process's peak")
def test_an_estimate_counts_the_program_itself(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of so small a graph nearly all memory is what Python and torch take."""
    words = ["condense", "digits", "--nodes", "20", "--method", "random"]
    expected = json.loads(run(capsys, *words, "--estimate", "--json")[1])["memory_bytes"]
    made = [sys.executable, "-c", PEAK, *words, "--out", str(tmp_path / "small.safetensors")]
    out = subprocess.run(made, capture_output=True, text=True, check=True).stdout
    peak = 1024 * int(out.splitlines()[-1])
    assert 0.7 * expected < peak < 1.1 * expected


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--memory", "much"], "--memory"),
        (["--memory", "0"], "memory"),
        (["--memory", "2kB", "--method", "gcond"], "gcond"),
        (["--memory", "2kB", "--features", "rows"], "features"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, folder: str, words: list[str], named: str
) -> None:
    out = str(tmp_path / "never.safetensors")
    code, printed, err = run(capsys, "condense", folder, "--nodes", "6", "--out", out, *words)
    assert (code, printed) == (2, "")
    assert err.startswith("error:") and named in err and err.count("\n") == 1
