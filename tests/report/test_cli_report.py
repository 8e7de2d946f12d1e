"""``gcsr report``, and the command it prints."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import torch
from report_helpers import TINY, data_of

from gcsr import CondensedGraph, Graph
from gcsr.reporting.results import command

Run = Callable[..., tuple[int, str, str]]
FAST = ("--runs", 1, "--epochs", 3, "--tsne-nodes", 20, "--device", "cpu")


@pytest.fixture
def files(
    graph: Graph, small: CondensedGraph, other: CondensedGraph, tmp_path: Path
) -> dict[str, Path]:
    return {
        "data": graph.to_npz(tmp_path / "planted.npz"),
        "small": small.save(tmp_path / "small.safetensors"),
        "other": other.save(tmp_path / "other.safetensors"),
        "out": tmp_path / "page.html",
    }


def test_one_result(gcsr: Run, files: dict[str, Path]) -> None:
    words = ["report", files["small"], "--data", files["data"], "--out", files["out"], *FAST]
    code, out, err = gcsr(*words)
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {files['out']} (")
    page = files["out"].read_text()
    assert "planted in 9 nodes" in page and "File: small.safetensors" in page
    assert (
        "of the condensed nodes have the same class as the training node with the most similar"
        in page
    )
    assert {"graph", "map", "heat"} <= data_of(page).keys()
    code, out, err = gcsr(*words, "--no-evaluate", "--json")
    assert code == 0 and json.loads(out)["bytes"] == files["out"].stat().st_size
    assert "No network was trained" in files["out"].read_text()


def test_without_data_the_name_in_the_file_is_not_followed(
    gcsr: Run, files: dict[str, Path]
) -> None:
    code, _, err = gcsr("report", files["small"], "--out", files["out"])
    assert (code, err) == (0, "")
    assert "planted is not a registered dataset; give its file or folder with --data" in (
        files["out"].read_text()
    )


def test_a_known_dataset_is_found_by_the_name_in_the_file(gcsr: Run, tmp_path: Path) -> None:
    small, out = tmp_path / "digits.safetensors", tmp_path / "page.html"
    made = ("condense", "digits", "--nodes", 10, "--method", "random", "--out", small)
    assert gcsr(*made)[0] == 0
    assert gcsr("report", small, "--no-evaluate", "--out", out)[0] == 0
    assert "1000 real nodes" in out.read_text().replace(",", "")
    said = gcsr("report", small, "--no-evaluate", "--tsne-nodes", 40, "--out", out, "-v")
    assert said[0] == 0 and "computing a t-SNE map of 50 nodes" in said[2]
    page = out.read_text()
    assert "CCNS, original" in page and "40 real nodes" in page
    other = CondensedGraph.load(small)
    other.provenance["dataset"]["content_hash"] = "0" * 64
    other.save(small)
    assert gcsr("report", small, "--out", out)[0] == 0
    assert "digits could not be used" in out.read_text()


@pytest.mark.parametrize("folder", [True, False])
def test_compare(gcsr: Run, files: dict[str, Path], tmp_path: Path, folder: bool) -> None:
    given = [tmp_path] if folder else ["--compare", files["small"], files["other"]]
    code, _, err = gcsr("report", *given, "--data", files["data"], "--out", files["out"], *FAST)
    assert (code, err) == (0, "")
    page = unescape(files["out"].read_text())
    assert "planted: 2 results compared" in page
    differing = page[page.index("Settings that differ") : page.index("<details>")]
    named = re.findall(r'<th scope="row">(\w+)</th>', differing)
    assert named == ["alpha"]
    assert "CCNS distance" in page and "condensing" in page


def test_compare_as_json_has_the_accuracies(gcsr: Run, files: dict[str, Path]) -> None:
    given = ["--compare", files["small"], files["other"], "--data", files["data"]]
    code, out, _ = gcsr("report", *given, "--out", files["out"], *FAST, "--json")
    assert code == 0
    scores = json.loads(out)["scores"]
    assert [one["kind"] for one in scores] == ["condensed", "condensed", "random", "whole"]
    assert {one["name"] for one in scores[:2]} == {"small.safetensors", "other.safetensors"}
    page = files["out"].read_text()
    for one in scores:
        assert f"{one['mean']:.1f}" in page and len(one["scores"]) == one["graphs"] * one["runs"]


def test_a_reproduced_folder(gcsr: Run, reproduced: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    code, _, err = gcsr("report", reproduced, "--out", out)
    assert (code, err) == (0, "")
    page = out.read_text()
    assert "Quick smoke runs." in page and "QUICK" not in page
    assert "table5 (quick)" in page and "lines done" in page
    assert "Some rows leak test labels." in page


def test_the_command_makes_the_same_graph_again(
    gcsr: Run, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    how = ("--features", "standardize", "--inductive", "--seed", 3, "--device", "cpu")
    chosen = {**TINY, "tau": 0.7, "iterate": "last"}
    settings = [f"--set={key}={value}" for key, value in chosen.items()]
    first_out = ("--out", "first.safetensors")
    made = gcsr(
        "condense", "planted.npz", "--method=gcsr", "--ratio", 0.4, *settings, *how, *first_out
    )
    assert made[0] == 0
    first = CondensedGraph.load("first.safetensors")
    words = shlex.split(command(first, "again.safetensors"))
    assert words[:3] == ["gcsr", "condense", "planted.npz"] and "beta=1.0" not in words
    assert gcsr(*words[1:])[0] == 0
    again = CondensedGraph.load("again.safetensors")
    assert torch.equal(first.x, again.x) and torch.equal(first.adjacency, again.adjacency)
    assert first.provenance["settings"] == again.provenance["settings"]


def test_the_command_of_an_automatic_result_is_what_was_typed(
    gcsr: Run, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = (
        "gcsr condense planted.npz --nodes 6 --budget 1 --set disable=pseudo-labels --device cpu"
    )
    typed = f"{typed} --out auto.safetensors"
    assert gcsr(*typed.split()[1:])[0] == 0
    first = CondensedGraph.load("auto.safetensors")
    assert command(first, "auto.safetensors") == typed
    longer = first.provenance["settings"] | {"budget": 2.5}
    again = replace(first, provenance=first.provenance | {"settings": longer, "seed": 4})
    assert "--budget 2.5 --set disable=pseudo-labels --seed 4 " in command(again, "x.safetensors")


def test_bad_input_is_one_sentence_and_nothing_is_written(
    gcsr: Run, files: dict[str, Path], tmp_path: Path
) -> None:
    out, small = files["out"], files["small"]
    empty = tmp_path / "empty"
    empty.mkdir()
    notes = tmp_path / "notes.html"
    notes.write_text("<p>mine")
    tested = Graph.from_npz(files["data"])
    untested = replace(tested, test=tested.test[:0]).to_npz(tmp_path / "untested.npz")
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "rows.jsonl").write_text('{"key": "unknown"}\n')
    cases = {
        "no such file or folder": ["report", tmp_path / "none", "--out", out],
        "at least two": ["report", "--compare", small, "--out", out],
        "holds neither": ["report", empty, "--out", out],
        "is given twice": ["report", small, small, "--out", out],
        "belong to no table": ["report", tmp_path / "rows", "--out", out],
        "does not exist": ["report", small, "--out", tmp_path / "no" / "page.html"],
        "is a folder": ["report", small, "--out", empty],
        "got that of a real graph (.npz)": ["report", files["data"], "--out", out],
        "must be one of": ["report", small, "--data", "nothing", "--out", out],
        "model": ["report", small, "--model", "nothing", "--out", out],
        "--out is needed: the file to write.": ["report", small],
        "--out is needed: the file to write.\n": ["update", small, "--data", files["data"]],
        "leave out --data for a page without": ["report", small, "--data", untested, "--out", out],
        "--out must end with .html, got": ["report", small, "--out", tmp_path / "notes.txt"],
        "notes.html exists and is no page of gcsr": ["report", small, "--out", notes],
    }
    for words, argv in cases.items():
        code, told, err = gcsr(*argv)
        assert (code, told) == (2, ""), words
        assert words in err and err.startswith("error: ") and err.count("\n") == 1
    assert not out.exists() and notes.read_text() == "<p>mine"
