"""Rows name their code, and tables mark the numbers of other code."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import gcsr
from gcsr import version
from gcsr.benchmarking.cells import Protocol, cell
from gcsr.methods.base import code_versions

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("rows")


def test_another_source_is_another_hash(tmp_path, monkeypatch):
    def hash_of(**files: str) -> str:
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.setattr(version, "__file__", str(tmp_path / "version.py"))
        return version.source_hash.__wrapped__()

    first = hash_of(a="x = 1\n", b="")
    assert hash_of(a="x = 1\r\n", b="") == first  # line ends of another system
    assert hash_of(a="x = 2\n") != first
    assert hash_of(a="", b="x = 1\n") != first  # the same text in another file
    assert hash_of(a="x = 1\n", b="", c="") != first


def test_code_is_named_once_and_other_code_beside_the_number(rows):
    now = {"mean": 80.0, "std": 0.1, "versions": code_versions()}
    old = {"mean": 79.0, "std": 0.2, "versions": {"gcsr": "0.1.0"}}
    earlier = now | {"revisions": {"bilevel": gcsr.Bilevel.revision - 1}}
    shown = [f"| {rows.with_deviation(row)} |" for row in (now, now, old, earlier)]
    first, second, third, fourth, _, note = rows.with_code(shown)
    assert first == second == "| 80.0 ± 0.1 |"
    assert {third, fourth} == {"| 79.0 ± 0.2 ¹ |", "| 80.0 ± 0.1 ² |"}
    code = f"version {gcsr.__version__}, source {version.source_hash()[:7]}"
    assert note.startswith(f"Code: {code}. ¹ measured before rows carried")
    assert note.endswith(f"² {code}, an earlier revision of bilevel.")
    assert rows.code_name(now | {"versions": code_versions() | {"gcsr": "0.1.9"}}).endswith(
        "an earlier version"
    )


def test_more_than_nine_codes_have_marks(rows):
    old = [
        {"mean": 1.0, "std": 0.0, "versions": {"gcsr": f"0.{n}", "source": "x"}} for n in range(12)
    ]
    *shown, _, note = rows.with_code([rows.with_deviation(row) for row in old])
    assert [line.partition("0.0")[2] for line in (shown[1], shown[10])] == [" ¹", " ¹⁰"]
    assert "¹⁰ version 0.10, source x" in note


def test_another_revision_is_another_key(monkeypatch):
    one = cell("gcsr", "cora", 70)
    before = one.key(Protocol(), "data"), one.claim(Protocol())
    monkeypatch.setattr(gcsr.GCSR, "revision", gcsr.GCSR.revision + 1)
    after = one.key(Protocol(), "data"), one.claim(Protocol())
    assert all(a != b for a, b in zip(before, after, strict=True))
