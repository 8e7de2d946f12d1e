"""The automatic mode beside Random, Herding and the whole graph, from rows of accuracy.py."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gcsr.condense.automatic import PARTS as SWITCHES
from gcsr.paper.published import TABLE2

Row = dict[str, Any]
# Ten nodes per class: name, cell, and where its whole graph is.
GRAPHS = {
    "Cora, 70": ("cora:70", "cora"),
    "Citeseer, 60": ("citeseer:60", "citeseer"),
    "PubMed, 30": ("pubmed:30", "pubmed"),
    "amazon-computers, 100": ("amazon-computers:100", "amazon-computers"),
    "facebook-pagepage, 40": ("facebook-pagepage.npz:40", "facebook-pagepage.npz"),
    "facebook-pagepage, 40, inductive": (
        "facebook-pagepage.npz:40:inductive=true",
        "facebook-pagepage.npz:inductive=true",
    ),
    "actor, 50": ("actor.npz:50", "actor.npz"),
    "digits, 100": ("digits:100", "digits"),
}
SIZES = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
MODELS = ("gcn", "sgc", "appnp", "sage", "cheby", "mlp")
# Parts switched off in turn, and starts alone.
OFF = {f"without {name}: {said}": f"without={name}" for name, said in SWITCHES.items()}
PARTS = {
    "teacher consistent, halves, 1 hop, soft": "teacher=consistent",
    "... as sure as its networks are": "tempered=false",
    "... grouped by k-means": "grouping=k-means",
    "... hard labels": "soft_labels=false",
    "... no hop": "k=0",
    "... 2 hops": "k=2",
    "... teachers together": "teacher=together",
    "... teacher GCN": "teacher=gcn",
    "... teacher APPNP": "teacher=appnp",
    "... teacher MLP": "teacher=mlp",
    "... teacher self-trained": "teacher=self-trained",
}


def automatic_section(rows: list[Row], alone: list[Row]) -> list[str]:
    """Everything that is known of the automatic mode; ``alone``: seconds on an idle machine."""
    known = {row["cell"]: row for row in rows}
    idle = {row["cell"]: row["seconds"] for row in alone}

    def row(cell: str) -> Row | None:
        return known.get(cell)

    def shown(cell: str) -> str:
        found = row(cell)
        if found is None:
            return "-"
        return f"{found['mean']:.1f} ± {found['std']:.1f}"

    lines = [
        "| graph, nodes | automatic | Random | Herding | whole graph | chosen | seconds per graph |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (cell, whole) in GRAPHS.items():
        found = row(f"auto/default/{cell}/gcn")
        lines.append(
            f"| {name} | {shown(f'auto/default/{cell}/gcn')} | {shown(f'random/default/{cell}/gcn')}"
            f" | {shown(f'herding/default/{cell}/gcn')} | {shown(f'whole/default/{whole}/gcn')}"
            f" | {_chosen(found)} | {_took(found, idle)} |"
        )
    lines += ["", "Without any leak, beside the paper's GCSR, which counts test labels:", ""]
    lines += ["| | " + " | ".join(f"{d.capitalize()} {n}" for d, n in SIZES) + " |"]
    lines += ["|---" * (len(SIZES) + 1) + "|"]
    ours = [shown(f"auto/default/{d}:{n}/gcn") for d, n in SIZES]
    paper = [str(TABLE2["gcsr"][d, n][0]) for d, n in SIZES]
    lines += [f"| automatic | {' | '.join(ours)} |", f"| GCSR, published | {' | '.join(paper)} |"]
    lines += ["", "Tested with six models:", ""]
    lines += [
        "| trained on | " + " | ".join(MODELS) + " | mean |",
        "|---" * (len(MODELS) + 2) + "|",
    ]
    for name, cell in (
        ("Cora, 70 nodes", "auto/default/cora:70"),
        ("whole Cora", "whole/default/cora"),
        ("amazon-computers, 100 nodes", "auto/default/amazon-computers:100"),
        ("whole amazon-computers", "whole/default/amazon-computers"),
    ):
        found_rows = [row(f"{cell}/{model}") for model in MODELS]
        means = [one["mean"] for one in found_rows if one]
        alike = len({one["device"] for one in found_rows if one}) == 1
        mean = f"{sum(means) / len(means):.1f}" if len(means) == len(MODELS) and alike else "-"
        each = " | ".join(shown(f"{cell}/{model}") for model in MODELS)
        lines.append(f"| {name} | {each} | {mean} |")
    lines += [
        "",
        "Starts alone (`--method clusters`), and the race of them all:",
        "",
    ]
    lines += ["| | " + " | ".join(GRAPHS) + " |", "|---" * (len(GRAPHS) + 1) + "|"]
    for name, part in PARTS.items():
        cells = [with_settings(cell, part) for cell, _ in GRAPHS.values()]
        lines.append(
            f"| {name} | " + " | ".join(shown(f"clusters/default/{c}/gcn") for c in cells) + " |"
        )
    both = [shown(f"auto/default/{cell}/gcn") for cell, _ in GRAPHS.values()]
    lines.append(f"| automatic | {' | '.join(both)} |")
    off = {
        name: [f"auto/default/{with_settings(cell, part)}/gcn" for cell, _ in GRAPHS.values()]
        for name, part in OFF.items()
    }
    if not any(cell in known for cells in off.values() for cell in cells):
        return lines
    lines += ["", "Parts switched off, one at a time (`benchmarks/ablation.py`):", ""]
    lines += ["| | " + " | ".join(GRAPHS) + " |", "|---" * (len(GRAPHS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(map(shown, cells)) + " |" for name, cells in off.items()]
    return [*lines, f"| automatic | {' | '.join(both)} |"]


def with_settings(cell: str, part: str) -> str:
    """Settings come after the size and before what concerns the data."""
    dataset, nodes, *rest = cell.split(":")
    return ":".join([dataset, nodes, part, *rest])


def _took(row: Row | None, idle: dict[str, float]) -> str:
    """Seconds of one graph, whatever else the machine did meanwhile, and with nothing beside it."""
    if row is None:
        return "-"
    shared = f"{row['condense_seconds'] / row['graphs']:.0f}"
    return shared + (f", alone {idle[row['cell']]:.0f}" if row["cell"] in idle else "")


def _chosen(row: Row | None) -> str:
    if row is None:
        return "-"
    counts = Counter(one["method"] for one in row["chosen"])
    return ", ".join(f"{name} {count}x" for name, count in counts.items())
