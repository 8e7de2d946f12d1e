"""Fewer edges and narrower numbers: which are kept, who chooses, and what is said about it."""

from __future__ import annotations

import pytest
import torch

import gcsr
from gcsr import CondensedGraph, InputError
from gcsr.engines.iterates import QuickScore
from gcsr.evaluation.sparsify import Rule, candidates, entries, parse_rule, pruned
from helpers import planted_graph, random_adjacency, with_other_test_labels

A = torch.tensor(
    [
        [0.9, 0.5, 0.1, 0.0],
        [0.5, 0.0, 0.2, 0.3],
        [0.1, 0.2, 0.4, 0.2],
        [0.0, 0.3, 0.2, 0.01],
    ]
)


def small_graph(nodes: int = 9, seed: int = 0) -> CondensedGraph:
    """Real nodes with a weighted A' of their own, so that pruning has something to prune."""
    small = gcsr.condense(planted_graph(), nodes=nodes, method="random", seed=seed)
    weights = random_adjacency(nodes, density=0.9, seed=1).float() + 0.5 * torch.eye(nodes)
    return CondensedGraph(small.x, weights, small.y, small.num_classes, small.provenance)


# -- rules -------------------------------------------------------------------------------------------


def test_a_threshold_keeps_what_is_above_it_and_the_diagonal():
    assert (
        pruned(A, Rule("threshold", 0.2)).tolist()
        == torch.tensor(
            [[0.9, 0.5, 0, 0], [0.5, 0, 0, 0.3], [0, 0, 0.4, 0], [0, 0.3, 0, 0.01]]
        ).tolist()
    )


def test_top_k_keeps_an_edge_that_either_end_keeps():
    # Heaviest of 0: 1; of 1: 0; of 2: 1 (the first of two equals); of 3: 1.
    assert (
        pruned(A, Rule("top-k", 1)).tolist()
        == torch.tensor(
            [[0.9, 0.5, 0, 0], [0.5, 0, 0.2, 0.3], [0, 0.2, 0.4, 0], [0, 0.3, 0, 0.01]]
        ).tolist()
    )
    assert torch.equal(pruned(A, Rule("top-k", 0)), A.diag().diag())
    assert torch.equal(pruned(A, Rule("top-k", 99)), A)


@pytest.mark.parametrize("rule", [Rule("threshold", 0.4), Rule("top-k", 3)])
def test_pruned_stays_symmetric_and_keeps_weights(rule):
    a = random_adjacency(30, density=0.9)
    left = pruned(a, rule)
    assert torch.equal(left, left.T)
    assert torch.equal(left[left > 0], a[left > 0])
    assert 0 < entries(left) < entries(a)
    if rule.name == "top-k":
        assert ((left > 0).sum(1) >= 3).all()


def test_candidates_go_from_sparse_to_dense_and_their_text_is_the_whole_rule():
    a = random_adjacency(40, density=0.9).float() + torch.eye(40)
    rules = candidates(a)
    counts = [entries(pruned(a, rule)) for rule in rules]
    assert counts == sorted(set(counts)) and counts[0] == 40 and counts[-1] < entries(a)
    assert {rule.name for rule in rules} == {"top-k", "threshold"}
    for rule in rules:
        assert torch.equal(pruned(a, parse_rule(str(rule))), pruned(a, rule))
    assert candidates(torch.eye(5)) == [] and candidates(torch.zeros(1, 1)) == []


@pytest.mark.parametrize(
    "text", ["", "top-k", "top-k=1.5", "top-k=-1", "threshold=nan", "k=3", "threshold=x"]
)
def test_rules_that_cannot_be_are_refused(text):
    with pytest.raises(InputError, match=r"^rule must be auto, none, threshold=0\.05"):
        gcsr.sparsify(small_graph(), planted_graph(), rule=text)


# -- choosing ----------------------------------------------------------------------------------------


def scores_by_entries(monkeypatch, table: dict[int, float]) -> list[tuple[int, range]]:
    """Validation accuracies are looked up by the number of entries of A'."""
    calls = []

    def score(self, x, a, targets, networks, seed):
        calls.append((entries(a), networks))
        return table[entries(a)]

    monkeypatch.setattr(QuickScore, "score", score)
    return calls


def test_auto_takes_the_sparsest_within_the_tolerance(monkeypatch):
    small, graph = small_graph(), planted_graph()
    counts = [entries(pruned(small.adjacency, rule)) for rule in candidates(small.adjacency)]
    everything = entries(small.adjacency)
    table = dict.fromkeys(counts, 0.70) | {everything: 0.80}
    table[counts[2]], table[counts[3]] = 0.796, 0.90
    calls = scores_by_entries(monkeypatch, table)
    made = gcsr.sparsify(small, graph, tolerance=0.5, runs=3)
    assert entries(made.adjacency) == counts[2]
    told = made.provenance["stored"]
    assert [one["entries"] for one in told["tried"]] == counts[:3]
    assert told["validation"]["before"] == pytest.approx(80.0)
    assert told["validation"]["after"] == pytest.approx(79.6)
    assert told["validation"]["lost"] == pytest.approx(0.4)
    # What was lost is stated by other networks than those that chose.
    assert {networks for _, networks in calls[:-2]} == {range(3)}
    assert {networks for _, networks in calls[-2:]} == {range(3, 6)}


def test_auto_leaves_everything_where_nothing_is_good_enough(monkeypatch):
    small = small_graph()
    counts = [entries(pruned(small.adjacency, rule)) for rule in candidates(small.adjacency)]
    scores_by_entries(monkeypatch, dict.fromkeys(counts, 0.7) | {entries(small.adjacency): 0.8})
    made = gcsr.sparsify(small, planted_graph())
    assert torch.equal(made.adjacency, small.adjacency)
    assert made.provenance["stored"]["rule"] == "none"
    assert len(made.provenance["stored"]["tried"]) == len(counts)


def test_a_given_rule_is_followed_and_its_price_stated():
    small, graph = small_graph(), planted_graph()
    made = gcsr.sparsify(small, graph, rule="top-k=2", dtype="float16", runs=2, device="cpu")
    expected = pruned(small.adjacency, Rule("top-k", 2)).half().float()
    assert torch.equal(made.adjacency, expected) and made.half
    told = made.provenance["stored"]
    assert (told["rule"], told["asked"], told["dtype"]) == ("top-k=2", "top-k=2", "float16")
    assert told["bytes"] == {"before": small.stored_bytes, "after": made.stored_bytes}
    assert made.provenance["bytes"]["condensed"] == made.stored_bytes < small.stored_bytes
    quick = QuickScore(gcsr.View(graph).condensing().validation, torch.device("cpu"))
    for key, one in (("before", small), ("after", made)):
        alone = quick.score(one.x, one.adjacency, one.targets, range(2, 4), 0)
        assert told["validation"][key] == pytest.approx(100 * alone)
    assert made.provenance["measured"]["storing_seconds"] > 0
    assert "stored" not in small.provenance


def test_only_rounding():
    small = small_graph()
    made = gcsr.sparsify(small, planted_graph(), rule="none", dtype="float16", runs=1)
    assert torch.equal(made.adjacency, small.adjacency.half().float())
    assert made.provenance["stored"]["tried"] == []


def test_a_second_time_keeps_the_first_story():
    graph = planted_graph()
    first = gcsr.sparsify(small_graph(), graph, rule="top-k=3", dtype="float16", runs=1)
    second = gcsr.sparsify(first, graph, rule="top-k=1", runs=1)
    assert second.half and second.provenance["stored"]["earlier"]["rule"] == "top-k=3"


def test_test_labels_have_no_say_and_the_same_seed_gives_the_same(tmp_path):
    graph = planted_graph()
    other = with_other_test_labels(graph)
    ours, again, theirs = (
        gcsr.sparsify(small_graph(), each, runs=2, seed=4, device="cpu", check_origin=False)
        for each in (graph, graph, other)
    )
    for made in (again, theirs):
        assert torch.equal(ours.adjacency, made.adjacency)
        assert ours.provenance["stored"] == made.provenance["stored"]
    loaded = CondensedGraph.load(ours.save(tmp_path / "small.safetensors"))
    assert torch.equal(loaded.adjacency, ours.adjacency) and loaded.provenance == ours.provenance


def test_progress_never_goes_back():
    calls = []
    gcsr.sparsify(small_graph(), planted_graph(), runs=1, progress=lambda *c: calls.append(c))
    done = [call[1] for call in calls]
    assert done == sorted(done) and calls[-1][1] == calls[-1][2]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dtype": "float64"}, "dtype must be one of float32, float16"),
        ({"tolerance": -1}, "tolerance must be .*, got -1"),
        ({"runs": 0}, "runs must be .*, got 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        gcsr.sparsify(small_graph(), planted_graph(), **settings)


def test_another_graph_is_refused():
    with pytest.raises(InputError, match="content hash"):
        gcsr.sparsify(small_graph(), planted_graph(seed=1))


@pytest.mark.parametrize("method", ["mtt", "random"])
def test_no_structure_costs_next_to_nothing(method):
    settings = {"iterations": 1, "experts": 1, "expert_epochs": 3, "max_start": 1}
    small = gcsr.condense(
        planted_graph(), nodes=21, method=method, **(settings if method == "mtt" else {})
    )
    features, labels = 21 * 12 * 4, 21 * 8
    assert small.stored_bytes - features - labels < 21 * 21 * 4
    assert small.provenance["bytes"]["condensed"] == small.stored_bytes
    if method == "mtt":
        assert small.stored_bytes == features + labels + 21 * 6 + 22 * 4
