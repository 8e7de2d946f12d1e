"""``gcsr condense --sparsify ... --dtype float16`` and what ``inspect`` says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cli_helpers import TINY, Run

from gcsr import CondensedGraph


def test_what_is_stored_and_what_was_lost_is_said(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    how = ["--method", "gcsr", "--sparsify", "top-k=1", "--dtype", "float16"]
    result = gcsr("condense", data, "--nodes", 9, *TINY, *how, "--out", out)
    assert (result.code, result.err) == (0, "")
    assert "stored: top-k=1, float16:" in result.out and "validation accuracy" in result.out
    small = CondensedGraph.load(out)
    assert small.half and small.provenance["stored"]["rule"] == "top-k=1"
    told = gcsr("inspect", out).out
    assert "sparse adjacency, float16" in told
    assert "edges: top-k=1; validation accuracy" in told


def test_precision_of_computing_is_another_thing(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    how = ["--method", "gcsr", "--set", "dtype=float64"]
    gcsr("condense", data, "--nodes", 6, *TINY, *how, "--out", out)
    assert CondensedGraph.load(out).x.dtype == torch.float64
    gcsr("condense", data, "--nodes", 6, *TINY, *how, "--dtype", "float32", "--out", out)
    small = CondensedGraph.load(out)
    assert small.x.dtype == torch.float32
    assert small.provenance["settings"]["dtype"] == "float64"


def test_json_and_several_graphs(gcsr: Run, data: Path, tmp_path: Path) -> None:
    how = ["--method", "random", "--sparsify", "auto", "--graphs", 2, "--json"]
    got = gcsr("condense", data, "--nodes", 6, *how, "--out", tmp_path / "many.safetensors").json
    assert [stored["asked"] for stored in got["stored"]] == ["auto", "auto"]
    assert got["bytes"]["condensed"] == got["stored"][0]["bytes"]["after"]
    plain = ["--method", "random", "--json"]
    got = gcsr("condense", data, "--nodes", 6, *plain, "--out", tmp_path / "one.safetensors").json
    assert got["stored"] == [None]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sparsify", "most"], "error: --sparsify must be auto, none"),
        (["--dtype", "float64"], "error: --dtype must be one of float32"),
    ],
)
def test_bad_words_are_refused_before_the_work(
    gcsr: Run, tmp_path: Path, words: list[str], sentence: str
) -> None:
    result = gcsr(
        "condense", "gone.npz", "--nodes", 6, *words, "--out", tmp_path / "out.safetensors"
    )
    assert result.code == 2 and result.err.startswith(sentence)
