"""Every published number has settings that the methods accept, and they are the right ones."""

from __future__ import annotations

from functools import cache

import pytest
from paper_helpers import QUICK

from gcsr.benchmarking import cells
from gcsr.benchmarking.cells import WHOLE_GRAPH, Cell, Protocol, cell
from gcsr.datasets.registry import DATASETS
from gcsr.methods.base import Condenser
from gcsr.models.registry import testing_model as model_of
from gcsr.paper import published
from gcsr.paper.experiments import EXPERIMENTS, Line, experiment
from gcsr.utils.errors import InputError

NAMES = [
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "mpi",
    "hops",
    "regularizer",
    "tau",
    "gamma",
    "alpha",
    "beta",
    "ccns",
    "adjacency",
    "tsne",
    "init-curves",
]
PAPER = Protocol()


@cache
def authors(one: Cell) -> Condenser:
    """Built once for all tests: there are hundreds."""
    return one.condenser(PAPER)


def only(name: str, label: str, dataset: str, nodes: int | None = None) -> Line:
    (found,) = [
        line
        for line in experiment(name).lines
        if (line.label, line.dataset) == (label, dataset) and nodes in (None, line.nodes)
    ]
    return found


def settings(line: Line) -> dict[str, object]:
    (one,) = line.cells
    return authors(one).settings


def test_the_list():
    assert list(EXPERIMENTS) == NAMES
    assert all(one.name == name for name, one in EXPERIMENTS.items())
    with pytest.raises(InputError, match=r"name must be one of table1"):
        experiment("table9")


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_accepted_by_its_method(name):
    for one in experiment(name).cells:
        assert one.dataset in DATASETS
        if not one.condenses:
            continue
        full, short = authors(one), one.condenser(QUICK)
        assert full.nodes == short.nodes == one.nodes
        assert getattr(short, "iterations", 0) <= 5 and getattr(short, "experts", 1) == 1
        # With the rate of the paper, experts of a quick run learn nothing.
        assert getattr(short, "expert_lr", 1.0) >= 0.05
        assert 8 < getattr(short, "expert_epochs", 25) <= 25
        # Only what the paper does by its prior leaks, and only with it.
        assert full.leaks_test_labels == (getattr(full, "prior", "") == "all" and _by_prior(full))
        if one.analysis:
            assert one.analysis == name and one.test == ""
        else:
            model_of(one.test)


def _by_prior(condenser: object) -> bool:
    return getattr(condenser, "regularizer", "") == "prior"


@pytest.mark.parametrize("name", NAMES)
def test_every_leaking_line_stands_beside_one_that_does_not_leak(name):
    for line in experiment(name).lines:
        if DATASETS[line.dataset].inductive or not all(c.condenses for c in line.cells):
            assert not line.without_leak
            continue
        leaks = any(authors(c).leaks_test_labels for c in line.cells)
        assert bool(line.without_leak) == leaks
        assert not any(authors(c).leaks_test_labels for c in line.without_leak)
        assert [c.test for c in line.without_leak] == [c.test for c in line.cells if leaks]


def test_what_gradient_matching_cannot_do_is_said():
    lines = [line for one in EXPERIMENTS.values() for line in one.lines if not line.cells]
    assert {line.label for line in lines} == {
        f"{method} with {model}"
        for method in ("gcond", "sgdd")
        for model in ("appnp", "cheby", "sage")
    }
    assert all(line.missing and line.published for line in lines)


def test_counts():
    published_lines = {
        name: sum(line.published is not None for line in one.lines)
        for name, one in EXPERIMENTS.items()
    }
    assert published_lines == {
        "table1": 30,
        "table2": 155,
        "table3": 20,
        "table4": 140,
        "table5": 15,
        "mpi": 10,
        "hops": 6,
        "regularizer": 6,
        "tau": 5,
        "gamma": 4,
        "alpha": 10,
        "beta": 10,
        "ccns": 9,
        "adjacency": 0,
        "tsne": 0,
        "init-curves": 0,
    }
    whole = [line for line in experiment("table2").lines if line.label == "whole graph"]
    assert [line.cells[0].method for line in whole] == [WHOLE_GRAPH] * 5


def test_settings_of_the_authors():
    assert settings(only("table2", "gcsr", "citeseer", 120))["alpha"] == 10.0
    passed = settings(only("table5", "MPI", "reddit"))
    assert (passed["num_hops"], passed["feature_lr"], passed["iterations"]) == (3, 1e-3, 20000)
    assert settings(only("table5", "neither", "reddit"))["feature_lr"] == 5e-3
    appnp = settings(only("table3", "gcsr with appnp", "cora"))
    assert (appnp["iterations"], appnp["num_hops"], appnp["model"]) == (4000, 4, "appnp")
    assert settings(only("mpi", "gcond+mpi", "citeseer"))["num_hops"] == 4
    assert only("mpi", "sfgc+mpi", "citeseer").nodes == 120
    hops = settings(only("hops", "num_hops = 10", "citeseer"))
    assert (hops["num_hops"], hops["iterations"]) == (10, 6000) and "alpha" not in hops
    assert settings(only("regularizer", "random", "reddit"))["regularizer"] == "random"
    assert settings(only("alpha", "alpha = 0", "ogbn-arxiv", 90))["beta"] == 1.0
    curve = settings(only("init-curves", "k = 2, 1,500 iterations", "citeseer"))
    assert (curve["num_hops"], curve["iterations"]) == (2, 1500)


def test_pictures_are_of_the_graphs_of_the_paper():
    graphs = {
        name: {(c.method, c.dataset, c.nodes) for c in experiment(name).cells}
        for name in ("ccns", "adjacency", "tsne")
    }
    methods = ("gcond", "sgdd", "gcsr")
    assert graphs["ccns"] == {(method, "citeseer", 120) for method in methods} | {
        (WHOLE_GRAPH, "citeseer", None)
    }
    assert graphs["adjacency"] == {("gcsr", "citeseer", 60)}
    assert graphs["tsne"] == {(method, "cora", 70) for method in (*methods, "sfgc")}


def test_test_models_of_table_4():
    assert only("table4", "gcsr on sgc", "cora").cells[0].test == "sgc"
    assert only("table4", "gcsr on sgc", "reddit").cells[0].test == "sgc-linear"
    assert only("table4", "gcsr on appnp", "reddit").cells[0].test == "appnp-linear"
    assert only("table4", "gcsr on gcn", "reddit").cells[0] == cell("gcsr", "reddit", 153)
    arxiv = {
        line.label: line.cells[0]
        for line in experiment("table4").lines
        if line.dataset == "ogbn-arxiv" and len(line.cells) == 1 and line.label.startswith("gcsr")
    }
    tests = [arxiv[f"gcsr on {model}"].test for model in published.TEST_MODELS]
    assert tests == [
        "mlp",
        "appnp-linear",
        "cheby-paper",
        "gcn-linear",
        "sage-paper-linear",
        "sgc-linear",
    ]
    assert {one.cut for one in arxiv.values()} == {0.01}
    average = only("table4", "sfgc, average without MLP", "flickr")
    tests = [one.test for one in average.cells]
    assert tests == ["appnp", "cheby-paper", "gcn", "sage-paper", "sgc"]
    assert average.published == published.TABLE4["flickr"]["sfgc"]["average"]
    shared = {one.condensation for one in experiment("table4").cells if one.dataset == "cora"}
    assert len(shared) == 5  # four methods, and one more prior


def test_a_key_is_what_decides_the_outcome(monkeypatch):
    one = cell("gcsr", "citeseer", 60)

    def key(other: Cell, protocol: Protocol = PAPER, data: str = "d") -> str:
        return other.key(protocol, data)

    assert key(cell("gcsr", "citeseer", 60, tau=0.9)) == key(one)  # the authors' tau
    others: list[Cell] = [
        cell("gcsr", "citeseer", 60, tau=0.8),
        cell("gcsr", "citeseer", 61),
        cell("gcsr", "citeseer", 60, test="sgc"),
        cell("mtt", "citeseer", 60),
        cell("whole", "citeseer", None),
    ]
    keys = {key(one), key(one, data="e"), *(key(other) for other in others)}
    keys |= {key(one, Protocol(4, 10)), key(one, Protocol(5, 9)), key(one, QUICK)}
    monkeypatch.setattr(cells, "__version__", "0.0.0")
    keys |= {key(one)}
    assert len(keys) == 11


def test_a_claim_is_of_condensed_graphs():
    """Cells of any table that share graphs are measured by one process."""
    one = cell("gcsr", "citeseer", 60)
    assert one.claim(PAPER) == cell("gcsr", "citeseer", 60, tau=0.9, test="mlp").claim(PAPER)
    assert one.claim(PAPER) == one.claim(Protocol(5, 3))
    others = [cell("gcsr", "citeseer", 60, tau=0.8), cell("gcsr", "citeseer", 61)]
    claims = {one.claim(PAPER), one.claim(Protocol(4, 10)), *(c.claim(PAPER) for c in others)}
    assert len(claims) == 4


@pytest.mark.parametrize("graphs, runs", [(0, 1), (1, 0), (True, 1), (1, 1.5)])
def test_impossible_protocols(graphs, runs):
    with pytest.raises(InputError, match=r"(graphs|runs).* >= 1"):
        Protocol(graphs, runs)
