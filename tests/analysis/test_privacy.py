"""Membership inference and memorized rows: known cases, references and what the command says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import gcsr
from gcsr.analysis import privacy
from gcsr.analysis.privacy import auc_and_caught, likelihood_ratio
from gcsr.cli.app import main
from gcsr.evaluation.trial import NetworkTester
from gcsr.models import registry
from gcsr.utils.progress import silent
from helpers import planted_graph

QUICK = {"recipe": gcsr.TrainingRecipe(epochs=8), "hidden_channels": 8, "device": "cpu"}


def test_auc_and_caught():
    random = np.random.default_rng(0)
    members, others = random.normal(0.5, size=300).round(1), random.normal(size=300).round(1)
    auc, caught = auc_and_caught(members, others)
    labels = np.repeat([1, 0], 300)
    assert auc == pytest.approx(roc_auc_score(labels, np.concatenate([members, others])))
    threshold = np.sort(others)[-4]  # three of 300 may be above it
    assert caught == (members > threshold).mean()
    assert auc_and_caught(members + 9, others) == (1.0, 1.0)


def test_the_likelihood_ratio_is_that_of_two_normals():
    generator = torch.Generator().manual_seed(0)
    shadows = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    inside = torch.tensor([[1, 0, 1, 0], [0, 1, 0, 1]] * 3, dtype=torch.bool)
    phi = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    expected = np.zeros((2, 4))
    for which, sign in ((inside, 1), (~inside, -1)):
        values = [shadows[which[:, node], node].numpy() for node in range(4)]
        # One variance for all nodes: 12 values, four means.
        spread = np.sqrt(sum(((v - v.mean()) ** 2).sum() for v in values) / (12 - 4))
        means = np.array([v.mean() for v in values])
        expected += sign * norm.logpdf(phi.numpy(), means, spread)
    assert likelihood_ratio(phi, shadows, inside).numpy() == pytest.approx(expected)


def test_labels_that_can_only_be_memorized_give_training_nodes_away():
    graph = planted_graph()
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(graph.num_nodes, 200, generator=generator)
    labels = torch.randint(graph.num_classes, (graph.num_nodes,), generator=generator)
    hard = replace(graph, x=noise, y=torch.where(graph.y < 0, graph.y, labels))
    small = gcsr.condense(hard, nodes=9, method="random", device="cpu")
    how = QUICK | {"recipe": gcsr.TrainingRecipe(epochs=60, validate_every=60)}
    found = gcsr.privacy(small, hard, model="mlp", runs=2, shadows=8, **how)
    whole, own = found.attacks["whole"], found.attacks["condensed"]
    assert whole.loss_auc.mean > 95 and whole.ratio_auc.mean > 90 and whole.gap.mean > 40
    # Nine nodes cannot give all of them away.
    assert own.loss_auc.mean < whole.loss_auc.mean - 15
    assert found.memorization.copies == 9 and found.memorization.nearer_to_training == 100


def test_scores_of_shadow_networks_are_those_of_their_nodes(monkeypatch):
    graph = planted_graph()
    assert graph.test.min() < graph.train.max()  # numbers of both are mixed
    recipe, device = gcsr.TrainingRecipe(epochs=1), torch.device("cpu")
    trial = NetworkTester(registry.testing_model("sgc", 4), graph, device, recipe, 0)
    asked: list[torch.Tensor] = []

    def numbers(own, fitted, targets):
        asked.append(torch.cat([target.nodes for target in targets]))
        return asked[-1][None].double(), None

    monkeypatch.setattr(privacy, "_scores", numbers)
    members, others = privacy.attacked_nodes(graph, 0)
    phi, inside = privacy.shadow_scores(members, others, 4, trial, silent)
    ids = torch.cat([graph.train[members], graph.test[others]])
    assert torch.equal(phi, ids.double().expand(4, -1))
    for nodes, own in zip(asked, inside, strict=True):
        assert set(nodes[: int(own.sum())].tolist()) == set(ids[own].tolist())


def test_the_same_seed_gives_the_same_numbers_and_the_card_has_them():
    graph = planted_graph()
    small = gcsr.condense(graph, nodes=9, method="clusters", device="cpu")
    first, second = (gcsr.privacy(small, graph, runs=1, shadows=4, **QUICK) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    json.dumps(first.to_dict())
    assert str(first).splitlines() == list(first.sentences)
    assert first.memorization.copies == 0
    card = small.card(privacy=first.sentences)
    assert "membership inference" in card and "0 of 9 condensed rows" in card
    assert "`gcsr privacy FILE` measures it" in small.card()
    assert "not anonymous" in first.statement


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted_graph().to_npz("graph.npz")
    assert (
        main(["condense", "graph.npz", "--nodes=9", "--method=random", "--out=s.safetensors"]) == 0
    )
    words = [
        "privacy",
        "s.safetensors",
        "--data=graph.npz",
        "--epochs=4",
        "--runs=1",
        "--shadows=4",
    ]
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "9 of 9 condensed rows equal a training row" in said and "not anonymous" in said
    assert main([*words, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["attacks"]) == {"whole", "condensed", "random"}
    assert main([*words, "--shadows=2"]) == 2
    page = ["report", "s.safetensors", "--data=graph.npz", "--out=p.html", "--no-evaluate"]
    assert main([*page, "--tsne-nodes=0", "--epochs=4", "--privacy"]) == 0
    text = (tmp_path / "p.html").read_text()
    assert "What the file discloses" in text and "likelihood ratio, 16 shadow" in text
