"""``python -m fuzz NAME --seconds N``; ``all``, ``list`` and ``table`` too."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("name", help="a target, or: all, list, table")
    parser.add_argument("--seconds", type=int, default=60, help="per target")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time, with all")
    parser.add_argument("--out", type=Path, default=None, help="rows of all (results/fuzz.json)")
    parser.add_argument("--input", type=Path, help="run this input once, without the fuzzer")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside is not None:
        from fuzz.engine import fuzz  # noqa: PLC0415 - before anything of gcsr is imported

        fuzz(asked.name, asked.seconds, asked.inside / "corpus", asked.inside / "told.json")
        return 0

    from fuzz.run import ROOT, fuzz_all, fuzz_one  # noqa: PLC0415
    from fuzz.table import PAGE, ROWS, with_table  # noqa: PLC0415
    from fuzz.targets import TARGETS  # noqa: PLC0415

    if asked.name == "table":
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), ROWS), encoding="utf-8")
        return 0
    if asked.name == "list":
        print("\n".join(f"{target.name:15}{target.reads}" for target in TARGETS.values()))
        return 0
    if asked.name == "all":
        told = [(target.name, target.reads) for target in TARGETS.values()]
        return int(not fuzz_all(told, asked.seconds, asked.jobs, asked.out or ROOT / ROWS))
    if asked.name not in TARGETS:
        parser.error(
            f"{asked.name!r} is not known; accepted: {', '.join(TARGETS)}, all, list, table"
        )
    if asked.input is not None:
        from fuzz.guard import Guard  # noqa: PLC0415

        guard = Guard(TARGETS[asked.name])
        guard(asked.input.read_bytes())
        print("accepted" if guard.accepted else "refused in one sentence")
        return 0
    fuzzed, said = fuzz_one(asked.name, TARGETS[asked.name].reads, asked.seconds)
    print(said[-8000:], end="")
    print(fuzzed)
    return int(fuzzed.findings > 0)


if __name__ == "__main__":
    sys.exit(main())
