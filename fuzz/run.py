"""Runs targets in processes of their own and keeps what came of it."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FINDINGS = ROOT / "fuzz" / "findings"
# To start, and to end the input that runs when time is up.
_GRACE = 120
_DONE = re.compile(r"Done (\d+) runs in (\d+) second")
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+)")


@dataclass(frozen=True)
class Fuzzed:
    """One target fuzzed once."""

    target: str
    reads: str
    executions: int
    seconds: int
    edges: int
    accepted_share: float
    slowest_seconds: float
    largest_bytes: int
    findings: int
    command: str
    versions: dict[str, str]

    def __str__(self) -> str:
        return (
            f"{self.target}: {self.executions:,} executions in {self.seconds} s, {self.edges} edges,"
            f" slowest {self.slowest_seconds:.2f} s, {self.findings} findings"
        )


def fuzz_one(target: str, reads: str, seconds: int) -> tuple[Fuzzed, str]:
    """Fuzz a target; also what it printed, where there is a finding."""
    with tempfile.TemporaryDirectory(prefix="gcsr-fuzz-") as folder:
        corpus, told = Path(folder) / "corpus", Path(folder) / "told.json"
        corpus.mkdir()
        command = [sys.executable, "-m", "fuzz", target, "--seconds", str(seconds)]
        begun = time.monotonic()
        code, output = _ended([*command, "--inside", folder], seconds + _GRACE)
        lasted = round(time.monotonic() - begun)
        kept = _keep_findings(target, Path(folder))
        costs = json.loads(told.read_text()) if told.exists() else {}
        ended, covered = _DONE.search(output), _COVERAGE.findall(output)
        failed = code != 0 or ended is None
        executions = int(ended[1]) if ended else int(costs.get("executions", 0))
        fuzzed = Fuzzed(
            target=target,
            reads=reads,
            executions=executions,
            seconds=int(ended[2]) if ended else lasted,
            edges=int(covered[-1][0]) if covered else 0,
            accepted_share=costs.get("accepted", 0) / max(1, costs.get("executions", 0)),
            slowest_seconds=costs.get("slowest_seconds", 0.0),
            largest_bytes=costs.get("largest_bytes", 0),
            findings=max(kept, int(failed)),
            command=f"python -m fuzz {target} --seconds {seconds}",
            versions={
                "python": platform.python_version(),
                **{name: version(name) for name in ("atheris", "gcsr", "numpy", "torch")},
            },
        )
        return fuzzed, _said(output) if failed else ""


def _ended(command: Sequence[str], seconds: int) -> tuple[int, str]:
    """The exit code and what was said on stderr, of a process that may not end by itself."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


def _said(output: str) -> str:
    lines = output.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("INFO: Instrumenting"))


def _keep_findings(target: str, folder: Path) -> int:
    found = [path for path in folder.iterdir() if path.is_file() and "-" in path.name]
    for path in found:
        place = FINDINGS / target
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place / path.name)
    return len(found)


def fuzz_all(targets: Sequence[tuple[str, str]], seconds: int, jobs: int, out: Path) -> bool:
    """Fuzz targets, several at a time, and write their rows; whether nothing was found."""
    rows: list[Fuzzed] = []
    with ThreadPoolExecutor(jobs) as pool:
        for fuzzed, said in pool.map(lambda one: fuzz_one(*one, seconds), targets):
            print(fuzzed, flush=True)
            print(said[-4000:], end="", flush=True)
            rows.append(fuzzed)
            text = json.dumps([asdict(row) for row in rows], indent=1)
            out.write_text(f"{text}\n", encoding="utf-8")
    return not any(row.findings for row in rows)
