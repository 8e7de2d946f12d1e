from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_helpers import TINY, Run, small_graph, unwrapped

from gcsr import CondensedGraph

QUICK = ["--runs", 2, "--epochs", 3]


def test_json_is_one_object(gcsr: Run, data: Path, made: Path) -> None:
    result = gcsr("evaluate", made, "--data", data, *QUICK, "--json")
    assert (result.code, result.err) == (0, "")
    got = result.json
    assert (got["model"], got["dataset"], got["nodes"]) == ("gcn", "small", 6)
    assert len(got["scores"]) == 2 and 0 <= got["mean"] <= 100 and got["std"] >= 0
    assert got["mean"] == pytest.approx(sum(got["scores"]) / 2)
    assert got["recipe"]["epochs"] == 3 and got["trained_on"] == "condensed"
    again = gcsr("evaluate", made, "--data", data, *QUICK, "--json").json
    assert again["scores"] == got["scores"]


def test_text(gcsr: Run, data: Path, made: Path) -> None:
    result = gcsr("evaluate", made, "--data", data, *QUICK, "--model", "mlp", "--dropout", 0.5)
    assert (result.code, result.err) == (0, "")
    assert (
        "% on small (mlp trained on 6 nodes, 2 runs; ±: 95 % interval over runs; std " in result.out
    )
    assert "leak" not in result.out


def test_several_files_are_pooled(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "many.safetensors"
    gcsr("condense", data, "--nodes", 6, *TINY, "--graphs", 3, "--out", out)
    files = [tmp_path / f"many-{i}.safetensors" for i in range(3)]
    got = gcsr("evaluate", *files, "--data", data, *QUICK, "--json").json
    assert (got["graphs"], got["runs"], len(got["scores"])) == (3, 2, 6)


def test_a_file_given_twice_is_refused(gcsr: Run, data: Path, made: Path) -> None:
    result = gcsr("evaluate", made, made, "--data", data, *QUICK)
    assert result.code == 2
    assert result.err == f"error: FILE must be different files, got {made.resolve()} twice.\n"


def test_files_of_other_settings_have_rows_of_their_own(
    gcsr: Run, data: Path, made: Path, tmp_path: Path
) -> None:
    random = tmp_path / "random.safetensors"
    gcsr("condense", data, "--nodes", 9, "--method=random", "--graphs", 2, "--out", random)
    files = [tmp_path / "random-0.safetensors", made, tmp_path / "random-1.safetensors"]
    asked = ["evaluate", *files, "--data", data, *QUICK]
    rows = gcsr(*asked, "--json").json
    assert [(row["method"], row["nodes"], row["graphs"]) for row in rows] == [
        ("random", 9, 2),
        ("gcsr", 6, 1),
    ]
    assert rows[0]["files"] == [str(files[0]), str(files[2])]
    alone = gcsr("evaluate", made, "--data", data, *QUICK, "--json").json
    assert rows[1]["scores"] == alone["scores"]
    shown = gcsr(*asked, "--metrics").out
    for row in rows:
        (line,) = [one for one in shown.splitlines() if one.split()[:1] == [row["method"]]]
        assert f" {row['nodes']} " in line and f"{row['mean']:.1f} ± " in line


def test_the_whole_graph(gcsr: Run, data: Path) -> None:
    got = gcsr("evaluate", "--full", "--data", data, *QUICK, "--json").json
    assert got["trained_on"] == "whole graph" and got["nodes"] == 60
    assert "whole graph" in gcsr("evaluate", "--full", "--data", data, *QUICK).out


def test_pseudo_labels_of_the_whole_graph(gcsr: Run, data: Path) -> None:
    asked = ["evaluate", "--full", "--data", data, "--pseudo-labels", *QUICK]
    got = gcsr(*asked, "--json").json
    assert got["trained_on"] == "whole graph, pseudo-labels" and got["nodes"] == 60
    labels = got["pseudo_labels"]
    assert set(labels) == {"test", "validation"} and labels["test"] > 50
    shown = gcsr(*asked)
    assert (shown.code, shown.err) == (0, "")
    first, second, third = shown.out.splitlines()
    assert first == (
        f"{got['mean']:.1f} ± {(got['interval'][1] - got['interval'][0]) / 2:.1f} % on small"
        " (gcn trained on the whole graph with pseudo-labels, 2 runs; ±: 95 % interval over"
        f" {got['interval_over']}; std {got['std']:.1f} over 2 runs)"
    )
    assert second == f"{labels['test']:.1f} % on small (the pseudo-labels themselves)"
    assert third.startswith("trained on the whole graph for 3 epochs, seed 0: ")


def test_pseudo_labels_need_the_whole_transductive_graph(gcsr: Run, data: Path, made: Path) -> None:
    refused = gcsr("evaluate", made, "--data", data, "--pseudo-labels", *QUICK)
    assert refused.code == 2 and refused.out == ""
    assert "--pseudo-labels is for the whole graph; give --full" in refused.err
    hidden = gcsr("evaluate", "--full", "--data", data, "--inductive", "--pseudo-labels", *QUICK)
    assert hidden.code == 2 and "--pseudo-labels must be false for the inductive" in hidden.err


def test_data_are_loaded_as_they_were_condensed(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    how = ["--features", "standardize", "--inductive"]
    assert gcsr("condense", data, "--nodes", 6, *TINY, *how, "--out", out).code == 0
    assert gcsr("evaluate", out, "--data", data, *QUICK).code == 0
    # What is said outright wins, and is then another graph than the one condensed.
    refused = gcsr("evaluate", out, "--data", data, "--features", "rows", *QUICK)
    assert refused.code == 2 and "content hash" in refused.err


def test_files_that_disagree_need_a_word(gcsr: Run, data: Path, tmp_path: Path) -> None:
    files = []
    for scaling in ("rows", "keep"):
        files.append(tmp_path / f"{scaling}.safetensors")
        gcsr("condense", data, "--nodes", 6, *TINY, "--features", scaling, "--out", files[-1])
    refused = gcsr("evaluate", *files, "--data", data, *QUICK, "--no-check-origin")
    assert refused.code == 2 and "features" in refused.err and "keep, rows" in refused.err
    given = gcsr(
        "evaluate", *files, "--data", data, *QUICK, "--no-check-origin", "--features", "keep"
    )
    assert given.code == 0


@pytest.mark.parametrize("verb", ["evaluate", "cost", "analyze"])
def test_data_are_found_by_the_name_in_the_file(gcsr: Run, tmp_path: Path, verb: str) -> None:
    out = tmp_path / "out.safetensors"
    gcsr("condense", "digits", "--nodes", 10, "--method", "random", "--out", out)
    quick = [] if verb == "analyze" else ["--runs", 1, "--epochs", 2, "--model", "mlp"]
    found = gcsr(verb, out, *quick)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("data: digits, which the file says it was made from\n")
    assert "data:" not in gcsr(verb, out, "--data", "digits", *quick).out
    if verb == "evaluate":
        assert gcsr(verb, out, *quick, "--json").json["dataset"] == "digits"
        other = CondensedGraph.load(out)
        other.provenance["dataset"]["content_hash"] = "0" * 64
        other.save(out)
        refused = gcsr(verb, out, *quick)
        assert refused.code == 2 and "content hash 000000000000, but digits has" in refused.err


def test_files_of_different_datasets_name_none(gcsr: Run, made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    gcsr("condense", "digits", "--nodes", 10, "--method", "random", "--out", out)
    refused = gcsr("evaluate", out, made, *QUICK)
    assert refused.code == 2
    assert "--data is needed: the files were made from different datasets (digits, " in refused.err


def test_any_graph_accepts_another_one(gcsr: Run, made: Path, tmp_path: Path) -> None:
    other = small_graph(seed=1).to_npz(tmp_path / "other.npz")
    assert gcsr("evaluate", made, "--data", other, *QUICK).code == 2
    assert gcsr("evaluate", made, "--data", other, *QUICK, "--no-check-origin").code == 0


def test_inspect_says_it_all(gcsr: Run, made: Path) -> None:
    result = gcsr("inspect", made)
    assert (result.code, result.err) == (0, "")
    for word in (
        "made.safetensors",
        "gcsr, preset default",
        "small: 60 nodes",
        "transductive",
        "nodes per class",
        "edges above 0.01",
        "alpha=1.0",
        "iterations=2",
        "torch=",
        "on cpu",
    ):
        assert word in result.out, word


def test_one_edge_is_one_edge(gcsr: Run, tmp_path: Path) -> None:
    adjacency = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    graph = CondensedGraph(torch.ones(3, 2), adjacency, torch.zeros(3, dtype=torch.int64), 1)
    shown = gcsr("inspect", graph.save(tmp_path / "one.safetensors")).out
    assert "1 edge above 0.01 (33.3 % of all pairs)" in shown
    assert re.search(r"^labels .*, 1 class\s*$", shown, re.MULTILINE)


def test_inspect_says_that_a_run_was_resumed_and_that_it_went_back(gcsr: Run, made: Path) -> None:
    assert "resumed" not in gcsr("inspect", made).out
    graph = CondensedGraph.load(made)
    back = "the loss was not finite by iteration 100: the run went back to iteration 50"
    told = {"measured": {**graph.provenance["measured"], "resumed": True}, "notes": [back]}
    replace(graph, provenance=graph.provenance | told).save(made)
    shown = gcsr("inspect", made).out
    assert re.search(r"^resumed +from what an earlier run left behind", shown, re.MULTILINE)
    assert f"note {back}" in unwrapped(shown)


def test_inspect_fits_a_pipe_and_loses_nothing(gcsr: Run, made: Path) -> None:
    graph = CondensedGraph.load(made)
    note, hashed = "a b " * 100, graph.provenance["dataset"]["content_hash"]
    replace(graph, provenance=graph.provenance | {"notes": [note]}).save(made)
    shown = gcsr("inspect", made).out
    file, *lines = shown.splitlines()
    assert file.endswith(f" {made}") and max(map(len, lines)) <= 80
    rows = unwrapped(shown)
    assert f"note {note.strip()}" in rows and f"content hash {hashed}" in rows
    settings = [f"{key}={value}" for key, value in graph.provenance["settings"].items()]
    (row,) = [row for row in rows if row.startswith("settings ")]
    assert all(one in row for one in settings if not one.endswith("=None"))


def test_inspect_json_is_what_the_library_describes(gcsr: Run, made: Path) -> None:
    described = CondensedGraph.load(made).describe()
    assert gcsr("inspect", made, "--json").json == json.loads(json.dumps(described))


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"settings": 3, "notes": "n", "measured": None, "bytes": []},
        {"method": "[bold]\x1b[31m", "dataset": {"name": None}, "notes": ["a\nb"]},
    ],
)
def test_inspect_of_a_file_with_another_history(
    gcsr: Run, made: Path, tmp_path: Path, provenance: dict[str, Any]
) -> None:
    graph = CondensedGraph.load(made)
    path = tmp_path / "strange.safetensors"
    CondensedGraph(graph.x, graph.adjacency, graph.y, graph.num_classes, provenance).save(path)
    result = gcsr("inspect", path)
    assert (result.code, result.err) == (0, "")
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        (
            {
                "labeler": "gcn",
                "validation": {"consistent": 0.953125, "gcn": 0.98},
                "temperature": 1.5,
            },
            "labeler=gcn, temperature=1.5: consistent 95.3 %, gcn 98.0 %",
        ),
        ({"labeler": "gcn", "temperature": None}, "labeler=gcn"),
        ({"labeler": "gcn", "validation": {"gcn": "x"}}, "labeler=gcn, validation={'gcn': 'x'}"),
    ],
)
def test_inspect_shows_accuracies_of_pseudo_labelers_as_percentages(
    gcsr: Run, made: Path, tmp_path: Path, labels: dict[str, Any], shown: str
) -> None:
    graph, path = CondensedGraph.load(made), tmp_path / "labeled.safetensors"
    replace(graph, provenance=graph.provenance | {"pseudo_labels": labels}).save(path)
    assert f"pseudo-labels {shown}" in unwrapped(gcsr("inspect", path).out)


def test_inspect_leaves_out_what_is_not_known(gcsr: Run, made: Path, tmp_path: Path) -> None:
    bare = replace(CondensedGraph.load(made), provenance={"method": "imported"})
    rows = unwrapped(gcsr("inspect", bare.save(tmp_path / "bare.safetensors")).out)
    names = [row.split()[0] for row in rows]
    assert "method imported" in rows and not {"seed", "settings", "versions", "cost"} & set(names)
    assert not any(row.endswith((" None", " ?")) for row in rows)


def test_inspect_shows_the_updates_behind_a_file(gcsr: Run, made: Path, tmp_path: Path) -> None:
    graph = CondensedGraph.load(made)
    earlier = [
        {
            "graph": "ab12",
            "nodes": 6,
            "method": "bilevel",
            "seed": 0,
            "dataset": {"name": "small", "num_nodes": 50},
            "iterations": 12,
            "seconds": 3.25,
        },
        {"graph": "cd34", "nodes": 6, "method": "update", "seed": 1, "dataset": {}},
        "damaged",
    ]
    update = {"kept": 6, "added": [0, 1, 0], "chosen": "updated"}
    provenance = graph.provenance | {"history": earlier, "update": update}
    path = tmp_path / "updated.safetensors"
    replace(graph, provenance=provenance).save(path)
    rows = unwrapped(gcsr("inspect", path).out)
    assert (
        "history 0 6 nodes by bilevel, seed 0, from small with 50 nodes; 12 outer steps, 3.2 s;"
        " graph ab12"
    ) in rows
    assert "history 1 6 nodes by update, seed 1, from None with None nodes; graph cd34" in rows
    assert "update added=[0, 1, 0], chosen=updated, kept=6" in rows


def test_inspect_knows_no_structure(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    gcsr("condense", data, "--nodes", 6, *TINY, "--method", "mtt", "--out", out)
    assert "none (the identity)" in gcsr("inspect", out).out


def test_metrics(gcsr: Run, data: Path, made: Path) -> None:
    asked = ["evaluate", made, "--data", data, *QUICK, "--metrics"]
    got = gcsr(*asked, "--json").json
    assert set(got["metrics"]) == {"macro_f1", "balanced_accuracy", "auc", "calibration_error"}
    assert all(len(values) == 2 for values in got["metrics"].values())
    shown = gcsr(*asked).out.splitlines()
    assert "% on small" in shown[0]
    assert re.fullmatch(r"macro-F1 [\d.]+ %, balanced .* %, calibration .* %, AUC .* %", shown[1])


def test_long_evaluations_print_a_line_per_run_in_a_pipe(
    gcsr: Run, data: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcsr.cli.output.QUIET_SECONDS", 0.0)
    result = gcsr("evaluate", made, "--data", data, "--runs", 3, "--epochs", 3, "--model", "gat")
    lines = result.err.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == [
        f"training gat: {run} of 3 runs" for run in (1, 2, 3)
    ]


def test_lines_count_the_runs_of_all_files(
    gcsr: Run, data: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.safetensors"
    gcsr("condense", data, "--nodes", 6, "--method", "random", "--out", other)
    monkeypatch.setattr("gcsr.cli.output.QUIET_SECONDS", 0.0)
    files = (made, other)
    result = gcsr("evaluate", *files, "--data", data, "--runs", 2, "--epochs", 3, "--model", "gat")
    assert [line.rpartition(",")[0] for line in result.err.splitlines()] == [
        f"training gat: {run} of 4 runs" for run in (1, 2, 3, 4)
    ]
