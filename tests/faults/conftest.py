"""What the tests of faults share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gcsr.engines import iterates as select
from gcsr.training.fit import TrainingRecipe
from gcsr.training.obtain_experts import forget_experts


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
    for place in ("methods.bilevel", "auto.automatic"):
        module = import_module(f"gcsr.{place}")
        monkeypatch.setattr(module, "QUICK", recipe)
        monkeypatch.setattr(module, "QUICK_HIDDEN", 8)
    monkeypatch.setattr(module, "BRIEF_EMBEDDING", {"hidden_channels": 8, "epochs": 10})
