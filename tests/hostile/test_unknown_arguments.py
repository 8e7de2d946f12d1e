"""Arguments that a public function does not have: one sentence that says what is meant."""

from __future__ import annotations

from dataclasses import fields

import pytest

import gcsr
from gcsr.utils.errors import RECIPE_FIELDS, suggestion
from helpers import planted_graph

GRAPH = planted_graph()
SMALL = gcsr.condense(GRAPH, nodes=6, method="random", device="cpu")


@pytest.fixture(params=["Graph", "Data"])
def graph(request):
    return GRAPH if request.param == "Graph" else GRAPH.to_pyg()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"node": 30},
            r"^node is neither an argument of gcsr\.condense nor a setting of auto \(did you mean"
            r" nodes\?\); arguments: graph, nodes, .*; settings: budget, ",
        ),
        ({"nodes": 6, "methd": "mtt"}, r"\(did you mean method\?\)"),
        (
            {"nodes": 6, "method": "mtt", "iteration": 2},
            r"^iteration is neither .* setting of mtt \(did you mean iterations\?\)",
        ),
        ({"node": 6, "method": gcsr.Random(nodes=6)}, r"\(did you mean nodes\?\)"),
    ],
)
def test_condense_says_what_is_meant(graph, settings, sentence):
    with pytest.raises(gcsr.InputError, match=sentence):
        gcsr.condense(graph, **settings)


def test_options_of_reading_are_suggested_where_they_can_be_used():
    with pytest.raises(gcsr.InputError, match=r"^undirectd is .* \(did you mean undirected\?\)"):
        gcsr.condense(GRAPH.to_pyg(), nodes=6, undirectd=True)
    with pytest.raises(gcsr.InputError, match="undirected cannot be used"):
        gcsr.condense(GRAPH, nodes=6, undirected=True)


@pytest.mark.parametrize("graph", ["cora", None])
def test_options_do_not_hide_that_it_is_no_graph(graph):
    with pytest.raises(gcsr.InputError, match=r"^graph must be a gcsr\.Graph, got "):
        gcsr.condense(graph, nodes=6, undirected=True)


def test_one_graph_has_one_seed():
    with pytest.raises(gcsr.InputError, match=r"^seeds must be given to gcsr\.condense_many"):
        gcsr.condense(GRAPH, nodes=6, seeds=[1])


CALLS = {
    "condense": (lambda: gcsr.condense(GRAPH, 30), r"only graph without a name, got 2 values"),
    "condense nothing": (lambda: gcsr.condense(nodes=3), r"^graph must be given to gcsr\.condense"),
    "evaluate": (
        lambda: gcsr.evaluate(SMALL, GRAPH, run=2),
        r"^run is not an argument of gcsr\.evaluate \(did you mean runs\?\); accepted: small, ",
    ),
    "evaluate one": (lambda: gcsr.evaluate(SMALL), r"^graph must be given to gcsr\.evaluate"),
    "epochs": (
        lambda: gcsr.evaluate(SMALL, GRAPH, epochs=100),
        r"^epochs is not an argument .*; give recipe=gcsr\.TrainingRecipe\(epochs=\.\.\.\)\.$",
    ),
    "hidden": (lambda: gcsr.evaluate(SMALL, GRAPH, hidden=2), r"did you mean hidden_channels\?"),
    "evaluate_full": (lambda: gcsr.evaluate_full(GRAPH, modle="gcn"), r"did you mean model\?"),
    "train": (lambda: gcsr.train(SMALL, lr=0.1), r"TrainingRecipe\(lr=\.\.\.\)"),
    "analyze": (lambda: gcsr.analyze(SMALL, GRAPH, thresh=1), r"did you mean threshold\?"),
    "report": (lambda: gcsr.report(SMALL, GRAPH, subset=1), r"did you mean subsets\?"),
    "cost": (lambda: gcsr.cost(SMALL, GRAPH, sparse="none"), r"did you mean sparsify\?"),
    "privacy": (lambda: gcsr.privacy(SMALL, GRAPH, shadow=9), r"did you mean shadows\?"),
    "robustness": (
        lambda: gcsr.robustness(GRAPH, nodes=6, level=[0.1]),
        r"^level is neither an argument of gcsr\.robustness nor .* \(did you mean levels\?\)",
    ),
    "tune": (lambda: gcsr.tune(GRAPH, nodes=6, trial=3), r"gcsr\.tune .*did you mean trials\?"),
    "search": (lambda: gcsr.search(SMALL, GRAPH, trail=3), r"gcsr\.search .*did you mean trials\?"),
    "benchmark": (
        lambda: gcsr.benchmark(data="digits", method="random", nodes=10),
        r"^method is neither .* of the grid \(did you mean methods\?\)",
    ),
    "benchmark nothing": (gcsr.benchmark, r"^data must be given to gcsr\.benchmark"),
    "benchmark an object": (lambda: gcsr.benchmark(data=GRAPH), r"got a gcsr\.Graph.*to_npz"),
    "update": (lambda: gcsr.update(SMALL, GRAPH, node=6), r"did you mean nodes\?"),
    "sparsify": (lambda: gcsr.sparsify(SMALL, GRAPH, rules="none"), r"did you mean rule\?"),
    "load": (lambda: gcsr.load("digits", feature="keep"), r"did you mean features\?"),
    "method": (lambda: gcsr.Random(nodes=6).condense(GRAPH, sed=1), r"did you mean seed\?"),
    "seeds": (lambda: gcsr.condense_many(GRAPH, nodes=6, method="random", seeds=3), "got 3"),
    "class": (
        lambda: gcsr.condense(GRAPH, method=gcsr.Random),
        "exactly one of nodes and ratio must",
    ),
    "save": (lambda: SMALL.save(None), "path must be the name of a file or folder, got NoneType"),
    "npz": (lambda: GRAPH.to_npz(None), "path must be the name of a file or folder, got NoneType"),
    "folder": (lambda: GRAPH.to_folder(3), "path must be the name of a file or folder, got int"),
    "view": (lambda: gcsr.View(GRAPH.to_pyg()), r"graph must be a gcsr\.Graph, got a PyG Data"),
    "inductive": (
        lambda: gcsr.condense(GRAPH.to_pyg(), nodes=6, inductive="no"),
        "inductive must be true or false, got 'no'",
    ),
    "inductive of a name": (
        lambda: gcsr.load("digits", inductive="no"),
        "inductive must be true or false, got 'no'",
    ),
    "undirected": (
        lambda: gcsr.load(GRAPH.to_pyg(), undirected="no"),
        "undirected must be true or false, got 'no'",
    ),
    "base class": (
        lambda: gcsr.condense(GRAPH, nodes=6, method=gcsr.Condenser),
        r"Condenser must define run\(self, ctx\)\.",
    ),
    "number": (lambda: gcsr.condense(GRAPH, nodes=6, method=5), "method must be a name or an inst"),
    "file": (
        lambda: gcsr.CondensedGraph.load(GRAPH),
        "path must be the name of a file or folder, got Graph",
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_public_function_says_what_is_meant(call):
    action, sentence = CALLS[call]
    with pytest.raises(gcsr.InputError, match=sentence) as found:
        action()
    assert "\n" not in str(found.value)


def test_fields_of_the_recipe_are_known():
    assert tuple(field.name for field in fields(gcsr.TrainingRecipe)) == RECIPE_FIELDS


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("gnc", "gcn"),
        ("sgcn", "sgc"),
        ("appn", "appnp"),
        ("hidden", "hidden_channels"),
        ("alpha", None),
        ("zz", None),
    ],
)
def test_swapped_letters_are_one_typo(given, meant):
    accepted = ["mlp", "sgc", "gcn", "appnp", "gcond", "hidden_channels", "graph"]
    assert suggestion(given, accepted) == (f" (did you mean {meant}?)" if meant else "")
