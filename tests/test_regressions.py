"""Defects that were found once, kept from coming back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import save_file
from torch import nn

import gcsr
from gcsr import CondensedGraph, Graph, InputError, Random, TrainingRecipe
from gcsr.benchmarking.cells import Protocol
from helpers import planted_graph

QUICK = {"recipe": TrainingRecipe(epochs=5), "device": "cpu"}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(noise=2.5)


@pytest.fixture(scope="module")
def small(graph) -> CondensedGraph:
    return Random(nodes=9).condense(graph)


def test_graph_itself_checks_its_edges(graph):
    directed = sp.csr_array(sp.triu(graph.adjacency))
    with pytest.raises(InputError, match="directed"):
        replace(graph, adjacency=directed)
    looped = sp.csr_array(graph.adjacency + sp.eye_array(graph.num_nodes))
    with pytest.raises(InputError, match="self-loops"):
        replace(graph, adjacency=looped)


@pytest.mark.parametrize("field", ["x", "y"])
def test_graph_itself_wants_tensors_of_its_kind(graph, field):
    with pytest.raises(InputError, match=rf"^{field} must be a torch"):
        replace(graph, **{field: getattr(graph, field).double()})
    with pytest.raises(InputError, match=rf"^{field} must be a torch"):
        replace(graph, **{field: getattr(graph, field).numpy()})


def test_graph_file_keeps_class_count_setting_and_permissions(graph, tmp_path):
    wide = replace(graph, num_classes=7, inductive=True)
    path = wide.to_npz(tmp_path / "wide.npz")
    back = Graph.from_npz(path)
    assert (back.num_classes, back.inductive) == (7, True)
    assert back.content_hash == wide.content_hash
    assert not Graph.from_npz(path, inductive=False).inductive
    assert path.stat().st_mode & 0o044


@pytest.mark.parametrize(("key", "value"), [("num_classes", 10**13), ("inductive", 3)])
def test_graph_file_with_an_impossible_number_is_one_sentence(graph, tmp_path, key, value):
    path = graph.to_npz(tmp_path / "graph.npz")
    with np.load(path) as arrays:
        np.savez(path, **{**arrays, key: np.array(value)})
    with pytest.raises(InputError, match=key):
        Graph.from_npz(path)


def written(path: Path, provenance: str, classes: str) -> Path:
    tensors = {"x": torch.ones(2, 3), "adjacency": torch.eye(2), "y": torch.tensor([0, 1])}
    metadata = {
        "format": "gcsr-condensed-graph/1",
        "num_classes": classes,
        "provenance": provenance,
    }
    save_file(tensors, path, metadata)
    return path


@pytest.mark.parametrize("classes", ["10000000000000", "-1", "0"])
def test_hostile_class_count_is_refused(tmp_path, classes):
    with pytest.raises(InputError, match="num_classes"):
        CondensedGraph.load(written(tmp_path / "bad.safetensors", "{}", classes))


def test_provenance_that_is_no_json_is_refused(tmp_path):
    with pytest.raises(InputError, match="NaN is not JSON"):
        CondensedGraph.load(written(tmp_path / "bad.safetensors", '{"a": NaN}', "2"))


def test_a_leak_that_is_oddly_spelled_still_counts(tmp_path):
    said = json.dumps({"leaks_test_labels": "no"})
    assert CondensedGraph.load(written(tmp_path / "odd.safetensors", said, "2")).leaks_test_labels


class WithoutReset(nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, classes))

    def forward(self, x, edge_index, edge_weight):
        return x @ self.weight


def test_module_that_cannot_be_drawn_anew_is_refused_and_its_maker_accepted(graph, small):
    module = WithoutReset(graph.num_features, graph.num_classes)
    with pytest.raises(InputError, match="weight cannot be drawn anew"):
        gcsr.evaluate(small, graph, model=module, runs=2, **QUICK)
    found = gcsr.evaluate(
        small,
        graph,
        model=lambda: WithoutReset(graph.num_features, graph.num_classes),
        runs=3,
        **QUICK,
    )
    assert len(set(found.validation)) > 1


def test_setting_must_be_that_of_the_condensed_graph(graph, small):
    hidden = replace(graph, inductive=True)
    with pytest.raises(InputError, match="inductive=False"):
        gcsr.evaluate(small, hidden, runs=1, **QUICK)
    assert gcsr.evaluate(small, hidden, runs=1, check_origin=False, **QUICK).runs == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"runs": 1.5}, "runs"),
        ({"hidden_channels": 0}, "hidden_channels"),
        ({"hidden_channels": 4, "model": "gat"}, "hidden_channels"),
    ],
)
def test_numbers_that_cannot_be_used_are_named(graph, small, options, named):
    with pytest.raises(InputError, match=rf"^{named} must be "):
        gcsr.evaluate(small, graph, **{"runs": 1, **QUICK, **options})


def test_names_where_objects_are_needed_are_one_sentence(graph, small):
    with pytest.raises(InputError, match=r"^graph"):
        gcsr.condense("cora", nodes=70)
    with pytest.raises(InputError, match=r"^graph must be"):
        gcsr.evaluate(small, "cora", runs=1)
    with pytest.raises(InputError, match=r"^small must be"):
        gcsr.evaluate("file", graph, runs=1)


def test_preset_and_settings_are_checked_together(graph):
    """The authors' M = 1 on ogbn-arxiv allows a start that the default M = 2 does not."""
    renamed = graph.renamed("ogbn-arxiv")
    settings = {"max_start": 100, "iterations": 0, "experts": 1, "iterate": "last"}
    made = gcsr.condense(renamed, method="gcsr", nodes=9, preset="paper", device="cpu", **settings)
    assert made.provenance["settings"]["max_start"] == 100


def test_the_name_of_a_graph_changes_no_result(graph, small):
    asked = {"runs": 1, "device": "cpu", "recipe": None}
    found, other = (gcsr.evaluate(small, graph.renamed(name), **asked) for name in ("reddit", "a"))
    assert (found.scores, found.recipe) == (other.scores, other.recipe)
    # The paper's tables ask for its dropout on Reddit.
    assert Protocol().recipe("reddit").dropout == 0.5
