"""The card that is shared with a file."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr import CondensedGraph, InputError
from gcsr.cli.app import main
from helpers import planted_graph


def test_the_card_has_all_that_a_stranger_needs(tmp_path, capsys):
    graph = planted_graph()
    small = gcsr.condense(graph, nodes=9, method="random")
    found = gcsr.evaluate(small, graph, runs=2, recipe=gcsr.TrainingRecipe(epochs=2))
    card = small.card(found, license="cc-by-4.0")
    assert card.startswith("---\nlicense: cc-by-4.0\n")
    for fact in (
        "| nodes | 9 |",
        f"| {graph.num_nodes} |",
        f"{found.mean:.1f} ±",
        graph.content_hash,
        "license: cc-by-4.0; the license of the original",
        "No test label was read",
        "Its nodes are real ones",
        "gcsr.CondensedGraph.load(",
        "seed 0",
    ):
        assert fact in card
    path = small.save(tmp_path / "small.safetensors")
    assert main(["inspect", str(path), "--card", "--license", "cc-by-4.0"]) == 0
    shown = capsys.readouterr().out
    assert "test accuracy: not recorded" in shown and "license: cc-by-4.0\n" in shown
    assert main(["inspect", str(path), "--license", "mit"]) == 2
    assert "give --card with it" in capsys.readouterr().err


def test_leaks_and_sizes_are_told():
    made = {
        "leaks_test_labels": True,
        "bytes": {"original": 10},
        "pseudo_labels": {"labeler": "gcn"},
    }
    small = CondensedGraph(torch.ones(3, 2), torch.eye(3), torch.arange(3), 3, made)
    card = small.card()
    assert "Test labels of the original went into this graph" in card
    assert "Pseudo-labels of unlabeled nodes were used." in card
    assert "the graph that it replaces, stored sparsely, 10:" in card
    assert "without any guarantee of privacy" in card and "license: unknown" in card


def test_a_file_of_a_stranger_cannot_write_markdown():
    evil = "a|b\n# c <script> [x](y) `z`"
    made = {"method": evil, "dataset": {"name": evil, "num_nodes": evil}, "versions": {evil: evil}}
    small = CondensedGraph(torch.ones(2, 2), torch.eye(2), torch.arange(2), 2, made)
    card = small.card(license="x\nevil: true")
    assert "<script>" not in card.replace("\\<script\\>", "") and "\n# c" not in card
    assert card.splitlines()[1] == 'license: "x\\nevil: true"'
    with pytest.raises(InputError, match=r"^license must be the name of a license, .*, got 5\.$"):
        small.card(license=5)
    assert "does not say whether test labels were read" in replace(small, provenance={}).card()
