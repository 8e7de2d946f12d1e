"""What the automatic mode kept is one line of what `gcsr condense` prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Run

from gcsr.cli.condense import chosen

PLAN = {"iterations": 280}


def automatic(method: str, left_out: object = (), plan: object = None, **settings: Any) -> Any:
    return {
        "chosen": {"method": method, "settings": settings},
        "plan": plan or PLAN,
        "left_out": left_out,
    }


FAILED = [{"method": "bilevel", "settings": {"iterations": 280}, "reason": "diverged"}]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            automatic("bilevel", num_hops=2, iterations=280),
            "bilevel after 2 hops, 280 outer steps",
        ),
        (
            automatic("bilevel", iterations=0),
            "its start (clusters after 1 hop); outer steps did not improve validation accuracy",
        ),
        (
            automatic("bilevel", plan={"iterations": 0}, iterations=0),
            "its start (clusters after 1 hop); no outer steps fit into the budget",
        ),
        (
            automatic("bilevel", FAILED, iterations=0),
            "its start (clusters after 1 hop); outer steps failed (diverged)",
        ),
        (
            automatic("herding"),
            "herding (real training nodes); nothing learned had better validation accuracy",
        ),
    ],
)
def test_what_was_kept_is_named(found: dict[str, Any], sentence: str) -> None:
    assert chosen(found, {}) == sentence


@pytest.mark.parametrize("asked", [{"disable": "hops, bilevel"}, {"iterations": 0}])
def test_steps_that_were_switched_off_are_not_a_matter_of_the_budget(asked: dict[str, Any]) -> None:
    found = automatic("bilevel", plan={"iterations": 0}, iterations=0)
    sentence = "its start (clusters after 1 hop); outer steps were switched off"
    assert chosen(found, {"budget": 240.0, "disable": "", **asked}) == sentence


def test_the_summary_says_it_once(gcsr: Run, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "auto.safetensors"
    done = gcsr("condense", data, "--nodes", 6, "--budget", 1, "--device", "cpu", "--out", out)
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith("chosen: ")]
    assert len(lines) == 1
