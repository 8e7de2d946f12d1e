"""Architecture search on a condensed graph: its space, its clock, its ranking and its winner."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from torch import nn

import gcsr
from gcsr.cli.app import main
from gcsr.evaluation.intervals import rank_correlation
from gcsr.models.registry import testing_model as model_of
from gcsr.models.sparse import SparseTopology
from gcsr.tuning.architecture import Suggestions, forward_operations
from helpers import planted_graph, with_other_test_labels

GRAPH = planted_graph()
SMALL = gcsr.condense(GRAPH, nodes=9, method="random", device="cpu")
HOW = {
    "sampler": "random",
    "recipe": gcsr.TrainingRecipe(epochs=6, validate_every=3),
    "device": "cpu",
    "hidden_channels": "8,16",
    "progress": False,
}


class Linear(nn.Module):
    """A module of a user."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(GRAPH.num_features, width), nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


def searched(*space: object, **changes) -> gcsr.SearchResult:
    how = {key: one for key, one in HOW.items() if not space or key != "hidden_channels"}
    return gcsr.search(SMALL, GRAPH, *space, **(how | {"trials": 4} | changes))


def test_the_winner_is_the_finalist_that_validates_best_on_the_whole_graph():
    found = searched(compare=True, trials=6, finalists=2)
    assert list(found.rankings) == ["condensed", "random", "whole"]
    whole, small = found.rankings["whole"], found.small
    order = sorted(range(6), key=lambda i: -small.validation[i])
    assert list(small.finalists) == order[:2]
    # Finalists are trained as the search on the whole graph trains them.
    assert small.finalists == {i: whole.validation[i] for i in order[:2]}
    assert small.winner == max(small.finalists, key=small.finalists.get)
    for one in found.rankings.values():
        assert one.regret == max(whole.validation) - whole.validation[one.winner]
        assert one.tau == pytest.approx(kendalltau(one.validation, whole.validation)[0])
    assert small.bytes >= found.rankings["random"].bytes
    # The clock counts condensing and the finalists; nothing else.
    condensing = SMALL.provenance["measured"]["seconds"]
    assert small.total_seconds == pytest.approx(
        condensing + sum(small.seconds) + small.final_seconds
    )
    assert whole.final_seconds == 0 and small.final_seconds > 0
    assert "pays" in found.verdict or "does not pay" in found.verdict
    assert json.loads(json.dumps(found.to_dict()))["winner"] == found.settings
    assert str(found).startswith("model=") and str(found).endswith(found.verdict)
    page = gcsr.report(found)
    assert "Kendall" in page and f"configuration {small.winner}" in page


def test_test_labels_decide_nothing_and_the_seed_decides_everything():
    other = gcsr.search(SMALL, with_other_test_labels(GRAPH), trials=4, check_origin=False, **HOW)
    same = searched()
    assert other.configurations == same.configurations
    assert other.small.validation == same.small.validation
    assert other.small.winner == same.small.winner
    assert other.small.test != same.small.test
    assert searched(seed=1).configurations != same.configurations


def test_spaces_of_the_user():
    named = searched({"narrow": lambda: Linear(2), "wide": lambda: Linear(9)}, lr=0.01, trials=8)
    assert {one["model"] for one in named.configurations} == {"narrow", "wide"}
    assert {one["lr"] for one in named.configurations} == {0.01}
    widths = []

    def make(trial) -> nn.Module:
        widths.append(trial.suggest_int("width", 2, 4))
        return Linear(widths[-1])

    found = searched(make, runs=1, trials=3)
    # Suggested once, then made again for the training with the same width.
    assert {one["width"] for one in found.configurations} == set(widths)
    deep = searched({"model": "gcn,mlp", "hidden_channels": 8, "num_layers": 3}, trials=8, runs=1)
    layers = {one["model"]: one.get("num_layers") for one in deep.configurations}
    assert layers == {"gcn": 3, "mlp": None}


@pytest.mark.needs("optuna")
def test_optuna_proposes():
    found = searched(sampler="tpe", trials=3)
    assert found.configurations == searched(sampler="tpe", trials=3).configurations


def test_a_repeated_configuration_is_trained_once():
    found = searched(
        {"model": "mlp", "hidden_channels": 8, "dropout": 0, "lr": 0.1, "weight_decay": 0}
    )
    assert len(set(found.small.validation)) == 1
    assert found.small.seconds[1:] == (0.0, 0.0, 0.0)
    assert len(found.small.finalists) == 1


@pytest.mark.parametrize(
    ("space", "changes", "said"),
    [
        ({"width": 3}, {}, "space must be one of model"),
        ({"model": "gcm"}, {}, "model must be one of"),
        ({"a": lambda: None, "lr": 1}, {}, "got both"),
        (lambda trial: 3, {}, "must return a torch.nn.Module, got int"),
        (lambda: None, {}, r"function of a trial .*, but <lambda>\(trial\) raised TypeError: .*"),
        (5, {}, "got int"),
        (None, {"lr": "-1..1"}, "lr"),
        (None, {"num_layers": 3, "model": "mlp"}, "num_layers must be 2"),
        (None, {"trials": 0}, "trials"),
        (None, {"sampler": "grid"}, "sampler must be one of tpe, random"),
    ],
)
def test_refused(space, changes, said):
    with pytest.raises(gcsr.InputError, match=said):
        searched(space, **changes)


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(gcsr.InputError, match="gcsr\\[tune\\]"):
        searched(sampler="tpe")
    assert searched(trials=1).configurations


def test_rank_correlation_and_its_interval():
    random = np.random.default_rng(0)
    a = random.normal(size=40)
    b = a + random.normal(size=40)
    tau, (low, high) = rank_correlation(a, b)
    assert tau == pytest.approx(kendalltau(a, b)[0])
    assert low < tau < high and high - low < 0.5
    assert rank_correlation(a, a) == (1.0, (1.0, 1.0))
    assert rank_correlation(a, np.ones(40)) == (None, None)


def test_operations_of_a_gcn_by_hand():
    model = replace(model_of("gcn"), hidden_channels=16)
    x = torch.rand(GRAPH.num_nodes, GRAPH.num_features)
    prepared = model.prepare(x, SparseTopology(GRAPH.adjacency, torch.device("cpu")))
    params = model.init(GRAPH.num_features, 3, torch.Generator().manual_seed(0))
    n, d = x.shape
    entries = GRAPH.adjacency.nnz + n
    expected = 2 * (n * d * 16 + n * 16 * 3 + entries * 3 + n * (16 + 3))
    assert forward_operations(prepared, params) == expected


def test_suggestions_are_in_range_and_replayed():
    trial = Suggestions({}, np.random.default_rng(0))
    for i in range(50):
        assert 2 <= trial.suggest_int(f"a{i}", 2, 9, log=True) <= 9
        assert trial.suggest_int(f"b{i}", 2, 9, step=3) in (2, 5, 8)
        assert 0.1 <= trial.suggest_float(f"c{i}", 0.1, 10, log=True) <= 10
        assert trial.suggest_float(f"d{i}", 0, 1, step=0.5) in (0, 0.5, 1)
    assert Suggestions(trial.params).suggest_int("a3", 0, 1) == trial.params["a3"]
    drawn = {trial.suggest_float(f"e{i}", 0, 0.3, step=0.1) for i in range(40)}
    assert drawn == {0.0, 0.1, 0.2, 0.3}


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    GRAPH.to_npz("graph.npz")
    assert (
        main(["condense", "graph.npz", "--nodes=9", "--method=random", "--out=s.safetensors"]) == 0
    )
    words = ["search", "s.safetensors", "--data=graph.npz", "--trials=2", "--epochs=4", "--compare"]
    words += ["--set=hidden_channels=8", "--sampler=random", "--device=cpu"]
    capsys.readouterr()
    assert main([*words, "--out=page.html"]) == 0
    said = capsys.readouterr().out
    assert "random subset" in said and "the same configurations on the whole graph" in said
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert main([*words, "--set=depth=3"]) == 2
    assert "--set must be one of model" in capsys.readouterr().err
