from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cli_helpers import TINY, Run, folder_content, program, small_graph, unwrapped

from gcsr import CondensedGraph, InputError
from gcsr.cli.data import output_paths


def test_one_graph_goes_exactly_to_out(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "any.name.safetensors"
    result = gcsr("condense", data, "--nodes", 6, *TINY, "--out", out)
    assert (result.code, result.err) == (0, "")
    assert f"wrote {out}" in result.out and "6 nodes" in result.out
    assert re.search(r", condensed in \d+\.\d s$", result.out, re.MULTILINE)
    assert "leaks test labels" not in result.out
    assert CondensedGraph.load(out).num_nodes == 6


def test_json_object(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    result = gcsr("condense", data, "--ratio", 0.1, *TINY, "--seed", 3, "--out", out, "--json")
    assert (result.code, result.err) == (0, "")
    got = result.json
    assert got["out"] == str(out) and got["files"] == [str(out)]
    assert got["nodes"] == 6 and got["ratio"] == pytest.approx(0.1)
    assert got["seconds"] > 0 and got["leaks_test_labels"] is False
    assert got["method"] == "gcsr" and got["preset"] == "default" and got["seeds"] == [3]
    assert got["settings"]["iterations"] == 2 and got["settings"]["expert_epochs"] == 4


def test_a_scaling_chosen_on_validation_is_kept_for_what_follows(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.safetensors"
    argv = ["condense", data, "--nodes", 6, "--method", "random", "--features", "auto"]
    result = gcsr(*argv, "--out", out, "--json")
    assert (result.code, result.err) == (0, "")
    scaling = result.json["scaling"]
    assert scaling["chosen"] == result.json["features"]
    assert scaling["validation"][scaling["chosen"]] == max(scaling["validation"].values())
    assert CondensedGraph.load(out).provenance["scaling"] == scaling
    assert "chosen on validation: keep" in gcsr(*argv, "--out", out).out
    assert gcsr("evaluate", out, "--data", data, "--runs", 1).code == 0
    another = {"keep": "rows", "rows": "standardize", "standardize": "keep"}[scaling["chosen"]]
    refused = gcsr("evaluate", out, "--data", data, "--runs", 1, "--features", another)
    assert refused.code == 2 and "feature scaling" in refused.err


def test_several_graphs_are_numbered_beside_out(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "many.safetensors"
    argv = ["condense", data, "--nodes", 6, *TINY, "--out", out]
    result = gcsr(*argv, "--seed", 5, "--graphs", 2, "--json")
    files = [tmp_path / "many-0.safetensors", tmp_path / "many-1.safetensors"]
    assert result.json["files"] == [str(path) for path in files]
    assert result.json["seeds"] == [5, 6]
    assert not out.exists()
    first, second = (CondensedGraph.load(path) for path in files)
    assert (first.provenance["seed"], second.provenance["seed"]) == (5, 6)
    assert gcsr(*argv, "--seed", 6).code == 0
    torch.testing.assert_close(CondensedGraph.load(out).x, second.x, atol=1e-6, rtol=1e-5)


def test_names_of_several_files(tmp_path: Path) -> None:
    names = [path.name for path in output_paths(tmp_path / "b.c.safetensors", 2)]
    assert names == ["b.c-0.safetensors", "b.c-1.safetensors"]


def test_the_same_seed_gives_the_same_graph(gcsr: Run, tmp_path: Path) -> None:
    graphs = []
    for name in ("one.safetensors", "two.safetensors"):
        out = tmp_path / name
        result = gcsr("condense", "digits", "--nodes", 20, *TINY, "--seed", 7, "--out", out)
        assert result.code == 0, result.err
        graphs.append(CondensedGraph.load(out))
    one, two = graphs
    for field in ("x", "adjacency", "y"):
        assert torch.equal(getattr(one, field), getattr(two, field))
    for graph in graphs:
        assert graph.provenance.pop("measured")["seconds"] > 0
    assert one.provenance == two.provenance
    other = tmp_path / "other.safetensors"
    gcsr("condense", "digits", "--nodes", 20, *TINY, "--seed", 8, "--out", other)
    assert not torch.equal(CondensedGraph.load(other).x, one.x)


@pytest.mark.parametrize("method", ["mtt", "random"])
def test_other_methods(gcsr: Run, data: Path, tmp_path: Path, method: str) -> None:
    out = tmp_path / "out.safetensors"
    tiny = TINY if method == "mtt" else []
    result = gcsr("condense", data, "--nodes", 6, *tiny, "--method", method, "--out", out)
    assert result.code == 0, result.err
    assert CondensedGraph.load(out).provenance["method"] == method


def test_how_the_data_are_seen_is_recorded(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    argv = ["condense", data, "--nodes", 6, *TINY, "--out", out]
    assert gcsr(*argv, "--features", "standardize", "--inductive").code == 0
    source = CondensedGraph.load(out).provenance["dataset"]
    assert (source["features"], source["inductive"]) == ("standardize", True)
    assert gcsr(*argv, "--transductive", "--undirected").code == 0
    source = CondensedGraph.load(out).provenance["dataset"]
    assert (source["features"], source["inductive"]) == ("keep", False)


def test_a_leak_is_told_by_every_verb(gcsr: Run, tmp_path: Path) -> None:
    # The preset goes by the graph's name, which is the file's.
    data = small_graph().to_npz(tmp_path / "cora.npz")
    out = tmp_path / "out.safetensors"
    argv = ["condense", data, "--nodes", 6, "--preset", "paper", *TINY, "--out", out]
    evaluate = ["evaluate", out, "--data", data, "--runs", 1, "--epochs", 2]
    for verb in (argv, evaluate, ["inspect", out]):
        told = gcsr(*verb)
        assert told.code == 0, told.err
        assert "leaks test labels" in told.out and "not a fair score" in told.out
        assert gcsr(*verb, "--json").json["leaks_test_labels"] is True
    # The prior is the one setting that leaks, and a setting wins over the preset.
    assert "leaks test labels" not in gcsr(*argv, "--set", "prior=train").out


def test_what_another_graph_takes_the_place_of_is_said(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.safetensors"
    first = ["condense", data, "--nodes", 6, *TINY, "--out", out]
    # Nothing was there, and then the same graph.
    for _ in range(2):
        assert "replaced" not in gcsr(*first).out
    held = f"replaced {out}, which held 6 nodes by gcsr"
    other = gcsr(*first, "--seed", 1, "--set", "alpha=2")
    assert f"{held} (differs in: alpha, seed)\nwrote {out}\n" in other.out
    small_graph(seed=1).to_npz(data)
    kept = ["--seed", 1, "--set", "alpha=2"]
    assert gcsr(*first, *kept, "--json").json["replaced"] == [f"{held} (differs in: data)"]
    half = gcsr(*first, *kept, "--sparsify", "top-k=1", "--dtype", "float16").out
    assert f"{held} (differs in: sparsify, stored dtype)" in half
    picked = ["condense", data, "--nodes", 6, "--method", "random", "--out", out]
    assert f"{held} (differs in: method, seed, sparsify, stored dtype)" in gcsr(*picked).out


def test_nothing_but_a_condensed_graph_is_replaced(gcsr: Run, data: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.safetensors"
    notes.write_text("my notes")
    words = ["condense", data, "--nodes", 6, *TINY, "--out"]
    for place, said in (
        (notes, "exists and is no condensed graph"),
        (data, "out must end with .safetensors"),
    ):
        held = place.read_bytes()
        refused = gcsr(*words, place)
        assert refused.code == 2 and said in refused.err and str(place) in refused.err
        assert place.read_bytes() == held


def test_a_failed_write_leaves_nothing(
    gcsr: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = CondensedGraph.save

    def fail(graph: CondensedGraph, path: Any) -> Path:
        if graph.provenance["seed"]:
            raise InputError("the disk is full.")
        return save(graph, path)

    monkeypatch.setattr(CondensedGraph, "save", fail)
    before = folder_content(tmp_path)
    # A long run would keep its state, and on a busy machine any run is long.
    words = ["condense", data, "--nodes", 6, *TINY, "--graphs", 2, "--no-checkpoint"]
    result = gcsr(*words, "--out", tmp_path / "out.safetensors")
    assert (result.code, result.err) == (2, "error: the disk is full.\n")
    assert folder_content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["small.npz"]


def test_ctrl_c_while_writing_waits_for_the_file(
    gcsr: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = CondensedGraph.save

    def press_and_save(graph: CondensedGraph, path: Any) -> Path:
        signal.raise_signal(signal.SIGINT)
        return save(graph, path)

    monkeypatch.setattr(CondensedGraph, "save", press_and_save)
    out = tmp_path / "out.safetensors"
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        result = gcsr("condense", data, "--nodes", 6, *TINY, "--out", out)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert result.code == 130
    assert result.err == f"interrupted; written before that: {out}\n"
    assert CondensedGraph.load(out).num_nodes == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.safetensors", "small.npz"]


def test_an_automatic_result_tells_what_was_chosen(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "auto.safetensors"
    words = ["condense", data, "--nodes", 6, "--set=iterations=2", "--device", "cpu", "--out", out]
    made = gcsr(*words, "--json").json
    chosen = made["chosen"][0]["method"]
    assert made["method"] == "auto" and len(made["chosen"]) == 1
    rows = unwrapped(gcsr("inspect", out).out)
    compared = [row for row in rows if row.startswith("compared ")]
    assert compared[0].startswith(f"compared {chosen} ") and "(chosen)" in compared[0]
    assert sum("(chosen)" in row for row in compared) == 1
    assert {"random", "herding", "bilevel"} <= {row.split()[1].rstrip(":") for row in compared}
    # The rounds come in their order, and the plan before them.
    both = [row for row in compared if "quick" in row and "final" in row]
    assert both and all(row.index("quick ") < row.index("final ") for row in both)
    (plan,) = (row for row in rows if row.startswith("plan "))
    assert "hops=[1, 0, 2], iterations=2" in plan and rows.index(plan) < rows.index(compared[0])


def test_a_budget_below_the_least_is_a_sentence_on_stderr(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    words = ["condense", data, "--nodes", 6, "--set=pseudo-labels=none", "--budget", 0.001]
    made = program(*words, "--out", "a.safetensors", "--json", cwd=tmp_path)
    assert made.code == 0 and made.json["method"] == "auto"
    (warning,) = made.err.splitlines()
    assert warning.startswith("warning: without outer steps: ") and warning.endswith(
        " s allows them."
    )
    (note,) = made.json["notes"][-1:]
    assert warning == f"warning: {note}."
    shown = gcsr(*words, "--out", tmp_path / "b.safetensors")
    assert shown.err.splitlines() == [warning] and note not in shown.out
    quiet = gcsr(*words, "--out", tmp_path / "b.safetensors", "--quiet")
    assert quiet.err == "" and f"note: {note}" in quiet.out
    estimate = gcsr(*words, "--estimate")
    assert (estimate.code, estimate.err) == (0, "") and "on one reference core" in estimate.out
    # The seconds on this machine, with those of a reference core beside them.
    first, second = estimate.out.splitlines()
    found = re.match(
        r"in memory, on this machine: (\S+ s to condense) \(\d+ s on one reference core\), ", first
    )
    assert found is not None
    assert "to condense" not in second or found[1] in second


def test_an_extreme_scale_and_missing_validation_nodes_are_one_sentence_each(
    gcsr: Run, data: Path, tmp_path: Path
) -> None:
    arrays = dict(np.load(data))
    arrays["x"][:, 0] = np.linspace(-1e9, 1e9, 60)
    del arrays["val"], arrays["test"]
    np.savez(tmp_path / "wild.npz", **arrays)
    out = tmp_path / "out.safetensors"
    argv = ["condense", tmp_path / "wild.npz", "--nodes", 6, "--method", "random", "--out", out]
    result = gcsr(*argv)
    assert result.code == 0
    first, second = result.err.splitlines()
    assert first.startswith("warning: val is not given: ")
    assert second.startswith(
        "warning: columns of x have very different scales (column 0: up to 1e+09"
    )
    assert "note: val" not in result.out and "chosen on validation: keep" in result.out
    assert CondensedGraph.load(out).provenance["dataset"]["features"] != "keep"
    assert len(gcsr(*argv, "--json").json["notes"]) == 2
    refused = gcsr("evaluate", out, "--data", tmp_path / "wild.npz")
    assert refused.code == 2 and "test must have at least one labeled node" in refused.err


def test_a_wrong_feature_scaling_lists_auto_too(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "small.safetensors"
    result = gcsr("condense", data, "--nodes", 6, "--features", "stand", "--out", out)
    assert result.code == 2
    assert result.err == (
        "error: --features must be one of auto, keep, rows, standardize, got 'stand'.\n"
    )
    assert not out.exists()
