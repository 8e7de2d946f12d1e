"""How much memory a process is said to have taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

STATUS = Path("/proc/self/status")
HUGE = 2**30
PEAK = """
import torch
from gcsr.utils.devices import peak_memory_bytes
before = peak_memory_bytes(torch.device("cpu"))
taken = bytearray(before)
del taken
print(before, peak_memory_bytes(torch.device("cpu")))
"""


def run(*words: str) -> list[int]:
    made = [sys.executable, "-c", *words]
    out = subprocess.run(made, capture_output=True, text=True, check=True).stdout
    return [int(number) for number in out.split()]


@pytest.mark.skipif(not STATUS.is_file(), reason="the system does not tell a process's own peak")
@pytest.mark.skipif(torch.version.cuda is not None, reason="CUDA's libraries take memory too")
def test_the_peak_of_a_process_is_not_that_of_its_parent() -> None:
    """What getrusage says on Linux is the larger of the two."""
    started = f"""
import subprocess, sys
taken = bytearray({HUGE})
print(subprocess.run([sys.executable, "-c", sys.argv[1]], capture_output=True, text=True).stdout)
"""
    before, _ = run(started, PEAK)
    assert 0 < before < HUGE


def test_the_peak_is_of_all_that_the_process_has_done() -> None:
    before, after = run(PEAK)
    assert after > 1.5 * before
