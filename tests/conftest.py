"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real datasets, which are never part of the repository."""
    beside_project = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("GCSR_TEST_DATA") or beside_project)
    if not folder.is_dir():
        pytest.skip("no real datasets: neither $GCSR_TEST_DATA nor ../shared/data is a folder")
    return folder
