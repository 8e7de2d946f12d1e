"""Tables of search, break-even, continual learning, growth, privacy and noise, from their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gcsr.evaluation.cost import distinguishable
from gcsr.evaluation.intervals import Accuracy, Difference
from rows import code_of, table, with_code, with_interval

Lines = list[str]
# Graphs that are files and not registered datasets; `wordnet` is the file of 2,500 words.
FILES = {"facebook-pagepage", "wordnet"}


def pays_sections(results: Path) -> Lines:
    """All sections whose rows are there."""
    lines: Lines = []
    for title, lead, place, section in SECTIONS:
        files = sorted((results / place).glob("*.json"))
        found = [(file.stem, json.loads(file.read_text())) for file in files]
        if found:
            lines += [f"\n## {title}\n", lead, *with_code(section(found))]
    return lines


def _searches(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph, nodes, device", "searched on", "condensing", "configurations", "finalists")
    heads += ("all, s", "operations", "tau [95 %]", "regret, points", "test, %", "faster")
    rows = []
    for row in (row for _, found in files for row in found):
        whole = row["rankings"]["whole"]["total_seconds"]
        configurations = row["configurations"]
        models = ", ".join(dict.fromkeys(one["model"] for one in configurations))
        epochs = f"{len(configurations)} configurations, {row['recipe']['epochs']} epochs"
        places = {"condensed": row["cell"], "random": epochs, "whole": models}
        for name, one in row["rankings"].items():
            low, high = one["tau_interval"] or (0.0, 0.0)
            tau = "-" if one["tau"] is None else f"{one['tau']:.2f} [{low:.2f}, {high:.2f}]"
            times = whole / one["total_seconds"]
            faster = "yes" if times > 1 else "**no**"
            rows.append(
                (
                    places.get(name, ""),
                    name + (code_of(row) if name == "condensed" else ""),
                    f"{one['condense_seconds'] or 0:.1f}",
                    f"{sum(one['seconds']):.1f}",
                    f"{one['final_seconds']:.1f}",
                    f"{one['total_seconds']:.1f}",
                    f"{one['total_operations']:.1e}",
                    tau,
                    f"{one['regret']:.2f}",
                    "-" if one["test"] is None else f"{one['test']:.1f}",
                    "-" if name == "whole" else f"{faster} ({times:.2g} times)",
                )
            )
    return table(heads, rows)


def _break_even(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph, nodes, device", "predicted: condense, small, whole, s")
    heads += ("measured: condense, small, whole, s", "predicted", "measured", "ratio")
    keys = ("condense_seconds", "small_seconds", "whole_seconds")
    rows = []
    for row in (row for _, found in files for row in found):
        sides = [row["predicted"], row["measured"]]
        paid = [_paid_after(one) for one in sides]
        seconds = [", ".join(f"{one[key]:.3g}" for key in keys) for one in sides]
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        rows.append((f"{row['cell']}{code_of(row)}", *seconds, *paid, ratio))
    return table(heads, rows)


def _paid_after(one: dict[str, Any]) -> str:
    if one["paid_after"] is None:
        return "never"
    close = not distinguishable(one["small_seconds"], one["whole_seconds"])
    return f"{one['paid_after']}{', or never' if close else ''}"


def _continual(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph:classes per task:bytes", "memory", "average accuracy", "forgetting", "bytes")
    rows, last = [], ""
    for row in (row for _, found in files for row in found):
        cell, way, device = row["cell"].rsplit(" ", 2)
        shown, last = (f"{cell} {device}" if cell != last else ""), cell
        accuracy = f"{row['average_accuracy']:.1f} ± {row['std']:.1f}"
        size = f"{row['bytes']:,.0f}" if row["bytes"] else "-"
        rows.append(
            (
                shown,
                way + code_of(row | {"method": way}),
                accuracy,
                f"{row['forgetting']:.1f}",
                size,
            )
        )
    return table(heads, rows)


def _growing(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph:nodes, step", "updated, %", "condensed anew, %", "updated, s", "anew, s")
    rows = []
    for row in (row for _, found in files for row in found):
        sides = [row["updated"], row["anew"]]
        seconds = [f"{one['condense_seconds']:.1f}" for one in sides]
        seconds[0] += f" ({100 * row['ratio_of_seconds']:.0f} %)"
        accuracies = (_accuracy(one) for one in sides)
        code = code_of(row | {"method": "auto"})
        rows.append((f"{row['cell']}{code}", *accuracies, *seconds))
    return table(heads, rows)


def _accuracy(found: dict[str, Any]) -> str:
    return str(Accuracy.of(found["scores"], found["graphs"])).removesuffix(" %")


def _graph(name: str, row: dict[str, Any], code_of: Any) -> str:
    return f"{name}, {row['nodes']}, {row['recipe']['epochs']}{code_of(row)}"


def _privacy(files: list[tuple[str, Any]]) -> Lines:
    keys = ("loss_auc", "ratio_auc", "loss_caught", "ratio_caught", "gap")
    heads = (
        "graph, nodes, epochs",
        "trained on",
        "AUC, loss",
        "AUC, likelihood ratio",
        "caught, loss",
    )
    heads += ("caught, likelihood ratio", "accuracy gap", "copies", "nearer to training rows, %")
    rows = []
    for name, row in files:
        near = row["memorization"]
        for side, attack in row["attacks"].items():
            own = side == "condensed"
            rows.append(
                (
                    _graph(name, row, code_of) if side == "whole" else "",
                    side,
                    *(_accuracy(attack[key]) for key in keys),
                    f"{near['copies']} of {near['rows']}" if own else "",
                    f"{near['nearer_to_training']:.0f}" if own else "",
                )
            )
    options = [
        f"--data {_data(row)} --runs {row['runs']} --shadows {row['shadows']}"
        f" --epochs {row['recipe']['epochs']}"
        for _, row in files
    ]
    return [*table(heads, rows), "", _commands("gcsr privacy FILE", options)]


def _robustness(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph, nodes, epochs", "noise", "level", "condensed", "whole", "difference")
    rows = []
    for name, row in files:
        for place, one in enumerate(row["rows"]):
            interval = one["difference"]["interval"]
            difference = Difference(one["difference"]["mean"], interval and tuple(interval))
            rows.append(
                (
                    "" if place else _graph(name, row, code_of),
                    one["noise"],
                    f"{one['level']:g}",
                    *(_accuracy(one[side]) for side in ("condensed", "whole")),
                    str(difference),
                )
            )
    options = []
    for _, row in files:
        noises, levels = (
            " ".join(f"--{key} {value:{form}}" for value in dict.fromkeys(found))
            for key, form, found in (
                ("noise", "", (one["noise"] for one in row["rows"][1:])),
                ("level", "g", (one["level"] for one in row["rows"][1:])),
            )
        )
        options.append(
            f"{_data(row)} --nodes {row['nodes']} {noises} {levels} --graphs {row['graphs']}"
            f" --runs {row['runs']} --epochs {row['recipe']['epochs']}"
        )
    return [*table(heads, rows), "", _commands("gcsr robustness", options)]


def _data(row: dict[str, Any]) -> str:
    name = str(row["dataset"])
    return f"graphs/{name}.npz" if name in FILES else name


def _commands(program: str, options: list[str]) -> str:
    """The commands of rows, from what the rows say."""
    return f"Commands: {', '.join(f'`{program} {one} --json`' for one in options)}."


def _unseen(files: list[tuple[str, Any]]) -> Lines:
    heads = ("graph, nodes", "trained on", "test, %", "runs", "condensing, s")
    rows = []
    for row in (row for _, found in files for row in found):
        seconds, nodes = row.get("condense_seconds"), row["nodes"]
        labels = row.get("pseudo_labels")
        rows.append(
            (
                f"{row['graph']}{f', {nodes}' if nodes else ''}",
                row["trained_on"] + (f" (themselves {labels:.1f})" if labels else ""),
                with_interval(row),
                str(row["runs"]),
                "" if seconds is None else f"{seconds:.0f}",
            )
        )
    return table(heads, rows)


SECTIONS: tuple[tuple[str, str, str, Callable[[list[tuple[str, Any]]], Lines]], ...] = (
    (
        "Architecture search",
        "`benchmarks/search.py` (`results/search/`): the same configurations on the condensed graph,\n"
        "on random nodes in as many bytes and on the whole graph ([definitions](search.md)). The\n"
        "last column is of seconds alone: what the winner loses is the regret.\n",
        "search",
        _searches,
    ),
    (
        "Predicted and measured break-even",
        "`benchmarks/break_even.py` (`results/break-even/`): after how many trainings condensing and\n"
        "evaluation are paid, predicted before condensing and measured ([definitions](cost.md)).\n",
        "break-even",
        _break_even,
    ),
    (
        "Continual learning",
        "`benchmarks/continual.py` (`results/continual/`): classes arrive as tasks; test accuracy\n"
        "over all tasks after the last one, in percent ([definitions](continual-learning.md)).\n"
        "`±` is the standard deviation over seeds.\n",
        "continual",
        _continual,
    ),
    (
        "Growing graphs",
        "`benchmarks/growing.py` (`results/growing/`): a tenth of the nodes added in three steps,\n"
        "and the largest class added in one ([definitions](growing-graphs.md)). Test accuracy of a\n"
        "GCN and seconds of condensing.\n",
        "growing",
        _growing,
    ),
    (
        "Graphs on which nothing was chosen",
        "Debian's packages (`benchmarks/debian.py`, `results/unseen/`): 63,666 nodes, 51 sections of\n"
        "the archive, a random split (`debian`) and 20 training nodes per class (`debian-few`).\n"
        "Default settings on one CPU core; the code was finished before these graphs were made. One\n"
        "condensed graph each, `±` is half of the 95 % interval over runs.\n",
        "unseen",
        _unseen,
    ),
    (
        "Membership inference",
        "`gcsr privacy FILE --data DATA --json` (`results/privacy/`), in percent; 50 is the AUC of\n"
        "guessing ([definitions](privacy.md)). `±` is half of the 95 % interval over runs.\n",
        "privacy",
        _privacy,
    ),
    (
        "Noisy labels, features and edges",
        "`gcsr robustness DATA --nodes N --json` (`results/robustness/`): test accuracy in percent\n"
        "([definitions](robustness.md)). `±` is half of the 95 % interval over draws of the noise.\n",
        "robustness",
        _robustness,
    ),
)
