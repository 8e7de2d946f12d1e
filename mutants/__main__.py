"""``python -m mutants``: plant every fault in a copy of the sources and run its tests.

Writes ``results/mutants.json``; ``python -m mutants table`` writes the table of docs/mutants.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from mutants.faults import FAULTS, Fault

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "results" / "mutants.json"
PAGE = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- rows of results/mutants.json -->", "<!-- end of rows -->"
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+::[^\s\[]+)", re.MULTILINE)
# Exit codes of pytest.
PASSED, TESTS_FAILED = 0, 1
# Imported once, before the tests of every fault are run in a fork: most of their time is imports.
SHARED = ("torch", "scipy.sparse", "sklearn", "hypothesis", "pytest", "typer", "safetensors.torch")


@dataclass(frozen=True)
class Running:
    """Tests of a fault in a process of their own, with their sources in a folder."""

    fault: Fault | None
    folder: Path
    began: float

    @property
    def log(self) -> Path:
        """What pytest prints."""
        return self.folder / "log"

    def failed_test(self, code: int) -> str | None:
        """The first test that failed; anything but passed and failed tests is an error."""
        told = self.log.read_text(encoding="utf-8", errors="replace")
        found = FAILED.search(told)
        if code not in (PASSED, TESTS_FAILED) or (code == TESTS_FAILED and found is None):
            what = "no fault" if self.fault is None else self.fault.what
            raise SystemExit(f"{what}: pytest did not run (exit code {code}).\n{told}")
        return None if found is None else found[1]


def start(fault: Fault | None, tests: Iterable[str]) -> tuple[int, Running]:
    """Begin to run tests with a fault; returns the process."""
    text = "" if fault is None else (ROOT / "src/gcsr" / fault.file).read_text(encoding="utf-8")
    if fault is not None and text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file}: {fault.old!r} must occur once.")
    running = Running(fault, Path(tempfile.mkdtemp(prefix="mutants-")), time.perf_counter())
    sources = running.folder / "src"
    shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
    if fault is not None:
        path = sources / "gcsr" / fault.file
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    process = os.fork()
    if not process:
        _test(sources, running.log, list(tests))
    return process, running


def _test(sources: Path, log: Path, tests: list[str]) -> NoReturn:
    """Run pytest and end this process."""
    code = -1
    try:
        # PYTHONPATH is for processes that tests start.
        sys.path.insert(0, str(sources))
        paths = [str(sources), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.chdir(ROOT)
        output = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
        for stream in (1, 2):
            os.dup2(output, stream)
        code = int(import_module("pytest").main(["-x", "-p", "no:cacheprovider", *tests]))
        sys.stdout.flush()
    finally:
        os._exit(code)


def outcomes(
    chosen: Iterable[tuple[Fault | None, Iterable[str]]], jobs: int
) -> Iterable[tuple[Fault | None, str | None, float]]:
    """Faults as their tests end, with the test that failed and the seconds it took."""
    if "gcsr" in sys.modules:
        raise RuntimeError("gcsr is imported already: forks would not see the faults")
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in SHARED:
        import_module(name)
    waiting, running = list(chosen), dict[int, Running]()
    while waiting or running:
        while waiting and len(running) < jobs:
            process, begun = start(*waiting.pop(0))
            running[process] = begun
        process, status = os.wait()
        ended = running.pop(process)
        try:
            failed = ended.failed_test(os.waitstatus_to_exitcode(status))
        finally:
            shutil.rmtree(ended.folder)
        yield ended.fault, failed, round(time.perf_counter() - ended.began, 1)


def run(chosen: list[Fault], jobs: int) -> int:
    """Plant some faults and replace their rows; returns the number of survivors of all faults."""
    rows = {key(one["file"], one["old"], one["new"]): one for one in stored()["rows"]}
    for fault, caught_by, seconds in outcomes(((f, f.tests) for f in chosen), jobs):
        assert fault is not None
        caught = "survived" if caught_by is None else "caught  "
        print(caught, f"{fault.file}: {fault.what}", flush=True)
        rows[key(fault.file, fault.old, fault.new)] = {
            "what": fault.what,
            "file": fault.file,
            "old": fault.old,
            "new": fault.new,
            "caught_by": caught_by,
            "seconds": seconds,
        }
        write(rows)
    # A test that fails without a fault catches nothing.
    tests = sorted({one["caught_by"] for one in stored()["rows"]} - {None})
    for _, failing, _ in outcomes([(None, tests)] if tests else [], jobs):
        if failing is not None:
            raise SystemExit(f"{failing} fails without a fault.")
    found = stored()
    print(f"{found['caught']} of {found['faults']} faults caught")
    return int(found["faults"]) - int(found["caught"])


def key(file: str, old: str, new: str) -> tuple[str, str, str]:
    """What identifies a fault."""
    return file, old, new


def stored() -> dict[str, Any]:
    """The file of rows."""
    empty = {"caught": 0, "faults": 0, "rows": []}
    return json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else empty


def write(rows: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    """Rows in the order of the faults; those of faults that are gone are left out."""
    known = [rows[k] for f in FAULTS if (k := key(f.file, f.old, f.new)) in rows]
    found = {
        "caught": sum(one["caught_by"] is not None for one in known),
        "faults": len(known),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "rows": known,
    }
    ROWS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def table(found: dict[str, Any]) -> str:
    """Markdown of the rows."""
    lines = [
        f"{found['caught']} of {found['faults']} faults are caught ({found['date']}).",
        "",
        "| file | fault | caught by |",
        "|---|---|---|",
    ]
    for one in found["rows"]:
        test = one["caught_by"]
        caught = "**no test**" if test is None else f"`{test.removeprefix('tests/')}`"
        lines.append(f"| `{one['file']}` | {one['what']} | {caught} |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    """The page with its table made anew."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n\n{table(stored())}\n\n{END}{tail}"


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        default="all",
        help="all faults, open ones (without a row, or survivors), a part of a file name, or: table",
    )
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time")
    asked = parser.parse_args()
    if asked.what == "table":
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    caught = {key(r["file"], r["old"], r["new"]) for r in stored()["rows"] if r["caught_by"]}
    chosen = [
        fault
        for fault in FAULTS
        if asked.what == "all"
        or (asked.what == "open" and key(fault.file, fault.old, fault.new) not in caught)
        or asked.what in fault.file
    ]
    if not chosen and asked.what != "open":
        parser.error(f"no fault is in a file with {asked.what!r} in its name.")
    return int(run(chosen, asked.jobs) > 0)


if __name__ == "__main__":
    sys.exit(main())
