"""A scaling of features, chosen by validation."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr import InputError
from gcsr.training.fit import TrainingRecipe
from helpers import planted_graph, with_other_test_labels


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


@pytest.fixture
def brief(monkeypatch):
    scaling = importlib.import_module("gcsr.auto.scaling")
    monkeypatch.setattr(scaling, "RECIPE", TrainingRecipe(epochs=30, validate_every=5))


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("inductive", [False, True])
def test_the_scaling_that_validates_best_is_chosen(inductive):
    graph = planted_graph(inductive=inductive)
    # One column drowns the others, unless columns are brought to the same size.
    x = graph.x.clone()
    x[:, 0] = 1e3 * torch.randn(x.shape[0], generator=torch.Generator().manual_seed(0))
    choice = gcsr.choose_scaling(replace(graph, x=x), device="cpu")
    assert choice.features == "standardize"
    assert choice.validation["standardize"] == max(choice.validation.values())
    assert set(choice.validation) == {"keep", "rows", "standardize"}
    other = gcsr.choose_scaling(with_other_test_labels(replace(graph, x=x)), device="cpu")
    assert other == choice


def test_a_graph_that_is_scaled_already_is_refused(graph):
    with pytest.raises(InputError, match=r"graph must have features 'keep', .*, got 'rows'"):
        gcsr.choose_scaling(graph.scaled("rows"))
    with pytest.raises(InputError, match=r"graph must be a gcsr\.Graph"):
        gcsr.choose_scaling("cora")  # type: ignore[arg-type]


def test_a_number_that_is_not_finite_is_not_stored(graph, tmp_path):
    small = gcsr.condense(graph, nodes=6, method="random")
    spoilt = replace(small, provenance=small.provenance | {"rate": float("inf")})
    with pytest.raises(InputError, match="provenance must have finite numbers"):
        spoilt.save(tmp_path / "small.safetensors")
