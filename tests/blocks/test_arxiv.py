"""The real structure of ogbn-arxiv with stand-in features: from disk the same bytes as in memory."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

import gcsr
from gcsr import TrainingRecipe
from gcsr.data.folder import write_folder
from gcsr.data.stored_graph import open_folder
from gcsr.training.obtain_experts import forget_experts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
def test_arxiv_standin(shared_data: Path, tmp_path: Path) -> None:
    structure = shared_data / "graphs" / "ogbn-arxiv.structure.npz"
    if not structure.is_file():
        pytest.skip(f"no {structure.name}")
    standin = runpy.run_path(str(BENCHMARKS / "standin.py"))["standin"]
    graph = standin(structure, 128, noise=6.0, seed=0)
    stored = open_folder(write_folder(graph, tmp_path / "standin"), memory=40 * 2**20)
    results = []
    for one in (stored, graph):
        forget_experts()
        results.append(
            gcsr.condense(
                one,
                nodes=90,
                method="gcsr",
                iterations=3,
                iterate="last",
                experts=2,
                expert_epochs=8,
                max_start=4,
                device="cpu",
            )
        )
    for field in ("x", "adjacency", "y"):
        assert torch.equal(getattr(results[0], field), getattr(results[1], field)), field
    assert results[0].provenance["class_correlation"] == results[1].provenance["class_correlation"]
    recipe = TrainingRecipe(epochs=12, validate_every=6)
    found = [gcsr.evaluate(results[0], one, runs=1, recipe=recipe) for one in (stored, graph)]
    assert (found[0].scores, found[0].validation) == (found[1].scores, found[1].validation)
