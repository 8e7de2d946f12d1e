"""Condensed graphs of GraphSlim and of the GCSR authors, as ``torch.save`` wrote them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import gcsr
from gcsr.cli.app import main
from helpers import planted_graph

RECIPE = gcsr.TrainingRecipe(epochs=20)


def saved(folder: Path, name: str, **parts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, value in parts.items():
        torch.save(value, folder / f"{part}_{name}.pt")
    return folder / f"feat_{name}.pt"


@pytest.fixture
def small() -> gcsr.CondensedGraph:
    return gcsr.condense(
        planted_graph(), nodes=9, method="gcsr", device="cpu", iterations=3, experts=1
    )


def accuracy(small: gcsr.CondensedGraph) -> list[float]:
    graph = planted_graph()
    return gcsr.evaluate(small, graph, runs=2, recipe=RECIPE, device="cpu").scores


@pytest.mark.parametrize("layout", ["authors", "graphslim", "mapping", "edges"])
def test_imported_graphs_score_as_their_tensors(tmp_path, small, layout):
    x, adjacency, y = small.x, small.adjacency, small.y
    if layout == "authors":  # of GCSR: a parameter, dense A', int64 labels
        path = saved(tmp_path, "cora_0.5_3", feat=nn.Parameter(x), adj=adjacency, label=y)
    elif layout == "graphslim":  # reduced_graph/METHOD, sparse A'
        folder = tmp_path / "reduced_graph" / "gcond"
        path = saved(folder, "cora_0.5_3", feat=x, adj=adjacency.to_sparse(), label=y[:, None])
    else:
        path = tmp_path / "graph.pt"
        ends = adjacency.nonzero().T
        edges = {"edge_index": ends, "edge_weight": adjacency[ends[0], ends[1]]}
        torch.save({"x": x, "y": y} | ({"adj": adjacency} if layout == "mapping" else edges), path)
    read = gcsr.CondensedGraph.load(path)
    assert torch.equal(read.adjacency, adjacency) and torch.equal(read.y, y)
    assert accuracy(read) == accuracy(small)
    if layout == "graphslim":
        assert read.provenance["method"] == "gcond" and read.provenance["seed"] == 3
    again = gcsr.CondensedGraph.load(read.save(tmp_path / "again.safetensors"))
    assert torch.equal(again.x, x)


def test_without_a_structure_it_is_the_identity(tmp_path, small):
    read = gcsr.CondensedGraph.load(saved(tmp_path, "a", feat=small.x, label=small.y))
    assert torch.equal(read.adjacency, torch.eye(9))


def test_one_command_evaluates_files_of_several_seeds(tmp_path, small, capsys):
    planted_graph().to_npz(tmp_path / "graph.npz")
    for seed in (0, 1):
        saved(tmp_path, f"cora_0.5_{seed}", feat=small.x, adj=small.adjacency, label=small.y)
    words = ["evaluate", *(str(tmp_path / f"adj_cora_0.5_{seed}.pt") for seed in (0, 1)), "--json"]
    words += [
        "--data",
        str(tmp_path / "graph.npz"),
        "--runs",
        "2",
        "--epochs",
        "20",
        "--device",
        "cpu",
    ]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["graphs"] == 2


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("loaded",))


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"feat": Evil()}, "must hold tensors only, got other objects"),
        ({"feat": [1, 2]}, "feat must be a tensor of real numbers, got list"),
        ({"feat": torch.zeros(1, 1).expand(10**5, 10**5)}, "feat would take 40,000,000,000 bytes"),
        ({"adj": torch.sparse_coo_tensor(size=(10**6, 10**6))}, "adj would take"),
        ({"adj": torch.zeros(2, 3)}, "adjacency must have shape"),
        ({"label": torch.tensor([0, -5, 1])}, "y must be"),
        ({"feat": torch.full((3, 2), torch.nan)}, "x must be"),
    ],
)
def test_hostile_files_are_refused_in_one_sentence(tmp_path, capsys, parts, sentence):
    fine = {"feat": torch.ones(3, 2), "adj": torch.eye(3), "label": torch.tensor([0, 1, 1])}
    path = saved(tmp_path, "a", **{**fine, **parts})
    with pytest.raises(gcsr.InputError, match=sentence):
        gcsr.CondensedGraph.load(path)
    assert "loaded" not in capsys.readouterr().out


def test_other_files_are_refused(tmp_path, small):
    path = tmp_path / "feat_a.pt"
    path.write_bytes(b"no zip archive")
    torch.save(small.y, tmp_path / "label_a.pt")
    with pytest.raises(gcsr.InputError, match=r"not a readable file of torch.save"):
        gcsr.CondensedGraph.load(path)
    with pytest.raises(gcsr.InputError, match=r"feat_b.pt: no such file"):
        gcsr.CondensedGraph.load(saved(tmp_path, "b", label=small.y).with_name("label_b.pt"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(2**20))
    with pytest.raises(gcsr.InputError, match="got a compressed archive"):
        gcsr.CondensedGraph.load(path)
    torch.save({"x": small.x}, tmp_path / "one.pt")
    with pytest.raises(gcsr.InputError, match="must have y or label"):
        gcsr.CondensedGraph.load(tmp_path / "one.pt")
