"""Condensed graphs of graphs that grow."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr.auto.update import PreviousNodes, Update, redundant
from gcsr.cli.app import main
from gcsr.data.stored_graph import open_folder
from gcsr.data.views import View
from gcsr.evaluation.origin import check_leaks

FAST = {"method": "bilevel", "iterations": 12, "device": "cpu"}
BRIEF = {"runs": 1, "recipe": gcsr.TrainingRecipe(epochs=100), "device": "cpu"}


@pytest.fixture(scope="module")
def digits() -> gcsr.Graph:
    """Half of the labels for training."""
    graph = gcsr.load("digits")
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(0))
    parts = order[:900], order[900:1300], order[1300:]
    train, val, test = (part.sort().values for part in parts)
    return replace(graph, train=train, val=val, test=test)


@pytest.fixture(scope="module")
def without_nines(digits) -> gcsr.CondensedGraph:
    return gcsr.condense(digits.subgraph(digits.y != 9), nodes=30, **FAST)


def test_a_class_that_is_added_later_is_learned(digits, without_nines):
    before = gcsr.evaluate(without_nines, digits, check_origin=False, **BRIEF)
    small = gcsr.update(without_nines, digits, device="cpu", iterations=10)
    after = gcsr.evaluate(small, digits, **BRIEF)
    assert small.num_nodes == 30
    assert small.provenance["update"]["added"] == [0] * 9 + [3]
    assert before.mean < 92 < 95 < after.mean
    scores = small.provenance["update"]["validation"]
    assert scores[small.provenance["update"]["chosen"]] == max(scores.values())


def test_the_chain_is_recorded_and_the_same_seed_gives_the_same_bytes(digits):
    first = gcsr.condense(digits.subgraph(torch.arange(1200)), nodes=20, **FAST)
    second = gcsr.update(first, digits.subgraph(torch.arange(1500)), device="cpu", iterations=3)
    third = gcsr.update(second, digits, nodes=24, device="cpu", iterations=3)
    again = gcsr.update(second, digits, nodes=24, device="cpu", iterations=3)
    assert torch.equal(third.x, again.x)
    assert torch.equal(third.y, again.y)
    history = third.provenance["history"]
    assert [one["method"] for one in history] == ["bilevel", "update"]
    assert [one["nodes"] for one in history] == [20, 20]
    assert [one["dataset"]["num_nodes"] for one in history] == [1200, 1500]
    assert [one["iterations"] for one in history] == [12, 3]
    assert history[1]["settings"]["previous"] == history[0]["graph"]
    assert third.provenance["settings"]["previous"] == history[1]["graph"]
    assert all(one["seconds"] > 0 for one in history)
    assert third.num_nodes == 24
    assert third.provenance["update"]["kept"] == 20


def test_updates_of_several_seeds_are_evaluated_together(digits):
    before = gcsr.condense_many(
        digits.subgraph(torch.arange(1200)), nodes=20, method="random", seeds=range(2), device="cpu"
    )
    after = [
        gcsr.update(one, digits, seed=seed, device="cpu", iterations=0)
        for seed, one in enumerate(before)
    ]
    found = gcsr.evaluate(after, digits, **BRIEF)
    assert (found.graphs, len(found.scores)) == (2, 2)


def test_a_graph_on_disk_gives_the_same_bytes(digits, without_nines, tmp_path):
    digits.to_folder(tmp_path / "digits")
    stored = open_folder(tmp_path / "digits", memory=2 * 10**8)
    here, there = (
        gcsr.update(without_nines, graph, device="cpu", iterations=2) for graph in (digits, stored)
    )
    assert torch.equal(here.x, there.x)
    assert torch.equal(here.y, there.y)


def test_a_learned_structure_may_be_the_start(digits):
    """Its features are those after a hop on A', and it is compared as it is."""
    first = gcsr.condense(digits, nodes=20, method="random", device="cpu")
    small = gcsr.update(first, digits, device="cpu", iterations=0)
    assert set(small.provenance["update"]["validation"]) == {"start", "previous graph", "updated"}


def test_as_few_nodes_as_possible_are_removed(digits, without_nines):
    visible = View(digits).condensing().visible
    old = PreviousNodes.of(without_nines, 10, torch.device("cpu"))
    counts = torch.bincount(old.strata, minlength=10)
    kept, added = old.fitted(visible, 33)
    assert kept.all()
    assert added.tolist() == [0] * 9 + [3]
    kept, added = old.fitted(visible, 30)
    assert int(kept.sum()) == 27
    assert (counts - torch.bincount(old.strata[kept], minlength=10)).max() <= 1
    # A class without training nodes gives way before another loses its last node.
    few = replace(digits, train=digits.train[digits.y[digits.train] != 3])
    kept, added = old.fitted(View(few).condensing().visible, 9)
    assert torch.bincount(old.strata[kept], minlength=10).tolist() == [1, 1, 1, 0, *[1] * 5, 0]
    assert added.tolist() == [0] * 9 + [1]
    # The later one of the nearest two goes first.
    rows = torch.tensor([[0.0], [5.0], [0.1], [5.3]])
    assert redundant(rows, 2).tolist() == [2, 3]


def test_test_labels_are_not_read(digits, without_nines):
    check_leaks(Update(nodes=30, previous=without_nines, iterations=2), digits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: replace(g, x=g.x[:, :60]), "64 features, digits has 60; a graph that has grown"),
        (lambda g: replace(g, y=g.y.clamp_max(7), num_classes=8), "10 classes, digits has 8"),
        (lambda g: g.scaled("rows"), "made with features='keep', but digits is loaded with"),
    ],
)
def test_another_graph_is_one_sentence(digits, without_nines, change, message):
    with pytest.raises(gcsr.InputError, match=message):
        gcsr.update(without_nines, change(digits), device="cpu")
    with pytest.raises(
        gcsr.InputError, match=r"small must be a gcsr\.CondensedGraph, got a gcsr\.Graph"
    ):
        gcsr.update(digits, without_nines)
    with pytest.raises(gcsr.InputError, match="nodes must be"):
        gcsr.update(without_nines, digits, nodes=0)


def test_command(tmp_path, capsys, digits, without_nines):
    file, data, out = (tmp_path / name for name in ("a.safetensors", "g.npz", "b.safetensors"))
    without_nines.save(file)
    digits.to_npz(data)
    words = [str(file), "--data", str(data), "--out", str(out), "--iterations", "2"]
    assert main(["update", *words, "--json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["nodes"], found["kept"], found["updates"]) == (30, 27, 1)
    assert gcsr.CondensedGraph.load(out).provenance["update"]["iterations"] == 2
    replace(digits, x=digits.x[:, :60]).to_npz(data)
    assert main(["update", *words]) == 2
    assert capsys.readouterr().err.startswith("error: --data: the condensed graph has 64 features")
