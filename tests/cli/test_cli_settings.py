from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cli_helpers import Run

from gcsr import InputError, Random
from gcsr.cli.options import parse_settings
from gcsr.methods import registry


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("iterations=10", {"iterations": 10}),
        ("iterations=1e3", {"iterations": 1000}),
        ("N=10", {"student_steps": 10}),
        ("num_hops=3", {"num_hops": 3}),
        ("hops = 3", {"num_hops": 3}),
        ("expert-epochs=7", {"expert_epochs": 7}),
        ("alpha=2", {"alpha": 2.0}),
        ("eta2=1e-3", {"feature_lr": 1e-3}),
        ("prior=all", {"prior": "all"}),
        ("expert_memory=none", {"expert_memory": None}),
        ("expert_memory=5", {"expert_memory": 5}),
        ("unknown=1=2", {"unknown": "1=2"}),
    ],
)
def test_values_take_the_type_of_the_field(assignment: str, expected: dict[str, Any]) -> None:
    parsed = parse_settings("gcsr", [assignment])
    assert parsed == expected
    assert [type(value) for value in parsed.values()] == [type(v) for v in expected.values()]


@pytest.mark.parametrize(
    "assignment",
    ["iterations=2.5", "iterations=inf", "iterations=none", "alpha=true", "expert_memory=x", "=1"],
)
def test_values_of_another_type_are_refused(assignment: str) -> None:
    with pytest.raises(InputError, match=r"must be|is not accepted"):
        parse_settings("gcsr", [assignment])


def test_one_setting_under_two_names_is_refused() -> None:
    with pytest.raises(InputError, match="must have every setting once, got 'student_steps' twice"):
        parse_settings("gcsr", ["N=1", "student_steps=2"])


def test_settings_of_a_method_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Plugin(Random):
        name: ClassVar[str] = "plugin"
        flag: bool = False
        limit: float | None = None

    monkeypatch.setattr(registry, "_REGISTERED", {})
    registry.register(Plugin)
    assert parse_settings("plugin", ["flag=True", "limit=None"]) == {"flag": True, "limit": None}
    assert parse_settings("plugin", ["flag=false", "limit=2"]) == {"flag": False, "limit": 2.0}
    with pytest.raises(InputError, match="flag must be true or false, got 'maybe'"):
        parse_settings("plugin", ["flag=maybe"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--method=gcsr", "--set=disable=hops"],
            "disable is a setting of the automatic mode, not of gcsr; use method 'auto'.",
        ),
        (
            ["--method=mtt", "--set=budget=3"],
            "budget is a setting of the automatic mode, not of mtt",
        ),
        (
            ["--set=disable=pseudo_labels"],
            "got 'pseudo_labels' (did you mean pseudo-labels?).",
        ),
        (["--set=feature-l=1"], "not a setting of auto (did you mean feature_lr?); accepted: "),
        (["--method=gcon"], "got 'gcon' (did you mean gcond?)."),
        (["--no-downlod"], "not an option of gcsr condense (did you mean --no-download?); see"),
    ],
)
def test_a_slip_is_understood(gcsr: Run, data: Path, words: list[str], said: str) -> None:
    result = gcsr("condense", data, "--nodes", 6, "--estimate", *words)
    assert result.code == 2 and result.err.count("\n") == 1
    assert said in result.err


def test_a_dash_is_as_good_as_an_underscore(gcsr: Run, data: Path) -> None:
    told = gcsr("condense", data, "--nodes", 6, "--estimate", "--set=feature-lr=0.001")
    assert (told.code, told.err) == (0, "")
