"""Noise: what is perturbed and what is not, and the accuracies beside each other."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import gcsr
from gcsr.cli.app import main
from gcsr.data.features import csr_matrix
from gcsr.evaluation.robustness import NOISES, perturbed
from helpers import planted_graph

LARGE = planted_graph(per_class=150, train_per_class=100, val_per_class=20)
QUICK = gcsr.TrainingRecipe(epochs=6)


@pytest.mark.parametrize("noise", ["symmetric", "pair"])
def test_only_training_labels_become_wrong(noise):
    noisy = perturbed(LARGE, noise, 0.3, 0)
    wrong = noisy.y != LARGE.y
    assert set(wrong.nonzero()[:, 0].tolist()) <= set(LARGE.train.tolist())
    assert 0.2 < wrong[LARGE.train].double().mean() < 0.4
    shift = (noisy.y[wrong] - LARGE.y[wrong]) % 3
    assert set(shift.tolist()) == ({1, 2} if noise == "symmetric" else {1})
    assert noisy.x is LARGE.x and (noisy.adjacency != LARGE.adjacency).nnz == 0
    assert torch.equal(perturbed(LARGE, noise, 0.3, 0).y, noisy.y)
    assert not torch.equal(perturbed(LARGE, noise, 0.3, 1).y, noisy.y)


def test_features_come_from_the_same_column():
    before = LARGE.x.clone()
    noisy = perturbed(LARGE, "features", 0.3, 0)
    changed = noisy.x != LARGE.x
    assert 0.27 < changed.double().mean() < 0.33 and torch.equal(LARGE.x, before)
    for column in range(LARGE.num_features):
        assert set(noisy.x[:, column].tolist()) <= set(LARGE.x[:, column].tolist())
    assert torch.equal(noisy.y, LARGE.y)


def test_entries_of_sparse_features_move_to_other_nodes():
    x = torch.where(LARGE.x > 1.5, LARGE.x, 0.0)
    sparse = replace(LARGE, x=x.to_sparse_csr())
    noisy = csr_matrix(perturbed(sparse, "features", 0.5, 0).x)
    moved = np.asarray((noisy != x.numpy()).sum())
    assert moved > 0.5 * np.count_nonzero(x)
    assert noisy.sum(0) == pytest.approx(x.sum(0).numpy(), rel=1e-5)


def test_rewired_edges_are_still_a_graph():
    noisy = perturbed(LARGE, "edges", 0.3, 0).adjacency
    assert (noisy != noisy.T).nnz == 0 and not noisy.diagonal().any()
    assert 0.95 * LARGE.adjacency.nnz < noisy.nnz <= LARGE.adjacency.nnz
    kept = noisy.multiply(LARGE.adjacency).nnz / LARGE.adjacency.nnz
    assert 0.68 < kept < 0.82
    assert set(np.unique(noisy.data)) == {1.0}


@pytest.mark.parametrize("noise", NOISES)
def test_hidden_nodes_of_an_inductive_graph_are_clean(noise):
    graph = planted_graph(inductive=True)
    noisy = perturbed(graph, noise, 1.0, 0)
    hidden = torch.cat([graph.val, graph.test])
    assert torch.equal(noisy.y[hidden], graph.y[hidden])
    assert torch.equal(noisy.x[hidden], graph.x[hidden])
    ids = hidden.numpy()
    assert (noisy.adjacency[ids] != graph.adjacency[ids]).nnz == 0


def test_without_noise_it_is_the_usual_evaluation():
    graph = planted_graph()
    how = {"runs": 2, "recipe": QUICK, "hidden_channels": 8, "device": "cpu"}
    found = gcsr.robustness(
        graph, nodes=9, method="random", noises="pair", levels=1.0, graphs=1, **how
    )
    clean, worst = found.rows
    small = gcsr.condense(graph, nodes=9, method="random", device="cpu")
    assert clean.condensed.scores == gcsr.evaluate(small, graph, **how).scores
    assert clean.whole.scores == gcsr.evaluate_full(graph, **how).scores
    shown = str(found).splitlines()
    assert shown[0] == f"gcn on {graph.name}, condensed to 9 nodes by random"
    assert shown[1].startswith(f"without noise: {clean.condensed}, the whole graph {clean.whole} (")
    assert shown[2].startswith("pair 1: ") and len(shown) == 3
    # All labels are wrong: what is learned is never right.
    assert worst.whole.mean < 30 < clean.whole.mean
    assert worst.difference.mean == pytest.approx(worst.condensed.mean - worst.whole.mean)


@pytest.mark.parametrize("levels", [0.5, (0.5,), {0.5}, np.array([0.5], dtype=np.float32)])
def test_levels_are_one_number_or_several(levels):
    found = gcsr.robustness(
        planted_graph(),
        nodes=9,
        method="random",
        noises="pair",
        levels=levels,
        graphs=1,
        runs=1,
        recipe=gcsr.TrainingRecipe(epochs=2),
    )
    assert [row.level for row in found.rows] == [0.0, 0.5]
    for wrong in (None, "0.5", [0.0], np.array([[0.5]])):
        with pytest.raises(gcsr.InputError, match=r"^levels must be > 0 and <= 1, got"):
            gcsr.robustness(planted_graph(), nodes=9, method="random", levels=wrong)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"noises": None}, "noises must have at least one element, got None"),
        ({"noises": (one for one in ())}, r"noises must have at least one element, got \[\]"),
        ({"noises": []}, r"noises must have at least one element, got \[\]"),
        ({"levels": ()}, r"levels must have at least one element, got \[\]"),
    ],
)
def test_wrong_noises_and_levels_are_one_sentence(changes, sentence):
    with pytest.raises(gcsr.InputError, match=f"^{sentence}"):
        gcsr.robustness(planted_graph(), nodes=9, method="random", **changes)


def test_a_wrong_seed_is_one_sentence():
    with pytest.raises(gcsr.InputError, match="seed must be an integer >= 0, got 'a'"):
        gcsr.robustness(planted_graph(), nodes=9, method="random", seed="a")


def test_command(tmp_path, capsys):
    planted_graph().to_npz(tmp_path / "graph.npz")
    words = ["robustness", str(tmp_path / "graph.npz"), "--nodes=9", "--method=random"]
    words += ["--level=0.5", "--graphs=2", "--runs=1", "--epochs=3", "--device=cpu"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert all(noise in said for noise in NOISES) and "Validation and test labels are clean" in said
    assert main([*words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["noise"] for row in rows] == ["none", *NOISES]
    for wrong, sentence in (
        ("--noise=salt", "--noise must be one of"),
        ("--level=2", "--level must"),
    ):
        assert main([*words, wrong]) == 2
        assert sentence in capsys.readouterr().err
