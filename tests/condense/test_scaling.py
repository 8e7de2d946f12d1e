"""A scaling of features, chosen by validation."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import gcsr
from gcsr import InputError
from helpers import planted_graph, with_other_test_labels


@pytest.fixture(scope="module")
def graph():
    return planted_graph()


@pytest.mark.parametrize("inductive", [False, True])
def test_the_scaling_that_validates_best_is_chosen(inductive):
    graph = planted_graph(inductive=inductive)
    # One column drowns the others, unless columns are brought to the same size.
    x = graph.x.clone()
    x[:, 0] = 1e5 * torch.randn(x.shape[0], generator=torch.Generator().manual_seed(0))
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


# -- a scale that is extreme ------------------------------------------------------------------------


def _wild(graph, factor=1e9):
    x = graph.x.clone()
    x[:, 0] = factor * torch.randn(x.shape[0], generator=torch.Generator().manual_seed(0))
    return replace(graph, x=x)


def test_a_column_of_extreme_scale_is_said_and_scaled(graph):
    wild = _wild(graph)
    with pytest.warns(gcsr.InputWarning, match=r"column 0: up to .*e\+09.*features='standardize'"):
        small = gcsr.condense(wild, nodes=6, method="random", device="cpu")
    expected = gcsr.condense(wild, nodes=6, method="random", device="cpu", features="standardize")
    assert torch.equal(small.x, expected.x)
    assert small.provenance["scaling"]["chosen"] == "standardize"
    assert any("column 0" in note for note in small.provenance["notes"])
    recipe = gcsr.TrainingRecipe(epochs=60)
    scores = [
        gcsr.evaluate(one, real, runs=1, recipe=recipe, device="cpu").mean
        for one, real in (
            (small, wild),  # scaled as the condensed graph was
            (small, wild.scaled("standardize")),
            (gcsr.condense(wild, nodes=6, method="random", device="cpu", features="keep"), wild),
        )
    ]
    assert scores[0] == scores[1] > scores[2] + 20
    with pytest.raises(InputError, match="feature scaling"):
        gcsr.evaluate(small, wild.scaled("rows"))


def test_an_unusual_scale_of_all_columns_is_said(graph):
    with pytest.warns(gcsr.InputWarning, match="unusual scale"):
        gcsr.condense(replace(graph, x=graph.x * 1e7), nodes=6, method="random")


def test_usual_scales_are_left_alone(graph, recwarn):
    counts = replace(graph, x=(graph.x.abs() * 20).round())
    words = replace(graph, x=(graph.x > 1).float())
    empty = replace(graph, x=torch.zeros_like(graph.x))
    for usual in (
        graph,
        counts,
        words,
        empty,
        graph.scaled("standardize"),
        _wild(graph).scaled("rows"),
    ):
        small = gcsr.condense(usual, nodes=6, method="random")
        assert "scaling" not in small.provenance
    assert not [one for one in recwarn if issubclass(one.category, gcsr.InputWarning)]


def test_features_of_condense(graph):
    auto = gcsr.condense(graph, nodes=6, method="random", features="auto", device="cpu")
    assert auto.provenance["scaling"] == gcsr.choose_scaling(graph, device="cpu").provenance
    assert (
        gcsr.condense(graph.scaled("rows"), nodes=6, features="rows", method="random").num_nodes
        == 6
    )
    with pytest.raises(InputError, match="features must be one of None, auto, keep"):
        gcsr.condense(graph, nodes=6, features="log")
    with pytest.raises(InputError, match="scaled by 'rows' already"):
        gcsr.condense(graph.scaled("rows"), nodes=6, features="standardize")
