"""What the automatic mode is said to hold in memory, against what it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gcsr import Graph, View
from gcsr.condense import Automatic
from gcsr.condense.automatic import plan_for
from gcsr.condense.consistent import DRAWS, _Material
from gcsr.condense.held import SMOOTHED, consistent_bytes, held_bytes
from helpers import planted_graph

CPU = torch.device("cpu")
STATUS = Path("/proc/self/status")
# Estimated and then measured, in a process of its own.
PEAK = f"""
import sys
from gcsr.cli import main
words = sys.argv[1:]
assert main([*words, "--estimate", "--json"]) == 0
assert main([*words, "--out", "made.safetensors", "--no-checkpoint", "--json"]) == 0
print(*(line.split()[1] for line in open({str(STATUS)!r}) if line.startswith("VmHWM:")))
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(per_class=60, features=40)


def memory(graph: Graph, **settings: Any) -> int:
    return Automatic(nodes=9, **settings).estimate(graph).memory_bytes


def test_the_consistent_teacher_is_counted_tensor_by_tensor(graph: Graph) -> None:
    material = _Material(View(graph).condensing(), 0, CPU)
    kept = sum(one.nbytes for one in (material.undropped, material._x, *material._draws))
    passing = (SMOOTHED - 2) * material._x.nbytes
    assert len(material._draws) == DRAWS
    counted = consistent_bytes(graph.num_nodes, graph.num_features, graph.train.numel())
    assert counted == kept + passing


def test_seconds_are_those_of_the_plan_even_where_it_takes_longer_than_the_budget(
    graph: Graph,
) -> None:
    view = View(graph).condensing()
    for budget in (0.001, 40.0):
        planned = plan_for(view, 9, budget, "cpu").seconds
        said = Automatic(nodes=9, budget=budget).estimate(graph).seconds
        assert planned > 0 and said == pytest.approx(planned, rel=0.2, abs=0.1)


def test_the_largest_moment_counts(graph: Graph) -> None:
    view = View(graph).condensing()
    pins = {"experts": 2, "expert_epochs": 10, "hidden": 8}
    weights = 2 * 10 * (40 + 3 + 1) * 8 * 4
    teacher = consistent_bytes(graph.num_nodes, 40, graph.train.numel())
    assert teacher > weights > 0
    both = {"matching": True, "pins": pins}
    # Beside it, what is seen of all nodes for a second opinion.
    assert held_bytes(view, ["consistent"], **both) == teacher + graph.num_nodes * 40 * 4
    assert held_bytes(view, [], **both) == weights
    assert held_bytes(view, [], matching=False, pins=pins) == 0
    assert held_bytes(view, [], matching=True, pins=pins | {"expert_memory": 100}) == 100
    assert 0 < held_bytes(view, ["gcn"], matching=False, pins={}) != teacher


def test_an_estimate_knows_what_the_race_does(graph: Graph) -> None:
    matched = memory(graph)
    assert matched > memory(graph, without="matching")
    experts = 8 * 100 * (40 + 3 + 1) * 256 * 4
    assert abs(matched - memory(graph, pins=(("expert_memory", 1000),)) - experts) < experts / 2
    # Nothing is matched in no time at all.
    assert memory(graph, budget=0.001) <= memory(graph, without="matching")
    known = planted_graph(per_class=60, features=40, inductive=True)
    assert memory(known, without="matching") < memory(graph, without="matching")


@pytest.mark.slow
@pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA's libraries take memory too")
@pytest.mark.skipif(not STATUS.is_file(), reason="the system does not tell a process's peak")
@pytest.mark.parametrize("name", ["amazon-computers", "facebook-pagepage"])
def test_real_graphs_take_between_half_and_twice_of_it(
    shared_data: Path, tmp_path: Path, name: str
) -> None:
    data = shared_data / "graphs" / f"{name}.npz"
    if not data.is_file():
        pytest.skip(f"{shared_data} does not hold {name}")
    words = ["condense", str(data), "--nodes", "100", "--budget", "20", "--device", "cpu"]
    made = [sys.executable, "-c", PEAK, *words]
    out = subprocess.run(made, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    estimate, _ = json.JSONDecoder().raw_decode(out)
    peak = 1024 * int(out.splitlines()[-1])
    assert peak / 2 < estimate["memory_bytes"] < 2 * peak
