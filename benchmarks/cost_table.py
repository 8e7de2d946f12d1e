"""The cost sheets under results/cost/ beside each other: `gcsr cost FILE --data DATA --json` each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rows import table, with_code, with_interval

HEADS = (
    "graph, nodes",
    "condensed in (s, peak)",
    "bytes: file / random / whole",
    "seconds per training: small / random / whole",
    "accuracy: small / random / whole",
    "whole with pseudo-labels: seconds, accuracy",
    "pseudo-labels",
    "break-even",
    "... without validating",
)


def cost_section(folder: Path) -> list[str]:
    """A row per sheet, named by its file; nothing where there is none."""
    sheets = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    if not sheets:
        return []
    lines = table(HEADS, [_row(name, sheet) for name, sheet in sheets.items()])
    machines = sorted({sheet["machine"] for sheet in sheets.values()})
    return [*with_code(lines), "", f"Measured on: {'; '.join(machines)}."]


def _row(name: str, sheet: dict[str, Any]) -> list[str]:
    sides = [sheet[side] for side in ("condensed", "random", "whole")]
    memory = sheet["condense_memory_bytes"]
    peak = f", {memory / 2**30:.1f} GiB" if memory else ""
    return [
        f"{name.replace('_', ' ')}, {sheet['condensed']['nodes']}",
        f"{sheet['condense_seconds']:.0f}{peak}",
        " / ".join(f"{side['bytes'] / 1e6:.2f} MB" for side in sides),
        " / ".join(f"{side['seconds']:.2g}" for side in sides),
        " / ".join(_accuracy(sheet, name) for name in ("condensed", "random", "whole")),
        *_fair(sheet),
        *(_count(sheet[key]) for key in ("break_even", "break_even_alone")),
    ]


def _fair(sheet: dict[str, Any]) -> tuple[str, str]:
    """The references of a graph that was condensed with pseudo-labels."""
    if "whole_with_pseudo_labels" not in sheet:
        return "-", "-"
    seconds = sheet["whole_with_pseudo_labels"]["seconds"]
    accuracy = _accuracy(sheet, "whole_with_pseudo_labels")
    shown = f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.2g}"
    return f"{shown}, {accuracy}", f"{sheet['pseudo_labels']['test']:.1f}"


def _accuracy(sheet: dict[str, Any], side: str) -> str:
    scores = sheet[side]["accuracy"]["scores"]
    # Every run of the random subset has a subset of its own.
    graphs = len(scores) if side == "random" else 1
    return with_interval({**sheet, "scores": scores, "graphs": graphs})


def _count(trainings: int | None) -> str:
    return "never" if trainings is None else f"{trainings:,}"
