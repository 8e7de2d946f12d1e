"""What the tests of faults share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gcsr.condense import select
from gcsr.experts import forget_experts
from gcsr.training import TrainingRecipe


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No experts but those of the test."""
    monkeypatch.setenv("GCSR_CACHE", str(tmp_path / "cache"))
    forget_experts()
    yield
    forget_experts()


@pytest.fixture(autouse=True)
def quick_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever judges iterates trains for a few epochs only."""
    recipe = TrainingRecipe(epochs=10, validate_every=5)
    monkeypatch.setitem(select.QuickScore.score.__kwdefaults__, "recipe", recipe)
    for name in ("bilevel", "auto"):
        # By name: the package's own attribute is a class.
        module = import_module(f"gcsr.condense.methods.{name}")
        monkeypatch.setattr(module, "QUICK", recipe)
        monkeypatch.setattr(module, "QUICK_HIDDEN", 8)
    monkeypatch.setattr(module, "BRIEF_EMBEDDING", {"hidden": 8, "epochs": 10})
