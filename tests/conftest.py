"""What every test may ask for."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

# Modules that only an extra of the package brings.
EXTRAS = {"optuna": "tune", "ray": "cluster", "pyarrow": "parquet"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that are marked with ``needs`` are skipped where one of the modules is missing."""
    for mark in item.iter_markers("needs"):
        for module in mark.args:
            if not installed(module):
                pytest.skip(f"the extra '{EXTRAS[module]}' ({module}) is not installed")


def installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real datasets, which are never part of the repository."""
    beside_project = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("GCSR_TEST_DATA") or beside_project)
    if not folder.is_dir():
        pytest.skip("no real datasets: neither $GCSR_TEST_DATA nor ../shared/data is a folder")
    return folder
