from __future__ import annotations

from pathlib import Path

import pytest
from cli_helpers import TINY, Run

from gcsr import CondensedGraph


def test_text(gcsr: Run, data: Path, made: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    result = gcsr("analyze", made, "--data", data)
    assert (result.code, result.err) == (0, "")
    for words in ("edge homophily", "CCNS", "silhouette", "condensed by gcsr", "density nnz/N²"):
        assert words in result.out, words
    assert "small (whole graph)" in result.out and "leak" not in result.out
    assert sorted(tmp_path.iterdir()) == before


def test_a_condensed_graph_without_edges(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    made = ["--method", "clusters", "--set", "pseudo_labels=gcn"]
    assert gcsr("condense", data, "--nodes", 6, *made, "--out", out).code == 0
    said = gcsr("analyze", out, "--data", data).out
    assert "CCNS: nothing to compare, the condensed graph has no edges\n" in said
    (row,) = [line for line in said.splitlines() if "CCNS within classes" in line]
    assert row.split("  ")[-1].strip() == "no edges" and "-" not in row


def test_json_is_one_object(gcsr: Run, data: Path, made: Path) -> None:
    words = ["analyze", made, "--data", data, "--json", "--tsne-nodes", 10, "--nearest", 3]
    result = gcsr(*words, "--space", "start")
    assert (result.code, result.err) == (0, "")
    got = result.json
    assert (got["dataset"], got["method"], got["condensed"]["nodes"]) == ("small", "gcsr", 6)
    assert len(got["original"]["ccns"]) == 3 and 0 <= got["original"]["ccns"][0][1] <= 1
    assert len(got["map"]["real"]) == 10 and len(got["nearest"]["nodes"][0]) == 3
    assert got["space"] == {"name": "start", "hops": 2}
    assert gcsr(*words, "--space", "start").json == got
    assert gcsr(*words, "--tsne-nodes", 0).json["map"] is None


@pytest.mark.parametrize("there", [True, False])
def test_figures(gcsr: Run, data: Path, made: Path, tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "figures"
    if there:
        folder.mkdir()
    words = ["analyze", made, "--data", data, "--figures", folder, "--tsne-nodes", 10]
    result = gcsr(*words, *(["--json"] if there else []))
    assert (result.code, result.err) == (0, "")
    names = ("ccns", "adjacency", "gram", "tsne", "distributions")
    wanted = {str(folder / f"{name}.{kind}") for name in names for kind in ("png", "svg")}
    assert {str(path) for path in folder.iterdir()} == wanted
    assert all(path.stat().st_size for path in folder.iterdir())
    told = result.json["figures"] if there else result.out.split("wrote ")[1:]
    assert {path.strip() for path in told} == wanted


def test_data_are_loaded_as_they_were_condensed(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    how = ["--features", "standardize", "--inductive"]
    assert gcsr("condense", data, "--nodes", 6, *TINY, *how, "--out", out).code == 0
    got = gcsr("analyze", out, "--data", data, "--tsne-nodes", 0, "--json").json
    assert (got["original_part"], got["original"]["nodes"]) == ("training nodes", 20)
    refused = gcsr("analyze", out, "--data", data, "--transductive")
    assert refused.code == 2 and "inductive" in refused.err
    whole = gcsr("analyze", out, "--data", data, "--transductive", "--no-check-origin")
    assert whole.code == 0 and "whole graph" in whole.out


def test_a_leak_is_told(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    assert gcsr("condense", data, "--nodes", 6, *TINY, "--set=prior=all", "--out", out).code == 0
    assert CondensedGraph.load(out).leaks_test_labels
    assert "leaks test labels" in gcsr("analyze", out, "--data", data).out
