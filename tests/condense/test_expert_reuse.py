"""Condensing with experts that are trained once, and what the command line says about them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gcsr import GCSR, MTT, CondensedGraph, InputError
from gcsr.cli.app import main
from gcsr.training.obtain_experts import forget_experts
from gcsr.utils.formatting import parse_bytes
from helpers import planted_graph

SMALL: dict[str, Any] = {
    "hidden_channels": 8,
    "iterations": 4,
    "student_steps": 2,
    "max_start": 4,
    "experts": 3,
    "expert_epochs": 8,
    "expert_lr": 1e-2,
    "iterate": "last",
}
PLENTY = 10**8


@pytest.fixture(scope="module")
def graph():
    return planted_graph(weighted=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache folder of this test's own, and a process that remembers nothing."""
    monkeypatch.setenv("GCSR_CACHE", str(tmp_path))
    forget_experts()
    yield tmp_path / "experts"
    forget_experts()


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def story(small: CondensedGraph) -> dict[str, Any]:
    return {key: value for key, value in small.provenance.items() if key != "measured"}


def test_condensing_with_and_without_cache_gives_the_same_bytes(graph):
    def made(again: bool, **settings: Any) -> CondensedGraph:
        if not again:
            forget_experts()
        return GCSR(nodes=9, **SMALL, **settings).condense(graph, device="cpu")

    plain = made(False)
    others = [
        made(True),
        made(False, expert_disk=PLENTY),
        made(False, expert_disk=PLENTY),
        made(False, expert_memory=0),
    ]
    cached = [small.provenance["measured"]["experts"]["cached"] for small in others]
    assert cached == [True, False, True, False]
    for small in others:
        assert torch.equal(plain.x, small.x)
        assert torch.equal(plain.adjacency, small.adjacency)
        assert story(plain) == story(small)
    told = [small.provenance["measured"]["experts"] for small in others]
    assert told[0]["kept"] is True and told[0]["stride"] == 1 and told[0]["bytes"] > 0
    assert told[3] == {
        "kept": False,
        "mapped": False,
        "bytes": 0,
        "cached": False,
        "stride": 6,
    }


def test_other_sizes_seeds_priors_and_methods_train_once(graph):
    stages: list[str] = []

    def run(condenser: GCSR | MTT, seed: int = 0) -> int:
        stages.clear()
        condenser.condense(graph, seed=seed, device="cpu", progress=lambda *c: stages.append(c[0]))
        return stages.count("training experts")

    assert run(GCSR(nodes=9, **SMALL))
    assert not run(GCSR(nodes=12, **SMALL))
    assert not run(GCSR(nodes=9, prior="train", **SMALL), seed=3)
    assert not run(MTT(nodes=9, **SMALL))
    assert run(GCSR(nodes=9, **(SMALL | {"expert_lr": 0.02})))


PROGRAM = """
import json, sys
from gcsr import GCSR
sys.path.insert(0, sys.argv[1])
from helpers import planted_graph
settings = json.loads(sys.argv[2])
small = GCSR(nodes=9, expert_disk=10**8, **settings).condense(planted_graph(), device="cpu")
print(small.x.double().sum().item(), small.provenance["measured"]["experts"]["cached"])
"""


def test_two_processes_share_a_folder(folder):
    tests = str(Path(__file__).parents[1])
    argv = [sys.executable, "-c", PROGRAM, tests, json.dumps(SMALL)]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert len(entries(folder)) == 1
    assert not list(folder.glob("*.part"))
    settings = SMALL | {"expert_disk": PLENTY}
    here = GCSR(nodes=9, **settings).condense(planted_graph(), device="cpu")
    assert here.provenance["measured"]["experts"]["cached"]
    assert {words[0] for words in said} == {str(here.x.double().sum().item())}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("1234", 1234),
        ("1e9", 10**9),
        ("500MB", 5 * 10**8),
        ("2GiB", 2 * 2**30),
        ("2.2 gb", 2_200_000_000),
        ("1.5KiB", 1536),
        ("7B", 7),
        ("1TB", 10**12),
    ],
)
def test_sizes(text, size):
    assert parse_bytes("--expert-disk", text) == size


@pytest.mark.parametrize(
    "text", ["", "much", "-1", "nan", "inf", "1.5", "2GX", "iB", "1e99", "MB5", "5 5"]
)
def test_sizes_that_make_no_sense(text):
    with pytest.raises(InputError, match=r"^--expert-disk must be a size such as .*, got"):
        parse_bytes("--expert-disk", text)


def test_options_of_the_command_line(graph, folder, tmp_path, capsys):
    data, out = graph.to_npz(tmp_path / "graph.npz"), tmp_path / "out.safetensors"
    small = [f"--set={key}={value}" for key, value in SMALL.items()]
    argv = [
        "condense",
        str(data),
        "--method",
        "gcsr",
        "--nodes",
        "9",
        "--out",
        str(out),
        "--device",
        "cpu",
        *small,
    ]
    assert main([*argv, "--expert-disk", "50MB", "--expert-memory", "1GiB"]) == 0
    assert len(entries(folder)) == 1
    forget_experts()
    assert main([*argv, "--expert-disk", "50MB"]) == 0
    provenance = CondensedGraph.load(out).provenance
    assert provenance["measured"]["experts"]["cached"]
    assert not {"expert_memory", "expert_disk"} & set(provenance["settings"])
    capsys.readouterr()
    for wrong in (["--expert-memory", "lots"], ["--expert-disk=1", "--set=expert_disk=2"]):
        assert main([*argv, *wrong]) != 0
        assert capsys.readouterr().err.count("\n") == 1
