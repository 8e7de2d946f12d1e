"""``gcsr cost``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cli_helpers import Run

from gcsr import CondensedGraph, Graph, View

QUICK = ["--runs", 2, "--epochs", 5, "--sparsify", "top-k=1", "--device", "cpu"]


def test_text(gcsr: Run, data: Path, made: Path) -> None:
    result = gcsr("cost", made, "--data", data, *QUICK, "--model", "sgc")
    assert (result.code, result.err) == (0, "")
    for words in (
        "small condensed to 6 nodes",
        "sgc, 2 runs on cpu",
        "condensing: ",
        "of memory, on cpu",
        "dense, float32 [this file]",
        "sparsified (top-k=1), float16",
        "a random subset of its bytes",
        "the whole graph",
        "condensing",
    ):
        assert words in result.out, words
    assert result.out.splitlines()[-1].startswith("decision: ")


def test_an_estimate_says_when_it_will_have_paid(gcsr: Run, data: Path) -> None:
    asked = [
        "condense",
        data,
        "--nodes",
        6,
        "--method",
        "clusters",
        "--device",
        "cpu",
        "--estimate",
    ]
    said = gcsr(*asked).out.splitlines()[-1]
    assert said.startswith("it will") and "on this machine" in said
    assert gcsr(*asked, "--json").json["forecast"]["condense_seconds"] > 0


def test_a_file_that_leaves_out_zeros_is_the_form_without_them(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bare.safetensors"
    gcsr("condense", data, "--nodes", 6, "--method", "mtt", "--set", "iterations=0", "--out", out)
    shown = gcsr("cost", out, "--data", data, "--epochs", 3, "--runs", 1, "--sparsify", "none").out
    assert "without zeros, float32 [this file]" in shown
    assert shown.count("[this file]") == 1


def test_a_file_larger_than_the_visible_graph_is_told_everywhere(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    """It is smaller than all nodes together, but not than the training nodes that it replaces."""
    graph = replace(Graph.from_npz(data), inductive=True)
    visible = View(graph).stored_parts.total
    out, page = tmp_path / "out.safetensors", tmp_path / "page.html"
    how = ["--method=mtt", "--set=iterations=0", "--inductive"]
    made = gcsr("condense", data, "--nodes", 20, *how, "--out", out)
    size = CondensedGraph.load(out).stored_bytes
    assert visible < size < graph.stored_bytes
    sentence = f"takes {size:,} bytes, the graph that it replaces, stored sparsely, {visible:,}"
    sheet = gcsr("cost", out, "--data", data, "--inductive", *QUICK)
    gcsr("report", out, "--data", data, "--inductive", "--runs", 1, "--epochs", 2, "--out", page)
    shown = gcsr("inspect", out)
    for text in (made.err, sheet.out, page.read_text(), " ".join(shown.out.split())):
        assert sentence in text
    assert f"{size / 1000:.1f} kB instead of {visible} B" in made.out + shown.out
    smaller = gcsr("condense", data, "--nodes", 20, *how, "--dtype", "float16", "--out", out)
    assert "the graph that it replaces" not in smaller.out + smaller.err + gcsr("inspect", out).out


def test_one_run_has_no_deviation(gcsr: Run, data: Path, made: Path) -> None:
    once = gcsr("cost", made, "--data", data, "--epochs", 3, "--sparsify", "none", "--runs", 1)
    assert "gcn, 1 run on" in once.out and "±" not in once.out


def test_json_is_the_sheet(gcsr: Run, data: Path, made: Path) -> None:
    got = gcsr("cost", made, "--data", data, *QUICK, "--json").json
    assert got["dataset"] == "small" and got["recipe"]["epochs"] == 5
    assert len(got["forms"]) == 4 and (got["break_even"] is None or got["break_even"] >= 1)
    assert got["file_bytes"] < made.stat().st_size


def test_pseudo_labels_are_two_more_rows(gcsr: Run, data: Path, made: Path) -> None:
    asked = ["cost", made, "--data", data, *QUICK]
    assert "pseudo-labels" not in gcsr(*asked).out
    small = CondensedGraph.load(made)
    told = small.provenance | {"pseudo_labels": {"pseudo_labels": "consistent"}}
    replace(small, provenance=told).save(made)
    shown = gcsr(*asked)
    assert (shown.code, shown.err) == (0, "")
    got = gcsr(*asked, "--json").json
    rows = {line.strip().partition("  ")[0]: line for line in shown.out.splitlines()}
    mean = got["whole_with_pseudo_labels"]["accuracy"]["mean"]
    assert f"{mean:.1f} ±" in rows["the whole graph with pseudo-labels"]
    assert f"{got['pseudo_labels']['test']:.1f} %" in rows["the pseudo-labels themselves"]
    assert "note: This graph was condensed with pseudo-labels of unlabeled nodes" in shown.out


def test_refusals(gcsr: Run, data: Path, made: Path) -> None:
    assert gcsr("cost", made, "--data", data, "--model", "gone").code == 2
    assert gcsr("cost", made, "--data", data, "--sparsify", "gone").code == 2
    assert gcsr("cost", data, "--data", data).code == 2
