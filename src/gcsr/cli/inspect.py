"""``gcsr inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Annotated, Any

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.output import console, print_json, print_leak
from gcsr.utils.errors import require
from gcsr.utils.formatting import byte_count, counted, printable
from gcsr.utils.safe_io import is_number, part

# Candidates of the automatic mode that are shown.
MOST_COMPARED = 12
# Texts are wrapped in a pipe too: a name and a hash just fit.
PIPE_WIDTH = 80
LEAST_WIDTH = 20


def inspect(
    file: options.File,
    card: bool = False,
    license_name: Annotated[str | None, typer.Option("--license", metavar="NAME")] = None,
    as_json: options.Json = False,
) -> None:
    """Show the content of a condensed graph and how it was made.

    Args:
        card: Print a card in Markdown, to be shared with the file.
        license_name: With --card: the license of the file.
    """
    require(card or license_name is None, "--license is for the card; give --card with it.")
    require(not (card and as_json), "--card cannot be used with --json.")
    small = gcsr.CondensedGraph.load(file)
    if card:
        print(small.card(license=license_name or "unknown"), end="")
        return
    described = small.describe()
    if as_json:
        print_json(described)
        return
    known = (row for row in described_rows(described) if row[1] not in ("", "None"))
    _show([("file", str(file)), *known])
    if described["leaks_test_labels"]:
        print_leak()


def _show(rows: Sequence[tuple[str, str]]) -> None:
    """Names beside texts that are wrapped between words: paths and hashes stay whole."""
    from rich.text import Text

    screen = console(PIPE_WIDTH)
    margin = max(len(name) for name, _ in rows) + 1
    width = max(screen.width - margin, LEAST_WIDTH)
    for name, text in rows:
        shown = printable(text)
        lines = wrap(shown, width, break_long_words=False, break_on_hyphens=False)
        lines = [shown] if name == "file" else lines  # paths may have spaces
        first = Text.assemble((name.ljust(margin), "bold"), "".join(lines[:1]))
        screen.print(first, *(" " * margin + line for line in lines[1:]), sep="\n", soft_wrap=True)


def described_rows(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts; the provenance of a file by another program may lack any part."""
    made: dict[str, Any] = described["provenance"]
    source = part(made, "dataset")
    preset = f", preset {made['preset']}" if "preset" in made else ""
    yield "method", f"{made.get('method')}{preset}"
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
    bare = described["unlabeled_nodes"]
    without = f" and {bare} without a label" if bare else ""
    counts = " ".join(str(count) for count in described["nodes_per_class"])
    yield "nodes per class", f"{counts}{without}"
    yield "structure", _structure(described)
    original = described["original_bytes"]
    instead = "" if original is None else f" instead of {byte_count(original)}"
    features = "sparse features, " if described["stored_features"] == "sparse" else ""
    how = f"{features}{described['stored_adjacency']} adjacency, {described['stored_dtype']}"
    yield "size", f"{byte_count(described['bytes'])}{instead} ({how})"
    stored = part(made, "stored")
    score = part(stored, "validation")
    before, after = score.get("before"), score.get("after")
    if is_number(before) and is_number(after):
        lost = f"validation accuracy {before:.1f} % before, {after:.1f} % after"
        yield "stored", f"edges: {stored.get('rule')}; {lost}"
    yield "seed", str(made.get("seed"))
    yield "settings", _pairs(part(made, "settings"))
    yield from _candidates(part(made, "automatic"))
    yield from _updates(made)
    labels = part(made, "pseudo_labels")
    if labels:
        yield "pseudo-labels", _labeled(labels)
    yield "versions", _pairs(part(made, "versions"))
    yield "cost", _cost(made)
    if part(made, "measured").get("resumed") is True:
        yield "resumed", "from what an earlier run left behind; the cost is of all of them"
    notes = made.get("notes")
    for note in (*described["notes"], *(notes if isinstance(notes, list) else ())):
        yield "note", str(note)


def _candidates(automatic: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What the automatic mode chose, and the scores of its candidates."""
    from gcsr.reporting.candidates import is_chosen, ranked, rounds_of, scores_of

    chosen = part(automatic, "chosen")
    if chosen:
        yield "chosen", _named(chosen)
    plan = part(automatic, "plan")
    if plan:
        yield "plan", _pairs(plan)
    compared = ranked(automatic)
    rounds = rounds_of(compared)
    for one in compared[:MOST_COMPARED]:
        scores = scores_of(one)
        found = [(name, scores.get(name)) for name in rounds]
        shown = [f"{name} {100 * score:.1f} %" for name, score in found if score is not None]
        if shown:
            note = " (chosen)" if is_chosen(one, chosen) else ""
            yield "compared", f"{_named(one)}{note}: {', '.join(shown)}"
    if len(compared) > MOST_COMPARED:
        more = counted(len(compared) - MOST_COMPARED, "more candidate")
        yield "compared", f"{more}: --json has them all"


def _updates(made: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The graphs that this one was updated from, the first one first, and the last update."""
    earlier = made.get("history")
    for number, one in enumerate(earlier if isinstance(earlier, list) else ()):
        kept = one if isinstance(one, dict) else {}
        source = part(kept, "dataset")
        steps, seconds = kept.get("iterations"), kept.get("seconds")
        took = [f"{steps} outer steps"] if is_number(steps) else []
        took += [f"{float(seconds):.1f} s"] if is_number(seconds) else []  # type: ignore[arg-type]
        yield (
            f"history {number}",
            f"{kept.get('nodes')} nodes by {kept.get('method')}, seed {kept.get('seed')}, from"
            f" {source.get('name')} with {source.get('num_nodes')} nodes"
            f"{'; ' if took else ''}{', '.join(took)}; graph {kept.get('graph')}",
        )
    if update := part(made, "update"):
        yield "update", _pairs(update)


def _named(one: dict[str, Any]) -> str:
    settings = part(one, "settings")
    return f"{one.get('method')} {_pairs(settings)}" if settings else str(one.get("method"))


def _structure(described: dict[str, Any]) -> str:
    edges, diagonal = described["edges_above_0.01"], described["mean_diagonal"]
    if not edges and diagonal == 1:
        return "none (the identity)"
    density = 100 * described["density_above_0.01"]
    above = f"{counted(edges, 'edge')} above 0.01 ({density:.1f} % of all pairs)"
    return f"{above}, mean diagonal {diagonal:.3g}"


def _cost(made: dict[str, Any]) -> str:
    measured = part(made, "measured")
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
    parts += [f"on {made['device']}"] if made.get("device") else []
    return ", ".join(parts)


def _labeled(labels: dict[str, Any]) -> str:
    """The pseudo-labeler, and the validation accuracy of those that were compared."""
    scores = part(labels, "validation")
    if not scores or not all(is_number(score) for score in scores.values()):
        return _pairs(labels)
    others = _pairs({key: value for key, value in labels.items() if key != "validation"})
    return f"{others}: {', '.join(f'{name} {100 * score:.1f} %' for name, score in scores.items())}"


def _pairs(values: dict[str, Any]) -> str:
    """``key=value`` pairs, numbers to four digits."""
    short = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in values.items()
        if value not in (None, "")
    }
    return ", ".join(f"{key}={value}" for key, value in short.items())
