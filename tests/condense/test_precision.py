"""The same condensation in float32 and in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gcsr import GCSR, MTT, CondensedGraph, InputError
from gcsr.data.views import View
from gcsr.models.registry import condensing_model
from gcsr.starts.sample import propagated_features
from gcsr.training.expert_recipe import ExpertRecipe, ExpertRequest
from gcsr.training.obtain_experts import experts_for, forget_experts
from helpers import CPU, planted_graph

SMALL: dict[str, Any] = {
    "nodes": 9,
    "hidden_channels": 8,
    "iterations": 5,
    "student_steps": 3,
    "max_start": 4,
    "experts": 3,
    "expert_epochs": 8,
}


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


def made(graph, dtype: str, method: type[GCSR] | type[MTT] = GCSR, **changes: Any):
    settings = SMALL | {"iterate": "last"} | changes
    return method(dtype=dtype, **settings).condense(graph, seed=1, device="cpu")


def assert_close(single: CondensedGraph, double: CondensedGraph) -> None:
    assert (single.x.dtype, single.adjacency.dtype) == (torch.float32, torch.float32)
    assert (double.x.dtype, double.adjacency.dtype) == (torch.float64, torch.float64)
    assert torch.isfinite(double.x).all() and torch.isfinite(double.adjacency).all()
    torch.testing.assert_close(single.x.double(), double.x, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(single.adjacency.double(), double.adjacency, rtol=1e-3, atol=1e-5)
    assert torch.equal(single.y, double.y)


# 9 nodes are fewer than the 12 features and 15 are more: students take either form.
@pytest.mark.parametrize("nodes", [9, 15])
@pytest.mark.parametrize("model", ["sgc", "gcn", "appnp", "cheby-paper", "mlp", "sage"])
def test_precisions_agree(graph, model, nodes):
    assert_close(
        *(made(graph, dtype, model=model, nodes=nodes) for dtype in ("float32", "float64"))
    )


@pytest.mark.parametrize("regularizer", ["prior", "substructure", "random"])
def test_every_structure_follows(graph, regularizer):
    assert_close(*(made(graph, d, regularizer=regularizer) for d in ("float32", "float64")))


def test_without_structure_and_with_repeated_rows(graph):
    assert_close(*(made(graph, d, MTT, nodes=30) for d in ("float32", "float64")))


def test_selecting_an_iterate_works_in_double(graph, tmp_path):
    single, double = (made(graph, d, iterate="best-val") for d in ("float32", "float64"))
    assert_close(single, double)
    assert double.provenance["settings"]["dtype"] == "float64"
    again = CondensedGraph.load(double.save(tmp_path / "double.safetensors"))
    assert torch.equal(again.x, double.x) and again.x.dtype == torch.float64


def test_double_is_double_all_the_way(graph):
    """Features and experts carry digits that float32 cannot."""
    visible = View(graph).condensing().visible
    recipe = ExpertRecipe(2, 6, 6, 4, 0.02, 5e-4, 0)
    features = propagated_features(visible, 2, CPU, torch.float64)
    assert not torch.equal(features, features.float().double())
    request = ExpertRequest(condensing_model("gcn", 8), recipe, torch.float64, predictions=True)
    experts = experts_for(request, visible, device=CPU)
    for later in (*experts.trajectories.pairs([1], [2], 2)[1], experts.mean_prediction):
        assert later.dtype == torch.float64
        assert not torch.equal(later, later.float().double())
    assert experts.trajectories.nbytes % 8 == 0


def test_double_replays_and_stores_the_same_bytes(graph, tmp_path, monkeypatch):
    monkeypatch.setenv("GCSR_CACHE", str(tmp_path))
    results = []
    for bounds in ({}, {"expert_memory": 0}, {"expert_disk": 10**8}, {"expert_disk": 10**8}):
        forget_experts()
        results.append(made(graph, "float64", **bounds))
    assert results[-1].provenance["measured"]["experts"]["cached"]
    assert all(torch.equal(results[0].x, other.x) for other in results)


def test_other_precisions_are_refused():
    with pytest.raises(InputError, match=r"dtype must be one of .*, got 'float16'"):
        GCSR(dtype="float16", **SMALL)
