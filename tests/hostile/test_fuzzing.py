"""The fuzzer itself: every target for a few seconds, and the page that tells of the long run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzz.containers import Lines
from fuzz.guard import Guard
from fuzz.run import fuzz_one
from fuzz.table import BEGIN, PAGE, ROWS, with_table
from fuzz.target import FindingError, Target
from fuzz.targets import TARGETS
from gcsr import InputError

SECONDS = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found_in_a_few_seconds(name):
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python or machine")
    fuzzed, said = fuzz_one(name, TARGETS[name].reads, SECONDS)
    assert fuzzed.findings == 0, said[-4000:]
    assert fuzzed.executions > 0
    assert fuzzed.edges > 0


def target(attempt) -> Target:
    return Target("one", "nothing", lambda: [b"seed"], attempt, Lines())


def _crash(data: bytes, folder: Path) -> None:
    raise KeyError("a traceback")


def _lines(data: bytes, folder: Path) -> None:
    raise InputError("two\nlines.")


def _hidden(data: bytes, folder: Path) -> None:
    try:
        raise MemoryError
    except MemoryError:
        raise InputError("refused after trying.") from None


def _memory(data: bytes, folder: Path) -> None:
    bytearray(b"\1") * 300_000_000


@pytest.mark.parametrize(
    ("attempt", "what"),
    [
        (_crash, KeyError),
        (_lines, FindingError),
        (_hidden, FindingError),
        (_memory, FindingError),
    ],
)
def test_the_guard_sees_what_it_is_there_for(attempt, what):
    with pytest.raises(what):
        Guard(target(attempt))(b"data")


def test_the_guard_lets_a_refusal_pass():
    def refuse(data: bytes, folder: Path) -> None:
        raise InputError("one sentence.")

    guard = Guard(target(refuse))
    guard(b"data")
    assert (guard.executions, guard.accepted) == (1, 0)


def test_the_page_holds_the_rows():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == 1
    assert with_table(page) == page, "run: python -m fuzz table"


def test_the_rows_are_of_every_target_and_found_nothing():
    rows = json.loads((PAGE.parents[1] / ROWS).read_text(encoding="utf-8"))
    assert {row["target"] for row in rows} == set(TARGETS)
    assert all(row["findings"] == 0 and row["executions"] > 0 for row in rows)
