"""``gcsr inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.output import byte_count, console, print_json, print_leak, printable
from gcsr.utils.formatting import counted
from gcsr.utils.safe_io import is_number

# Candidates of the automatic mode that are shown.
MOST_COMPARED = 12
# Texts, not columns of numbers, so they are wrapped in a pipe too: a name and a hash just fit.
PIPE_WIDTH = 80
MOST_NARROW = 20


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A condensed graph.")],
    as_json: options.Json = False,
) -> None:
    """Show what a condensed graph holds and how it was made."""
    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415 - torch takes a second to import

    described = CondensedGraph.load(file).describe()
    if as_json:
        print_json(described)
        return
    _show([("file", str(file)), *_rows(described)])
    if described["leaks_test_labels"]:
        print_leak()


def _show(rows: Sequence[tuple[str, str]]) -> None:
    """Names beside texts that are wrapped between words: paths and hashes stay whole."""
    from rich.text import Text  # noqa: PLC0415 - not needed for JSON

    screen = console(PIPE_WIDTH)
    margin = max(len(name) for name, _ in rows) + 1
    room = max(screen.width - margin, MOST_NARROW)
    for name, text in rows:
        said = printable(text)
        path = name == "file"  # may have spaces, and stays whole too
        lines = [said] if path else wrap(said, room, break_long_words=False, break_on_hyphens=False)
        first = Text.assemble((name.ljust(margin), "bold"), "".join(lines[:1]))
        screen.print(first, *(" " * margin + line for line in lines[1:]), sep="\n", soft_wrap=True)


def _rows(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What is there, line by line; a file by another program may lack any part of its history."""
    made: dict[str, Any] = described["provenance"]
    source = _part(made, "dataset")
    yield "method", _joined(made, "method", "preset")
    if source:
        setting = "inductive" if source.get("inductive") else "transductive"
        yield (
            "from",
            f"{source.get('name')}: {source.get('num_nodes')} nodes, {source.get('num_edges')}"
            f" edges, {source.get('num_features')} features, {source.get('num_classes')} classes;"
            f" {setting}, features: {source.get('features')}",
        )
        yield "content hash", str(source.get("content_hash"))
    ratio: Any = made.get("ratio")
    share = f" ({100 * float(ratio):.2f} % of what was condensed)" if is_number(ratio) else ""
    yield "nodes", f"{described['nodes']}{share}"
    yield "features", str(described["features"])
    yield "labels", f"{described['labels']}, {counted(described['classes'], 'class')}"
    bare = described["unlabelled_nodes"]
    without = f" and {bare} without a label" if bare else ""
    counts = " ".join(str(count) for count in described["nodes_per_class"])
    yield "nodes per class", f"{counts}{without}"
    yield "structure", _structure(described)
    original: Any = _part(made, "bytes").get("original")
    instead = f" instead of {byte_count(original)}" if is_number(original) else ""
    how = f"{described['stored_adjacency']} adjacency, {described['stored_dtype']}"
    yield "size", f"{byte_count(described['bytes'])}{instead} ({how})"
    lost = _lost(_part(made, "stored"))
    if lost:
        yield "stored", lost
    yield "seed", str(made.get("seed"))
    yield "settings", _pairs(_part(made, "settings"))
    yield from _candidates(_part(made, "automatic"))
    labels = _part(made, "pseudo_labels")
    if labels:
        yield "pseudo-labels", _pairs(labels)
    yield "versions", _pairs(_part(made, "versions"))
    yield "cost", _cost(made)
    if _part(made, "measured").get("resumed") is True:
        yield "resumed", "from what an earlier run left behind; the cost is of all of them"
    notes = made.get("notes")
    for note in notes if isinstance(notes, list) else ():
        yield "note", str(note)


def _candidates(automatic: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the automatic mode chose, and how its candidates validated."""
    from gcsr.reporting.panels import is_chosen, ranked, rounds_of, scores_of  # noqa: PLC0415 - imports torch

    chosen = _part(automatic, "chosen")
    if chosen:
        yield "chosen", _named(chosen)
    plan = _part(automatic, "plan")
    if plan:
        yield "plan", _pairs(plan)
    compared = ranked(automatic)
    rounds = rounds_of(compared)
    for one in compared[:MOST_COMPARED]:
        scores = scores_of(one)
        found = [(name, scores.get(name)) for name in rounds]
        marks = [f"{name} {100 * score:.1f} %" for name, score in found if score is not None]
        if marks:
            note = " (chosen)" if is_chosen(one, chosen) else ""
            yield "compared", f"{_named(one)}{note}: {', '.join(marks)}"
    if len(compared) > MOST_COMPARED:
        more = counted(len(compared) - MOST_COMPARED, "more candidate")
        yield "compared", f"{more}: --json has them all"


def _named(one: dict[str, Any]) -> str:
    settings = _part(one, "settings")
    return f"{one.get('method')} {_pairs(settings)}" if settings else str(one.get("method"))


def _structure(described: dict[str, Any]) -> str:
    edges, diagonal = described["edges_above_0.01"], described["mean_diagonal"]
    if not edges and diagonal == 1:
        return "none (the identity)"
    density = 100 * described["density_above_0.01"]
    above = f"{counted(edges, 'edge')} above 0.01 ({density:.1f} % of all pairs)"
    return f"{above}, mean diagonal {diagonal:.3g}"


def _lost(stored: dict[str, Any]) -> str:
    score = _part(stored, "validation")
    before, after = score.get("before"), score.get("after")
    if not (is_number(before) and is_number(after)):
        return ""
    return (
        f"edges: {stored.get('rule')}; validation accuracy {before:.1f} % before,"
        f" {after:.1f} % after"
    )


def _cost(made: dict[str, Any]) -> str:
    measured = _part(made, "measured")
    parts = []
    seconds: Any = measured.get("seconds")
    memory: Any = measured.get("peak_memory_bytes")
    if is_number(seconds):
        parts.append(f"{seconds:.1f} s")
    together = measured.get("graphs_together", 1)
    if together != 1:
        parts.append(f"{together} graphs together")
    if is_number(memory):
        parts.append(f"at most {byte_count(memory)} of memory")
    parts.append(f"on {made.get('device')}")
    return ", ".join(parts)


def _part(made: dict[str, Any], name: str) -> dict[str, Any]:
    part = made.get(name)
    return part if isinstance(part, dict) else {}


def _joined(made: dict[str, Any], name: str, detail: str) -> str:
    return f"{made.get(name)}, preset {made[detail]}" if detail in made else str(made.get(name))


def _pairs(values: dict[str, Any]) -> str:
    shown = (f"{key}={_short(value)}" for key, value in values.items() if value not in (None, ""))
    return ", ".join(shown) or "?"


def _short(value: Any) -> Any:
    """Numbers as short as they can be told apart; --json has them all."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
