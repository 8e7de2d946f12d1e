"""The list of planted faults fits the sources, and the tool tells caught from survived."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mutants import __main__ as tool
from mutants.faults import FAULTS, Fault

TESTS = "tests/equations/test_propagation.py"
# In a process of its own, which has not imported gcsr.
PROGRAM = """
from mutants.__main__ import outcomes
from mutants.faults import FAULTS, Fault
first = FAULTS[0]
harmless = Fault("none", first.file, first.old, first.old + "  # the same", first.tests)
for fault, caught_by, _ in outcomes([(first, first.tests), (harmless, first.tests)], 1):
    print(fault.what, caught_by, sep=": ")
"""


def test_every_fault_is_at_one_place_and_its_tests_exist():
    assert len(FAULTS) >= 60 and len({(fault.file, fault.old) for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        text = (tool.ROOT / "src" / "gcsr" / fault.file).read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, fault.what
        compile(text.replace(fault.old, fault.new), fault.file, "exec")
        for test in fault.tests:
            file, _, name = test.partition("::")
            assert (tool.ROOT / file).exists(), fault.what
            assert not name or f"def {name}(" in (tool.ROOT / file).read_text(encoding="utf-8")


def test_the_page_is_that_of_the_rows_and_the_rows_those_of_the_faults():
    found = json.loads(tool.ROWS.read_text(encoding="utf-8"))
    page = tool.PAGE.read_text(encoding="utf-8")
    assert tool.with_table(page) == page
    listed = [(fault.what, fault.file, fault.old, fault.new) for fault in FAULTS]
    assert [(r["what"], r["file"], r["old"], r["new"]) for r in found["rows"]] == listed
    assert found["caught"] == sum(r["caught_by"] is not None for r in found["rows"])
    assert found["caught"] >= 0.95 * found["faults"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fault_is_caught_and_a_harmless_change_survives():
    assert FAULTS[0].tests == (TESTS,)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tool.ROOT, capture_output=True, text=True, check=True
    )
    caught, survived = done.stdout.splitlines()
    assert caught.startswith(f"{FAULTS[0].what}: {TESTS}::test_")
    assert survived == "none: None"


def test_a_fault_that_is_nowhere_is_refused():
    gone = Fault("none", FAULTS[0].file, "this text is nowhere", "", (TESTS,))
    with pytest.raises(SystemExit, match="must occur once"):
        tool.start(gone, gone.tests)
