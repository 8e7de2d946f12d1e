"""Cells that look at graphs: their numbers, what they keep, and pictures drawn from rows alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_helpers import QUICK

import gcsr
from gcsr.analysis.analysis import analyze
from gcsr.analysis.figures import figure_bytes
from gcsr.benchmarking.analyses import (
    ADJACENCY,
    AS_FIRST,
    CORRELATION,
    GRAM,
    PRIOR,
    SILHOUETTE,
    WatchedGCSR,
    whole_graph,
)
from gcsr.benchmarking.cells import Cell, Protocol, cell
from gcsr.benchmarking.measurement import Outcome
from gcsr.benchmarking.store import Store
from gcsr.paper.experiments import Experiment, experiment, picture_line, recall, reproduce
from gcsr.paper.figures import draw_graphs, write_outputs
from gcsr.paper.tables import compare
from helpers import planted_graph

TWO = Protocol(2, 1, quick=True)
GRAPH = planted_graph(per_class=30).renamed("cora")


def table(look: str, *values: str) -> Experiment:
    lines = tuple(picture_line(look, "gcsr", "cora", 9, value, 0.5) for value in values)
    return Experiment(look, "T", lines, analysis=look)


def run(one: Experiment, path: Path, protocol: Protocol = TWO) -> dict[Cell, Outcome]:
    return reproduce(one, Store(path), protocol=protocol, device="cpu")


def row_of(outcomes: dict[Cell, Outcome], cell: Cell) -> dict[str, Any]:
    row = outcomes[cell].row
    assert row is not None
    return row


def condensed(cell: Cell) -> list[gcsr.CondensedGraph]:
    return cell.condenser(TWO).condense_many(GRAPH, seeds=[0, 1], device="cpu")


def test_the_watched_regularizer_is_the_one_of_algorithm_1():
    """P after the last iteration by Eq. 14, with the A' of every iteration seen from outside."""
    settings: dict[str, Any] = {
        "nodes": 9,
        "experts": 4,  # as many as iterations: every run has the same schedule
        "iterate": "last",
        "hidden_channels": 8,
        "tau": 0.7,
    }
    seen = []
    for iterations in range(4):
        made = WatchedGCSR(**settings, iterations=iterations)
        small = made.condense_many(GRAPH, seeds=[3, 4], device="cpu")
        seen.append((made.regularizers, [one.adjacency for one in small]))
    for place, seed in enumerate((3, 4)):
        prior = seen[0][0][seed]
        for _, adjacency in seen[:3]:
            # Without an update of X', the A' after i iterations is the one iteration i + 1 uses.
            prior = 0.7 * prior + 0.3 * adjacency[place]
        np.testing.assert_allclose(seen[3][0][seed], prior, rtol=1e-5, atol=1e-6)
    plain = gcsr.GCSR(**settings, iterations=3)
    watched = WatchedGCSR.watching(plain)
    assert watched.settings == plain.settings and watched.name == "gcsr"
    (one,), (other,) = (c.condense_many(GRAPH, seeds=[3], device="cpu") for c in (plain, watched))
    assert one.x.equal(other.x) and one.adjacency.equal(other.adjacency)


def test_ccns(loads, tmp_path):
    one = table("ccns", CORRELATION)
    first = one.cells[0]
    row = row_of(run(one, tmp_path / "rows.jsonl"), first)
    known = [analyze(small, GRAPH, tsne_nodes=0) for small in condensed(first)]
    wanted = [each.ccns_distance.off_diagonal_correlation for each in known]
    assert row["values"][CORRELATION] == wanted
    np.testing.assert_allclose(row["drawn"]["ccns"], known[0].condensed.ccns, rtol=1e-3)
    assert row["leaks_test_labels"] is True and "test" not in row and "runs" not in row
    (line,) = compare(one, run(one, tmp_path / "rows.jsonl"))
    assert line.ours.mean == pytest.approx(np.mean(wanted))
    assert line.ours.std == pytest.approx(np.std(wanted))
    assert "gcsr analyze cora-9-0.safetensors --data cora" in row["command"]


def test_adjacency(loads, tmp_path):
    one = table("adjacency", GRAM, PRIOR, ADJACENCY)
    first = one.cells[0]
    row = row_of(run(one, tmp_path / "rows.jsonl"), first)
    small = condensed(first)[0]
    drawn, classes = row["drawn"]["matrices"], np.array(row["drawn"]["classes"])
    assert classes.tolist() == sorted(small.y.tolist())
    np.testing.assert_allclose(drawn[ADJACENCY], small.adjacency, rtol=1e-3)  # blocks by class
    np.testing.assert_allclose(drawn[GRAM], small.x @ small.x.T, rtol=1e-3, atol=1e-4)
    shares = []
    for matrix in (np.array(drawn[name]) for name in (GRAM, PRIOR, ADJACENCY)):
        pairs = [(i, j) for i in range(9) for j in range(9) if i != j]
        within = sum(abs(matrix[i, j]) for i, j in pairs if classes[i] == classes[j])
        shares.append(100 * within / sum(abs(matrix[i, j]) for i, j in pairs))
    found = [row["values"][name][0] for name in (GRAM, PRIOR, ADJACENCY)]
    assert found == pytest.approx(shares, rel=1e-2)


def test_tsne(loads, tmp_path):
    one = table("tsne", SILHOUETTE)
    first = one.cells[0]
    row = row_of(run(one, tmp_path / "rows.jsonl"), first)
    wanted = [analyze(small, GRAPH, tsne_nodes=0).silhouette for small in condensed(first)]
    assert row["values"][SILHOUETTE] == wanted
    assert len(row["drawn"]["real"]) == len(row["drawn"]["real_classes"]) == 60
    assert len(row["drawn"]["condensed"]) == 9


def test_looking_shares_graphs_with_testing(loads, tmp_path, monkeypatch):
    """One condensing serves a test and every look; keys differ."""
    cells = [Cell("gcsr", "cora", 9), *(cell("gcsr", "cora", 9, analysis=look) for look in LOOKED)]
    assert len({cell.condensation for cell in cells}) == 1
    assert len({cell.claim(TWO) for cell in cells}) == 1
    assert len({cell.key(TWO, "") for cell in cells}) == 4


LOOKED = ("ccns", "adjacency", "tsne")


@pytest.mark.parametrize(
    "look, value", [("ccns", CORRELATION), ("adjacency", ADJACENCY), ("tsne", SILHOUETTE)]
)
def test_pictures_are_drawn_from_rows_alone(loads, tmp_path, look, value):
    one = table(look, value)
    path = tmp_path / "rows.jsonl"
    run(one, path)
    known = recall(one, Store(path), TWO)  # no data, no graphs
    first, second = (
        figure_bytes(draw_graphs(one, compare(one, known), TWO), "svg") for _ in range(2)
    )
    assert first == second
    text = first.decode()
    for word in ("QUICK", "gcsr †", "gcsr, without leak", "2 graphs", "published 0.50", "leaks"):
        assert word in text, word
    names = [p.name for p in write_outputs(tmp_path, one, compare(one, known), TWO)]
    assert names == [f"{look}-quick.{kind}" for kind in ("md", "csv", "png", "svg")]
    json.dumps([line.to_dict() for line in compare(one, known)])
    nothing = compare(one, {cell: Outcome("absent", reason="no file.") for cell in one.cells})
    assert "absent" in figure_bytes(draw_graphs(one, nothing, TWO), "svg").decode()


def test_what_is_not_defined_is_said(loads, tmp_path):
    """One condensed node per class has no silhouette to speak of, two classes no correlation."""
    one = experiment("ccns")
    whole = next(line for line in one.lines if line.value == f"s(5, 5){AS_FIRST}")
    small = Experiment("t", "t", (whole,))
    (line,) = compare(small, run(small, tmp_path / "rows.jsonl", QUICK))
    assert line.ours.state == "not defined" and line.ours.mean is None


def test_the_original_matches_the_check_values(shared_data):
    """Citeseer; its 15 nodes without a label count as class 0 there, as others do."""
    values = whole_graph(gcsr.load("citeseer", shared_data))["values"]
    checked = [line for line in experiment("ccns").lines if line.value.endswith(AS_FIRST)]
    assert len(checked) == 7
    for line in checked:
        assert values[line.value][0] == pytest.approx(line.published, abs=0.005), line.value
