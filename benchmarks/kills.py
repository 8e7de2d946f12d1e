"""kill -9 at random moments of the default mode: whether the same command ends with the same bytes.

    python benchmarks/kills.py cora --root ../shared/data --nodes 70 --json > kills.json
    python benchmarks/kills.py FOLDER --nodes 70 --memory 10MB

A run that nobody ends comes first. Then the command is killed at each random moment and run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "faults")]

from killing import Tally, finished, moments  # noqa: E402 - beside the tests

from gcsr.methods.base import code_versions  # noqa: E402 - imports torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--nodes", type=int, default=70)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--memory", default=None)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    data = Path(asked.data).resolve() if Path(asked.data).exists() else asked.data
    argv: list[object] = ["condense", data, "--nodes", asked.nodes, "--out", "small.safetensors"]
    argv += ["--device", "cpu", "--checkpoint-every", 0]
    for option, value in (("--root", asked.root), ("--memory", asked.memory)):
        if value is not None:
            argv += [option, value.resolve() if isinstance(value, Path) else value]
    for assignment in asked.set:
        argv += ["--set", assignment]
    with tempfile.TemporaryDirectory() as folder:
        whole, again = Path(folder) / "whole", Path(folder) / "again"
        for place in (whole, again):
            place.mkdir()
        seconds = finished(argv, whole)
        tally = Tally()
        for done, moment in enumerate(moments(asked.kills, seconds), 1):
            (again / "small.safetensors").unlink(missing_ok=True)
            tally.add(argv, again, [whole / "small.safetensors"], moment)
            print(f"{done} of {asked.kills}: {tally}", file=sys.stderr)
    words = " ".join(["python", "benchmarks/kills.py", *sys.argv[1:]])
    row = {
        "command": words,
        "seconds": seconds,
        "kills": asked.kills,
        "killed_alive": tally.killed,
        "resumed": tally.resumed,
        "same_bytes": tally.same,
        "versions": code_versions(),
    }
    print(json.dumps(row, indent=1) if asked.json else row)
    raise SystemExit(tally.same != asked.kills)


if __name__ == "__main__":
    main()
