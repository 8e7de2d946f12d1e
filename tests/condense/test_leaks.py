"""Nothing of the test set, and nothing of hidden nodes, reaches a condensed graph.

Every method with its default settings is in test_method_contract.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import GCSR, MTT, CondensedGraph, Graph, InputError, Random, check_leaks
from gcsr.data.views import View
from helpers import planted_graph, with_other_test_labels

TINY: dict[str, Any] = {
    "nodes": 9,
    "iterations": 4,
    "experts": 2,
    "hidden_channels": 8,
    "iterate": "last",
    "student_steps": 2,
    "max_start": 4,
    "expert_epochs": 8,
}
HONEST = {
    "train": GCSR(prior="train", **TINY),
    "predicted": GCSR(prior="predicted", **TINY),
    "train best-val": GCSR(prior="train", **(TINY | {"iterate": "best-val"})),
    "predicted best-val": GCSR(prior="predicted", **(TINY | {"iterate": "best-val"})),
    "substructure": GCSR(regularizer="substructure", prior="all", **TINY),
    "random prior": GCSR(regularizer="random", **TINY),
    "mtt": MTT(**TINY),
    "mtt best-val": MTT(**(TINY | {"iterate": "best-val"})),
    "random": Random(nodes=9),
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return planted_graph(noise=2.0)


def condensed(condenser, graph: Graph) -> CondensedGraph:
    return condenser.condense(graph, device="cpu")


def assert_same(
    first: CondensedGraph, second: CondensedGraph, chosen_by_validation: tuple[str, ...] = ()
) -> None:
    for part in ("x", "adjacency", "y"):
        assert torch.equal(getattr(first, part), getattr(second, part)), part
    # Edges for unweighted layers are chosen by validation.
    other = {"measured", "dataset", "bytes", *chosen_by_validation}
    story = [
        {k: v for k, v in small.provenance.items() if k not in other} for small in (first, second)
    ]
    assert story[0] == story[1]


@pytest.mark.parametrize("how", HONEST)
def test_test_labels_have_no_say(graph, how):
    check_leaks(HONEST[how], graph)


def test_validation_labels_have_a_say_only_in_choosing(graph):
    y = graph.y.clone()
    y[graph.val] = (y[graph.val] + 1) % 3
    other = replace(graph, y=y)
    for how in ("train", "predicted", "mtt"):
        assert_same(
            condensed(HONEST[how], graph), condensed(HONEST[how], other), ("unweighted_edges",)
        )


def test_prior_over_all_labels_leaks_and_says_so(graph):
    condenser = GCSR(prior="all", **TINY)
    ours, theirs = (condensed(condenser, g) for g in (graph, with_other_test_labels(graph)))
    assert ours.provenance["class_correlation"] != theirs.provenance["class_correlation"]
    assert not torch.equal(ours.adjacency, theirs.adjacency)
    assert ours.leaks_test_labels
    assert ours.provenance["leaks_test_labels"] is True
    assert ours.describe()["leaks_test_labels"] is True


def test_prior_over_all_labels_needs_a_view_that_holds_them(graph):
    with pytest.raises(InputError, match="prior must be 'predicted' or 'train'"):
        condensed(GCSR(prior="all", **TINY), View(graph).condensing())
    leaking = View(graph).condensing(leak_every_label=True)
    assert condensed(GCSR(prior="all", **TINY), leaking).leaks_test_labels
    # A view that holds them does not make an honest prior use them.
    assert_same(condensed(HONEST["train"], leaking), condensed(HONEST["train"], graph))


def hidden_changed(graph: Graph, hidden_channels: torch.Tensor) -> Graph:
    """Other features for hidden nodes, and other edges among them and to the rest."""
    x = graph.x.clone()
    x[hidden_channels] = 5 * torch.randn(hidden_channels.numel(), x.shape[1])
    a = graph.adjacency.toarray()
    ids = hidden_channels.numpy()
    noise = (np.random.default_rng(0).random(a.shape) < 0.5).astype(np.float32)
    noise = np.triu(noise, 1) + np.triu(noise, 1).T
    a[ids] = noise[ids]
    a[:, ids] = noise[:, ids]
    other = Graph.from_arrays(
        x,
        sp.csr_array(a),
        graph.y,
        train=graph.train,
        val=graph.val,
        test=graph.test,
        inductive=True,
        name=graph.name,
    )
    assert other.num_edges != graph.num_edges
    return other


@pytest.mark.parametrize("how", HONEST)
def test_inductive_test_nodes_have_no_say(how):
    graph = planted_graph(noise=2.0, inductive=True)
    other = hidden_changed(graph, graph.test)
    assert_same(condensed(HONEST[how], graph), condensed(HONEST[how], other))


@pytest.mark.parametrize("how", [how for how in HONEST if "best-val" not in how])
def test_inductive_validation_nodes_have_no_say_without_choosing(how):
    graph = planted_graph(noise=2.0, inductive=True)
    other = hidden_changed(graph, torch.cat([graph.val, graph.test]))
    assert_same(condensed(HONEST[how], graph), condensed(HONEST[how], other), ("unweighted_edges",))


def test_prior_over_all_labels_of_an_inductive_graph_is_the_training_prior():
    graph = planted_graph(noise=2.0, inductive=True)
    ours = condensed(GCSR(prior="all", **TINY), graph)
    assert not ours.leaks_test_labels
    expected = condensed(HONEST["train"], graph).provenance["class_correlation"]
    assert ours.provenance["class_correlation"] == expected


class Unseeded(Random):
    """Draws from the generator of the process."""

    name, summary = "unseeded", "random numbers without a seed"

    def run(self, ctx):
        return [replace(made, x=made.x + torch.rand_like(made.x)) for made in super().run(ctx)]


def test_an_unseeded_method_is_not_said_to_read_test_labels():
    with pytest.raises(AssertionError) as caught:
        check_leaks(Unseeded(nodes=9), planted_graph())
    assert str(caught.value) == (
        "unseeded gives another x for the same seed; draw random numbers from"
        " make_generator(seed, ...) only."
    )


def test_the_check_refuses_what_it_cannot_check():
    graph = planted_graph()
    with pytest.raises(InputError, match=r"method must be an instance such as .* got str"):
        check_leaks("random", graph)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"graph must be a gcsr\.Graph, got a PyG Data"):
        check_leaks(Random(nodes=9), graph.to_pyg())
    with pytest.raises(InputError, match="test nodes of more than one class, got 0"):
        check_leaks(Random(nodes=9), replace(graph, test=graph.test[:0]))
