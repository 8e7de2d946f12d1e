from __future__ import annotations

import functools
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

# The fuzzer lies beside the tests, and is no part of what is installed.
sys.path.insert(0, str(Path(__file__).parents[2]))

from fuzz.targets import TARGETS
from gcsr import InputError

MIB = 2**20


@pytest.fixture
def refused(tmp_path):
    return functools.partial(_refused, tmp_path)


def _refused(folder: Path, target: str, data: bytes, says: str) -> None:
    """Refused in a sentence, quickly, and without memory to speak of."""
    start = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=says):
            TARGETS[target].attempt(data, folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 128 * MIB
    assert time.perf_counter() - start < 10
