"""What a page holds, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

import jinja2
import numpy as np
import pytest
import torch
from report_helpers import EVIL, FAST, data_of, dense_result, evil, result

from gcsr import (
    CondensedGraph,
    Graph,
    InputError,
    analyze,
    condense,
    evaluate,
    evaluate_full,
    report,
)
from gcsr.analysis.nearest import NodeMap
from gcsr.evaluation.origin import PSEUDO_LABELS_NOTE
from gcsr.reporting.drawing import (
    MOST_EDGES,
    arranged,
    fitted,
    gray,
    map_data,
    shrunk,
    strongest_edges,
)
from gcsr.reporting.page import Page, html, smoothed, ticks
from gcsr.reporting.panels import cost_rows
from gcsr.reporting.results import Result, curve
from helpers import planted_graph

MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def page(graph: Graph, small: CondensedGraph) -> str:
    return report(small, graph, runs=2, recipe=FAST, subsets=2, device="cpu")


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), f"<{kind}")


def test_every_part_is_there(page: str, graph: Graph, small: CondensedGraph) -> None:
    for heading in (
        "planted in 9 nodes",
        "Accuracy",
        "Condensed graph",
        "Heat maps",
        "CCNS, original",
        "CCNS, condensed",
        "t-SNE map",
        "Matching loss",
        "Validation accuracy",
        "Cost",
        "Settings and command",
    ):
        assert heading in page, heading
    for name, value in small.provenance["settings"].items():
        assert f"<dt>{name}</dt>" in page
        assert value is None or f"<dd>{value}</dd>" in page or isinstance(value, bool), name
    own = evaluate(small, graph, runs=2, recipe=FAST, device="cpu")
    assert f"<b>{own.mean:.1f}</b>" in page
    assert "random subset, 9 nodes" in page and "whole graph" in page
    assert "2 graphs x 2 runs" in page


def test_numbers_on_the_page_are_those_of_the_analysis(
    page: str, graph: Graph, small: CondensedGraph
) -> None:
    known = analyze(small, graph, nearest=3, tsne_nodes=0)
    assert f"Distance (Frobenius) {known.ccns_distance.frobenius:.2f}" in page
    drawn = data_of(page)["graph"]
    assert (
        unpacked(drawn["nearest"]["nodes"], "u4").tolist() == known.nearest.nodes.ravel().tolist()
    )
    ends = unpacked(drawn["from"], "u2"), unpacked(drawn["to"], "u2")
    weights = unpacked(drawn["weights"], "f4")
    assert np.allclose(small.adjacency.numpy()[ends], weights)
    assert len(weights) == 36 and (np.diff(weights) <= 0).all()


def test_the_page_is_one_file_and_only_its_own_script_may_run(page: str) -> None:
    assert not re.search(r"(src|href)=\"(?!#)|https?:|@import|url\(", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None and "default-src 'none'" in policy[1]
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"sha256-{digest}" in policy[1]


def test_equal_inputs_give_equal_bytes(graph: Graph, small: CondensedGraph) -> None:
    first, second = (report(small, graph, evaluate=False, tsne_nodes=30) for _ in range(2))
    assert first == second
    assert "No network was trained" in first


def test_markup_in_names_is_escaped(small: CondensedGraph) -> None:
    spoiled = evil(small)
    for page in (
        report(spoiled, names=[f"{EVIL}.safetensors"]),
        report([spoiled, spoiled], names=[EVIL, f"{EVIL}2"]),
    ):
        assert EVIL not in page and "<img" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert page.count("<script") == 2


def test_texts_are_escaped_and_html_is_kept() -> None:
    assert html.remark("a<b") == '<p class="remark">a&lt;b</p>'
    assert html.details('"x"', html.remark("c")) == (
        '<details><summary>&#34;x&#34;</summary><p class="remark">c</p></details>'
    )
    assert html.absent("a\x00\x1b[31mb\n") == '<p class="absent">a\ufffd\ufffd[31mb </p>'
    with pytest.raises(jinja2.UndefinedError):
        html.graph_view({}, "")


def test_data_cannot_end_its_element() -> None:
    page = Page("t", "", data={"name": "</script><!--<script>&"}).render()
    assert data_of(page)["name"] == "</script><!--<script>&"
    assert page.count("</script>") == 2


def test_honest_facts_come_first(graph: Graph, small: CondensedGraph) -> None:
    fair = report(small, graph, runs=1, recipe=FAST, subsets=1, device="cpu", tsne_nodes=0)
    assert "Quick test." in fair and "Leaks test labels" not in fair
    leaking = result(graph, prior="all")
    assert leaking.leaks_test_labels
    page = report(leaking, graph, evaluate=False, tsne_nodes=0)
    assert page.index("Leaks test labels.") < page.index("<section")
    compared = report([small, leaking], graph, names=["fair", "leaking"], evaluate=False)
    assert "Test labels went into leaking" in compared


def test_few_runs_are_counted_in_words(
    graph: Graph, small: CondensedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[report.__module__], "TrainingRecipe", lambda: FAST)
    once = {"runs": 1, "recipe": FAST, "subsets": 1, "device": "cpu", "tsne_nodes": 0}
    both = report([small, small], graph, names=["a", "b"], **once)
    assert "Accuracies are of 1 run each; small differences" in both
    page = report(small, graph, **once)
    assert "Accuracies are of 1 run each" in page and "± 0.0" not in both + page


def test_without_the_real_graph_it_shows_what_it_can(small: CondensedGraph) -> None:
    page = report(small)
    assert "Without the real graph." in page and "No real graph was given" in page
    assert "CCNS, condensed" in page and "CCNS, original" not in page
    assert data_of(page)["graph"]["nearest"] is None and "map" not in data_of(page)


def test_methods_without_a_loss_say_so(graph: Graph) -> None:
    chosen = condense(graph, nodes=6, method="random")
    page = report(chosen, graph, evaluate=False, tsne_nodes=0)
    assert "random recorded no loss: it selects real nodes" in page
    assert "How it was chosen" not in page


def test_a_graph_without_edges_has_no_similarity(graph: Graph, small: CondensedGraph) -> None:
    lonely = replace(small, adjacency=torch.eye(small.num_nodes))
    page = report(lonely, graph, evaluate=False, tsne_nodes=0)
    assert "The condensed graph has no edges, and so none of it." in page
    assert "Distance (Frobenius)" not in page
    assert "CCNS, original" in page and "CCNS, condensed" not in page
    assert 'data-heat="gram"' in page and 'data-heat="adjacency"' not in page
    assert 'data-heat="adjacency"' in report(small, evaluate=False)
    names = ["lonely", "joined"]
    page = report([lonely, small], graph, names=names, evaluate=False)
    assert "<caption>joined</caption>" in page and "<caption>lonely</caption>" not in page
    assert "without similarities: lonely." in page


def test_the_best_result_is_that_of_the_best_validation(
    graph: Graph, small: CondensedGraph, other: CondensedGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one with the higher test accuracy validates worse and comes second."""
    protocol = import_module("gcsr.reporting.results")
    usual = protocol.evaluate

    def scored(graphs: list[CondensedGraph], *rest: Any, **options: Any) -> Any:
        found = usual(graphs, *rest, **options)
        if graphs[0] not in (small, other):
            return found
        test, validation = (99.0, 50.0) if graphs[0] is small else (60.0, 70.0)
        return replace(found, mean=test, scores=[test] * 2, validation=[validation] * 2)

    monkeypatch.setattr(protocol, "evaluate", scored)
    page = report([small, other], graph, names=["lucky", "sound"], runs=2, recipe=FAST)
    assert [one.name for one in page.scores[:2]] == ["sound", "lucky"]
    text = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "Best by validation, without a leak 60.0 %" in text
    assert "sound less each other row" in text
    table = page[page.index("Results side by side") :]
    assert table.index("sound") < table.index("lucky")


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"dataset": {}, "settings": [1], "notes": "x", "measured": 3, "bytes": None, "seed": "s"},
        {
            "matching_loss": {"values": ["a", None, 1]},
            "validation": {"iterations": [1], "values": 3},
        },
        {"method": 7, "ratio": "x", "dataset": {"name": 5, "num_nodes": []}, "versions": {"a": {}}},
    ],
)
def test_a_file_by_another_program_is_shown(small: CondensedGraph, provenance: dict) -> None:
    page = report(replace(small, provenance=provenance))
    assert "in 9 nodes" in page and "Condensed graph" in page


def test_a_thousand_nodes_and_twenty_thousand_points_stay_below_three_megabytes() -> None:
    big = dense_result(1000)
    rng = np.random.default_rng(0)
    points = map_data(
        NodeMap(
            np.arange(20_000),
            rng.normal(size=(20_000, 2)),
            rng.integers(0, 40, 20_000),
            rng.normal(size=(1000, 2)),
            big.classes.numpy(),
        )
    )
    page = report(big)
    assert len(page.encode()) + len(json.dumps(points)) < MOST_BYTES
    drawn = data_of(page)["graph"]
    assert MOST_EDGES <= drawn["edges"] <= MOST_EDGES + 4000 < drawn["edges_in_all"] == 499_500


def test_the_strongest_edges_are_kept_and_every_node_keeps_some() -> None:
    generator = np.random.default_rng(0)
    weights = generator.random((300, 300))
    weights = np.triu(weights, 1)
    weights[:, 7] = weights[7, :] = 0
    weights[7, 8:40] = 1e-6  # a node whose edges are all among the weakest
    weights = weights + weights.T
    rows, columns, values, total = strongest_edges(weights)
    assert total == np.count_nonzero(np.triu(weights, 1)) and rows.size < total
    floor = np.sort(weights[np.triu_indices(300, 1)])[-MOST_EDGES]
    kept = set(zip(rows.tolist(), columns.tolist(), strict=True))
    strong = np.argwhere(np.triu(weights, 1) >= floor)
    assert all(tuple(pair) in kept for pair in strong.tolist())
    assert sum(7 in pair for pair in kept) == 4
    assert (np.diff(values) <= 0).all()


def test_the_drawing_is_deterministic_and_puts_strong_neighbors_near() -> None:
    weights = np.kron(np.eye(3), np.ones((8, 8))) + 1e-3
    classes = np.repeat(np.arange(3), 8)
    shuffled = np.random.default_rng(0).permutation(24)
    places = arranged(weights[np.ix_(shuffled, shuffled)], np.zeros(24, dtype=int))
    again = arranged(weights[np.ix_(shuffled, shuffled)], np.zeros(24, dtype=int))
    assert np.array_equal(places, again)
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    same = classes[shuffled][:, None] == classes[shuffled]
    assert apart[same].mean() < 0.5 * apart[~same].mean()
    assert np.abs(fitted(places)).max() == pytest.approx(1)


def test_large_matrices_become_means() -> None:
    matrix = np.arange(36.0).reshape(6, 6)
    kept, starts = shrunk(matrix, 3)
    assert starts.tolist() == [0, 2, 4]
    assert kept[0, 0] == matrix[:2, :2].mean() and kept[2, 1] == matrix[4:, 2:4].mean()
    assert shrunk(matrix, 6)[0] is matrix
    packed = gray(np.array([[0.0, 0.5], [1.0, 9.0]]), 0.0, 1.0)
    assert unpacked(packed["data"], "u1").tolist() == [0, 128, 255, 255]


def test_curves_and_ticks() -> None:
    assert curve({"a": {"every": 5, "values": [1, 2.5]}}, "a") == [(0, 1), (5, 2.5)]
    assert curve({"a": {"iterations": [0, 7], "values": [1, float("nan")]}}, "a") == [(0, 1)]
    assert curve({"a": {"iterations": [0], "values": [1, 2]}}, "a") == []
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert ticks(0.993, 1.002, 4) == [0.995, 0.9975, 1.0]
    assert ticks(3, 3) == [3]


def test_the_cost_sheet(graph: Graph, small: CondensedGraph) -> None:
    found = analyze(small, graph, tsne_nodes=0)
    shown = Result("a", small, found)
    rows = {name: cells for name, *cells in cost_rows(shown)}
    n, d = small.x.shape
    for name, itemsize in (("float32", 4), ("float16", 2)):
        assert rows[f"… features, {name}"][0] == f"{itemsize * n * d} B"
        assert rows[f"… A' dense, {name}"][0] == f"{itemsize * n * n} B"
    assert rows["bytes in the file"][0] == f"{small.stored_bytes} B"
    assert rows["bytes in the file"][2] == f"{small.provenance['bytes']['original'] / 1000:.1f} kB"


def test_bad_arguments_are_one_sentence(graph: Graph, small: CondensedGraph) -> None:
    other = replace(small, provenance={"dataset": {"name": "other", "content_hash": "1"}})
    for call, words in (
        (lambda: report([]), "at least one"),
        (lambda: report([small, other]), "different data"),
        (lambda: report(small, names=["a", "b"]), "2 names were given for 1"),
        (lambda: report(small, graph, tsne_nodes=20_001), "tsne_nodes"),
        (lambda: report(small, graph, runs=0, recipe=FAST), "runs"),
        (lambda: report(small, graph, model="nothing"), "nothing"),
        (lambda: report(small, graph, subsets=0), "subsets"),
        (lambda: report(other, graph), "made from other"),
        (lambda: report(replace(small, num_classes=1001)), "num_classes must be .*, got 1001"),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_inductive_graphs_are_shown() -> None:
    graph = planted_graph(per_class=30, inductive=True)
    page = report(result(graph), graph, runs=1, recipe=FAST, subsets=1, device="cpu", tsne_nodes=50)
    assert "21 real nodes" in page and "--inductive" in page


def test_soft_and_missing_labels_are_shown() -> None:
    soft = CondensedGraph(torch.eye(3), torch.zeros(3, 3), torch.full((3, 2), 0.5), 2)
    assert "A&#39; has no edges" in report(soft)
    bare = CondensedGraph(torch.eye(3), torch.ones(3, 3), torch.tensor([0, 1, -1]), 2)
    assert unpacked(data_of(report(bare))["graph"]["classes"], "i2").tolist() == [0, 1, -1]
    alone = CondensedGraph(torch.ones(1, 2), torch.ones(1, 1), torch.tensor([0]), 1)
    assert "in 1 node<" in report(alone)


def test_pseudo_labels_are_two_more_rows(page: str, graph: Graph, small: CondensedGraph) -> None:
    assert "seudo-labels" not in page
    told = small.provenance | {"pseudo_labels": {"pseudo_labels": "consistent"}}
    helped = replace(small, provenance=told)
    how = {"runs": 2, "recipe": FAST, "device": "cpu"}
    shown = report(helped, graph, subsets=1, tsne_nodes=0, **how)
    labels = re.findall(r"<strong>([^<]*)</strong>", shown)
    place = labels.index("whole graph")
    assert labels[place + 1 : place + 3] == [
        "whole graph with pseudo-labels",
        "pseudo-labels themselves",
    ]
    assert PSEUDO_LABELS_NOTE in shown
    found = evaluate_full(graph, pseudo_labels=True, **how)
    assert found.pseudo_labels is not None
    scores = re.findall(r"<b>([\d.]+)</b>", shown)
    assert scores[3:5] == [f"{found.mean:.1f}", f"{found.pseudo_labels['test']:.1f}"]
    compared = report([small, helped], graph, names=["one", "two"], subsets=1, **how)
    assert f"two: {PSEUDO_LABELS_NOTE}" in compared
    assert "pseudo-labels themselves" in compared
    # Without networks there is nothing to compare with.
    untested = report(helped, graph, evaluate=False, tsne_nodes=0)
    assert "<strong>pseudo-labels themselves" not in untested


def test_the_ends_of_a_smoothed_curve_are_medians_too() -> None:
    values = [9.0, 1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0]
    curve = smoothed(list(enumerate(values)))
    assert [value for _, value in curve][:2] == [1.0, 1.0]
    assert curve[-1] == (9, 5.0)
