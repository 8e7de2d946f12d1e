"""The cost sheet: bytes by hand, a fair rival, time that is compared fairly, and when it has paid."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gcsr
from gcsr import CondensedGraph, InputError, TrainingRecipe, View
from gcsr.data.features import real_bytes
from gcsr.evaluation import cost as timing
from gcsr.evaluation.cost import break_even, decision, random_subset, random_subsets, verdict
from gcsr.evaluation.forecast import TimedTraining, begun, forecast, projected
from gcsr.evaluation.intervals import compare
from helpers import planted_graph, with_other_test_labels

QUICK = TrainingRecipe(epochs=8)


def condensed(graph: gcsr.Graph, nodes: int = 9) -> CondensedGraph:
    """Random nodes with a dense A'."""
    small = gcsr.condense(graph, nodes=nodes, method="random", device="cpu")
    weights = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(0)) / 10
    return replace(small, adjacency=weights + weights.T)


def sheet_of(graph: gcsr.Graph, small: CondensedGraph | None = None, **changes) -> gcsr.CostSheet:
    settings = {
        "runs": 2,
        "recipe": QUICK,
        "hidden_channels": 8,
        "device": "cpu",
        "sparsify": "top-k=1",
    }
    return gcsr.cost(small or condensed(graph), graph, **(settings | changes))


# -- break-even --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condense", "small", "whole", "trainings"),
    [
        (10.0, 1.0, 3.0, 5),
        (10.1, 1.0, 3.0, 6),
        (0.0, 1.0, 3.0, 1),
        (0.3, 0.1, 0.2, 3),
        (10.0, 3.0, 3.0, None),
        (10.0, 3.1, 3.0, None),
        (None, 1.0, 3.0, None),
    ],
)
def test_break_even(condense, small, whole, trainings):
    assert break_even(condense, small, whole) == trainings
    said = verdict(condense, small, whole)
    if trainings is not None:
        assert condense + trainings * small <= trainings * whole
        assert trainings == 1 or condense + (trainings - 1) * small > (trainings - 1) * whole
        assert f"after {trainings} training" in said
    elif condense is None:
        assert "does not say" in said
    else:
        assert "does not pay" in said and "3 s" in said


# -- bytes -------------------------------------------------------------------------------------------


def test_real_bytes_by_hand():
    x = torch.zeros(4, 10)
    x[0, 3] = x[1, 4] = x[2, 0] = 1
    path = sp.csr_array(np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1))
    size = real_bytes(x, path)
    # Three numbers with their columns, five pointers; six edges without weights; four labels.
    assert (size.features, size.adjacency, size.labels) == (3 * 6 + 20, 6 * 2 + 20, 32)
    assert size.total == 38 + 32 + 32
    assert real_bytes(torch.ones(4, 10), path * 2.0).features == 160
    assert real_bytes(torch.ones(4, 10), path * 2.0).adjacency == 6 * 6 + 20
    assert real_bytes(torch.ones(4, 10), path * 2.0, itemsize=2).features == 80


def test_files_and_sheets_count_the_original_alike(tmp_path):
    x = torch.eye(66, 12)
    graph = replace(planted_graph(weighted=True), x=x)
    told = condensed(graph).provenance["bytes"]["original"]
    assert told == graph.stored_bytes == sheet_of(graph).original_bytes
    assert graph.stored_parts.features < x.nbytes  # what is zero is not stored
    graph.to_folder(tmp_path / "graph")
    assert gcsr.load(tmp_path / "graph", memory=1000).stored_bytes == told


@pytest.mark.parametrize("inductive", [False, True])
def test_a_random_subset_is_as_large_as_its_bytes_allow(inductive):
    graph = planted_graph(inductive=inductive)
    visible = View(graph).condensing().visible
    for seed in range(5):
        subset = random_subset(visible, 700, itemsize=4, seed=seed)
        assert subset.note is None and subset.size.total <= 700
        counts = torch.bincount(subset.target.labels, minlength=3)
        assert counts.max() - counts.min() <= 1
        # One node more takes 48 bytes of features and 12 for its label and pointer, plus its edges.
        assert subset.size.total + 60 + 2 * 2 * 7 * 3 > 700
        n = subset.target.nodes.numel()
        assert subset.target.adjacency.shape == (n, n)
        assert subset.size == real_bytes(subset.target.x, subset.target.adjacency)
    several = random_subsets(SimpleNamespace(stored_bytes=700, half=False), visible, 3, 4)
    assert len({subset.target.x.numpy().tobytes() for subset in several}) == 4
    for seed, subset in enumerate(several, 3):
        alone = random_subset(visible, 700, itemsize=4, seed=seed)
        assert torch.equal(subset.target.x, alone.target.x)


def test_its_nodes_are_training_nodes_with_the_edges_among_them():
    graph = planted_graph()
    subset = random_subset(View(graph).condensing().visible, 800, itemsize=4, seed=0)
    rows = [int((graph.x == row).all(1).nonzero()) for row in subset.target.x]
    assert set(rows) <= set(graph.train.tolist())
    assert torch.equal(graph.y[rows], subset.target.labels)
    assert (graph.adjacency[rows][:, rows] != subset.target.adjacency).nnz == 0


def test_a_subset_that_cannot_grow_or_shrink_says_so():
    visible = View(planted_graph()).condensing().visible
    everything = random_subsets(SimpleNamespace(stored_bytes=10**9, half=False), visible, 0, 3)
    assert all(subset is everything[0] for subset in everything)
    assert everything[0].target.nodes.numel() == 21
    assert "all 21 training nodes" in everything[0].note
    least = random_subset(visible, 10, itemsize=4, seed=0)
    assert least.target.nodes.numel() == 3
    assert "does not exist: a node of every class takes" in least.note


# -- the sheet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("inductive", [False, True])
def test_the_sheet_has_it_all(inductive):
    graph = planted_graph(inductive=inductive)
    small = condensed(graph)
    sheet = sheet_of(graph, small)
    told = json.loads(json.dumps(sheet.to_dict()))
    forms = {(f["structure"], f["dtype"]): f for f in told["forms"]}
    dense = forms["dense", "float32"]
    assert (dense["features_bytes"], dense["adjacency_bytes"]) == (9 * 12 * 4, 81 * 4)
    assert dense["bytes"] == small.stored_bytes == told["file_bytes"] == told["condensed"]["bytes"]
    assert forms["dense", "float16"]["features_bytes"] == 9 * 12 * 2
    sparse = gcsr.sparsify(small, graph, rule="top-k=1", dtype="float16", runs=1)
    assert forms["sparsified", "float16"]["bytes"] == sparse.stored_bytes
    assert [key for key, form in forms.items() if form["in_file"]] == [("dense", "float32")]
    assert told["condensed"]["accuracy"] == dense["accuracy"]
    seen = View(graph).condensing().visible
    original = real_bytes(seen.x, seen.adjacency)
    assert small.provenance["bytes"]["original"] == small.original_bytes == original.total
    assert told["original_bytes"] == told["whole"]["bytes"] == original.total
    assert told["random"]["bytes"] <= told["file_bytes"]
    assert told["whole"]["nodes"] == (21 if inductive else 66)
    assert told["condense_seconds"] == small.provenance["measured"]["seconds"]
    assert told["condense_memory_bytes"] > 0 and told["condensed_on"] == "cpu"
    for row in (told["condensed"], told["random"], told["whole"]):
        assert row["seconds"] > 0 and row["seconds_alone"] > 0
        assert len(row["accuracy"]["scores"]) == 2
    seconds = told["condense_seconds"], told["condensed"]["seconds"], told["whole"]["seconds"]
    assert told["break_even"] == break_even(*seconds) and told["verdict"] == verdict(*seconds)
    assert told["sparsified_by"] == "top-k=1"
    assert "on planted from" in str(sheet)


def test_accuracies_are_those_of_evaluate():
    graph = planted_graph()
    small = condensed(graph)
    sheet = sheet_of(graph, small)
    how = {"runs": 2, "recipe": QUICK, "hidden_channels": 8, "device": "cpu"}
    pruned = gcsr.sparsify(small, graph, rule="top-k=1", dtype="float16", runs=1, device="cpu")
    expected = {("dense", "float32"): small, ("sparsified", "float16"): pruned}
    for form in sheet.forms:
        if (form.structure, form.dtype) in expected:
            graph_of_form = expected[form.structure, form.dtype]
            assert form.accuracy.scores == gcsr.evaluate(graph_of_form, graph, **how).scores
    assert sheet.whole.accuracy.scores == gcsr.evaluate_full(graph, **how).scores


def test_a_sparsified_half_file_keeps_its_rule():
    graph = planted_graph()
    small = gcsr.sparsify(condensed(graph), graph, rule="top-k=2", dtype="float16", runs=1)
    sheet = sheet_of(graph, small, sparsify="auto")
    assert sheet.sparsified_by == "top-k=2"
    here = [form for form in sheet.forms if form.in_file]
    assert [(form.structure, form.dtype) for form in here] == [("sparsified", "float16")]
    assert here[0].bytes == sheet.file_bytes == small.stored_bytes
    measured = small.provenance["measured"]
    assert sheet.condense_seconds == measured["seconds"] + measured["storing_seconds"]


def test_a_file_without_a_history_still_has_a_sheet():
    graph = planted_graph()
    small = replace(condensed(graph), provenance={"measured": 3})
    sheet = sheet_of(graph, small)
    assert sheet.condense_seconds is None and sheet.break_even is None
    assert "does not say" in sheet.verdict


LARGER = "bytes, the graph that it replaces, stored sparsely,"


def test_a_file_larger_than_its_original_is_noted():
    graph = planted_graph()
    assert not any(LARGER in note for note in sheet_of(graph).notes)
    sparse = replace(graph, x=graph.x * (torch.arange(12) == 0))
    assert any(LARGER in note for note in sheet_of(sparse, condensed(sparse, nodes=20)).notes)


def test_real_nodes_that_test_better_are_noted():
    graph = planted_graph()
    small = condensed(graph)
    # Labels that are all wrong teach nothing.
    wrong = replace(small, y=(small.y + 1) % graph.num_classes)
    sheet = sheet_of(graph, wrong, runs=6)
    assert sheet.random.accuracy.interval_over == "graphs"  # a subset for each run
    found = [note for note in sheet.notes if "was not worth it" in note]
    assert len(found) == 1 and found[0].startswith("real nodes of the same bytes test better (")
    sheet = sheet_of(graph, small)
    against = compare(sheet.condensed.accuracy, sheet.random.accuracy)
    assert any("was not worth it" in note for note in sheet.notes) == (against.sign < 0)
    assert any("not distinguishable" in note for note in sheet.notes) == (against.sign == 0)
    once = sheet_of(graph, small, runs=1).notes
    assert any(note.startswith("one run is too few to compare") for note in once)
    assert not any("interval" in note for note in once)


def test_what_seconds_are_made_of_is_noted():
    graph = planted_graph()
    small = condensed(graph)
    past = {
        **small.provenance,
        "device": "cuda",
        "measured": {"seconds": 2.0, "graphs_together": 5, "experts": {"cached": True}},
    }
    notes = " ".join(sheet_of(graph, replace(small, provenance=past)).notes)
    assert "condensed on cuda, trained on cpu" in notes
    assert "5 graphs were condensed together" in notes and "experts were trained earlier" in notes


def test_trainings_take_turns_after_warming_up(monkeypatch):
    order = []

    def timed(trial, batch, recipe):
        order.append((batch, recipe.epochs, recipe.validate_every))
        return {"a": 1.0, "b": 20.0}[batch] + len(order) / 1000

    monkeypatch.setattr(timing, "_timed", timed)
    recipes = {"protocol": TrainingRecipe(epochs=100)}
    calls = []
    found = timing.training_seconds(
        None, {"a": "a", "b": "b"}, recipes, lambda *call: calls.append(call)
    )
    # What is quick is measured three times, what is slow once.
    assert [(batch, epochs) for batch, epochs, _ in order] == [
        *[("a", 25), ("b", 25)],
        *[("a", 100), ("b", 100), ("a", 100), ("a", 100)],
    ]
    assert found["a", "protocol"] == pytest.approx(1.005) and found["b", "protocol"] > 20
    assert [done for _, done, _ in calls] == sorted(done for _, done, _ in calls)
    assert calls[-1][1] == calls[-1][2]


def test_the_small_one_is_trained_on_the_small_one(monkeypatch):
    """Each row times its own graph: features, and how often it validates."""
    seen = {}

    def timed(trial, batch, recipe):
        seen.setdefault(batch.classes.shape[0], set()).add(recipe.validate_every)
        return 1.0

    monkeypatch.setattr(timing, "_timed", timed)
    sheet = sheet_of(planted_graph())
    assert set(seen) == {9, sheet.random.nodes, 21}
    # The last validates after every epoch (protocol) or once (alone; warm-up has its own length).
    assert all(1 in how and 8 in how for how in seen.values())


def test_break_even_is_of_the_small_graph_against_the_whole_one(monkeypatch):
    """The small graph trains in 1 s (alone 0.5 s), the whole one in 3 s (alone 1 s)."""
    seconds = {(9, 1): 1.0, (9, 8): 0.5, (21, 1): 3.0, (21, 8): 1.0}

    def timed(trial, batch, recipe):
        return seconds.get((batch.classes.shape[0], recipe.validate_every), 7.0)

    monkeypatch.setattr(timing, "_timed", timed)
    graph = planted_graph()
    small = condensed(graph)
    small.provenance["measured"]["seconds"] = 10.0
    sheet = sheet_of(graph, small)
    assert (sheet.condensed.seconds, sheet.whole.seconds) == (1.0, 3.0)
    assert (sheet.break_even, sheet.break_even_alone) == (5, 20)
    assert "after 5 trainings (1 s each instead of 3 s)" in sheet.verdict


def test_test_labels_are_only_for_testing():
    """Everything but accuracies is the same whatever the test labels are."""
    graph = planted_graph()
    sheets = [
        sheet_of(each, condensed(graph), sparsify="auto", check_origin=False)
        for each in (graph, with_other_test_labels(graph))
    ]
    ours, theirs = sheets
    assert ours.sparsified_by == theirs.sparsified_by
    assert [f.bytes for f in ours.forms] == [f.bytes for f in theirs.forms]
    assert ours.random.nodes == theirs.random.nodes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "gone"}, "model must be one of .*, got 'gone'"),
        ({"runs": 0}, "runs must be .*, got 0"),
        ({"sparsify": "some"}, "sparsify must be .*, got 'some'"),
    ],
)
def test_what_cannot_be_is_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        sheet_of(planted_graph(), **changes)


def test_another_graph_is_refused():
    with pytest.raises(InputError, match="content hash"):
        sheet_of(planted_graph(seed=1), condensed(planted_graph()))


# -- the decision, and its forecast ------------------------------------------------------------------


def test_the_decision_counts_condensing_evaluation_and_storage():
    assert "paid after 5 trainings" in decision(6.0, 3.0, 1.0, 1.0, 3.0)
    assert "paid after 4 trainings" in decision(6.0, 2.0, 0.0, 1.0, 3.0)
    assert "never pays" in decision(6.0, 3.0, 1.0, 3.0, 3.0)
    assert "unknown" in decision(None, 3.0, 1.0, 1.0, 3.0)
    assert "not distinguishable from never" in decision(6.0, 3.0, 1.0, 1.54, 1.63)
    graph = planted_graph()
    sheet = sheet_of(graph)
    assert sheet.evaluation_seconds == 2 * sheet.condensed.seconds and sheet.storage_seconds > 0
    spent = sheet.condense_seconds + sheet.evaluation_seconds + sheet.storage_seconds
    assert sheet.paid_after == break_even(spent, sheet.condensed.seconds, sheet.whole.seconds)


def test_a_forecast_of_other_methods_says_that_its_estimate_is_an_order_of_magnitude(monkeypatch):
    graph = planted_graph()
    condenser = gcsr.Clusters(nodes=9)
    device = torch.device("cpu")
    found = forecast(condenser, graph, device, runs=3, recipe=QUICK)
    assert found.condense_seconds == condenser.estimate(graph).seconds
    assert "order of magnitude" in found.sentence
    assert found.evaluation_seconds == 3 * found.small_seconds
    spent = found.condense_seconds + found.evaluation_seconds
    assert found.paid_after == break_even(spent, found.small_seconds, found.whole_seconds)
    assert found.calibration_seconds < 10
    monkeypatch.setattr("gcsr.evaluation.forecast.projected", lambda *_: [1.0] * 3)
    first = forecast(condenser, graph, device)
    assert first.paid_after is None and "will never pay" in first.sentence


def test_few_epochs_are_projected(monkeypatch):
    # A warm-up epoch and one of 0.1 s, then turns of two epochs, of which one is disturbed.
    times = [0.3, 0.1, 0.2, 0.9, 0.2]
    clock = iter([at for number, took in enumerate(times) for at in (number, number + took)])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    counts: list[int] = []
    found = projected([TimedTraining(counts.append, 600, 1)], torch.device("cpu"))
    assert found == [pytest.approx(60.0)]
    assert counts == [1, 1, 2, 2, 2]


def test_work_is_begun_and_stopped(monkeypatch):
    now, steps = 0.0, []
    monkeypatch.setattr("time.perf_counter", lambda: now)

    def work(progress):
        nonlocal now
        progress("preparing", 1, 1)
        now += 2.0
        for step in range(1, 101):
            now += 0.2
            steps.append(step)
            progress("training", step, 100)

    # Two seconds once, and a hundred steps.
    assert begun(work, "training") == pytest.approx(22.0)
    assert steps == [1, 2, 3]


def test_parts_of_the_automatic_mode_are_timed():
    graph = planted_graph()
    condenser = gcsr.Automatic(nodes=9)
    found = forecast(condenser, graph, torch.device("cpu"), recipe=QUICK)
    assert found.condense_seconds > 0 and found.calibration_seconds < 20
