"""A benchmark that is killed and continued has the rows of one that was not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import gcsr
from helpers import planted_graph

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import killed


@pytest.mark.slow
def test_three_methods_on_three_graphs_killed_twice_and_continued_with_two_jobs(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = [f"{name}.npz" for name in "abc"]
    for seed, name in enumerate(names):
        planted_graph(per_class=20, seed=seed).renamed(name).to_npz(tmp_path / name)
    methods = ["random", "kcenter", "clusters"]
    brief = {"nodes": 6, "seeds": 2, "runs": 2, "epochs": 3}
    whole, parts = tmp_path / "whole.jsonl", tmp_path / "parts.jsonl"
    gcsr.benchmark(data=names, methods=methods, out=whole, device="cpu", **brief)
    expected = killed.rows(whole)
    assert len(expected) == 3 * (3 + 2)
    words = f"--data {','.join(names)} --method {','.join(methods)} --device cpu --jobs 2".split()
    words += [word for name, value in brief.items() for word in (f"--{name}", str(value))]
    killed.killed(words, parts, 2, len(expected))
    assert killed.rows(parts) == expected


SLEEPER = """
import time
from gcsr.methods.selection import Random
class Sleeper(Random):
    name, summary = "sleeper", "reports nothing"
    def run(self, ctx):
        time.sleep(1000)
"""


@pytest.mark.slow
def test_a_cell_that_reports_nothing_is_given_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    planted_graph(per_class=20).to_npz(tmp_path / "a.npz")
    found = gcsr.benchmark(
        data="a.npz",
        methods=["sleeper:Sleeper", "random"],
        nodes=6,
        seeds=1,
        runs=1,
        epochs=3,
        jobs=2,
        cell_limit=20,
        device="cpu",
    )
    assert found.failures == {"over the limit of 20 seconds.": ["sleeper on a.npz, 6 nodes"]}
    assert len(found.rows) == 4 and found.missing == 0
