"""What every test may ask for."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import gcsr
from gcsr.version import source_hash

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


# -- `make test-cuda` leaves a row --------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", type=Path, help="append a row with what was run to this JSON file")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Counts, device and versions of a run on CUDA, in the file given by ``--rows``."""
    path: Path | None = config.getoption("--rows")
    if path is None:
        return
    counts = {
        kind: len(terminalreporter.getreports(kind))
        for kind in ("passed", "failed", "error", "skipped")
    }
    if not torch.cuda.is_available():
        terminalreporter.write_line("no CUDA device: no row is written")
        return
    row = {
        "date": datetime.now(UTC).date().isoformat(),
        **counts,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "gcsr": gcsr.__version__,
        "source": source_hash(),
        "accuracy": {
            str(name): value
            for kind in ("passed", "failed")
            for report in terminalreporter.getreports(kind)
            for name, value in report.user_properties
        },
    }
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    path.write_text(json.dumps([*rows, row], indent=1) + "\n", encoding="utf-8")
    terminalreporter.write_line(f"wrote a row to {path}")
