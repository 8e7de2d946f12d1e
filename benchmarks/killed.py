"""A benchmark killed with SIGKILL and continued gives the rows of an undisturbed one.

    python benchmarks/killed.py --kills 2 -- --data cora,citeseer,pubmed --per-class 10 --jobs 2 \
        --method random,kcenter,gcond-x --seeds 2 --runs 2

What comes after ``--`` are options of ``gcsr benchmark``. Exits with 1 if a row differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# What differs between two runs of the same cell.
MEASURED = (
    *("finished", "condense_seconds", "evaluate_seconds", "peak_memory_bytes", "measured"),
    "jobs",
)


def rows(path: Path) -> dict[str, dict[str, Any]]:
    """Complete rows by key, without what is measured anew."""
    text = path.read_text() if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return {
        row["key"]: {name: value for name, value in row.items() if name not in MEASURED}
        for row in found
    }


def start(options: list[str], out: Path) -> subprocess.Popen[bytes]:
    """A process of its own for ``gcsr benchmark``."""
    words = [sys.executable, "-m", "gcsr", "benchmark", *options, "--out", str(out), "--quiet"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL)


def killed(options: list[str], out: Path, kills: int, total: int) -> None:
    """Run to the end, with kills after equal shares of the rows."""
    for number in range(1, kills + 1):
        process = start(options, out)
        while process.poll() is None and len(rows(out)) < number * total // (kills + 1):
            time.sleep(0.05)
        process.kill()
        process.wait()
    if start(options, out).wait() != 0:
        raise RuntimeError("the continued benchmark failed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("options", nargs="+")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole, parts = Path(folder, "whole.jsonl"), Path(folder, "parts.jsonl")
        if start(arguments.options, whole).wait() != 0:
            raise RuntimeError("the undisturbed benchmark failed")
        expected = rows(whole)
        killed(arguments.options, parts, arguments.kills, len(expected))
        same = rows(parts) == expected
    print(
        f"{len(expected)} rows, {arguments.kills} kills: {'the same' if same else 'NOT the same'}"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
