"""``gcsr cost``, ``gcsr privacy``, ``gcsr robustness`` and ``gcsr search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, on_file, print_found, require_page, write_page
from gcsr.cli.options import parse_dimensions, parse_settings
from gcsr.cli.output import print_json, print_leak, print_table, progress_bars
from gcsr.utils.errors import require_one_of
from gcsr.utils.formatting import byte_count, counted, printable


def cost(
    file: options.File,
    data: options.MadeFrom = None,
    sparsify: options.Rule = "auto",
    networks: options.NetworkOptions = options.FIVE_RUNS,
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Seconds, bytes and accuracy: FILE beside a random subset of its bytes and the whole graph.

    Seconds and memory of condensing are those recorded in FILE; everything else is measured now.

    Args:
        sparsify: How FILE is sparsified where it is not yet: auto, threshold=0.05, top-k=8 or none.
    """
    given = {"sparsify": sparsify, "check_origin": not any_graph, **networks.arguments()}
    sheet: gcsr.CostSheet = on_file(gcsr.cost, file, data, loading, **given)
    if as_json:
        print_json(sheet.to_dict())
        return
    print_found(data, sheet.dataset)
    by = f" by {printable(sheet.method)}" if sheet.method else ""
    print(
        f"{sheet.dataset} condensed to {counted(sheet.condensed.nodes, 'node')}{by}; {sheet.model},"
        f" {counted(sheet.runs, 'run')} on {sheet.device} ({sheet.machine})"
    )
    spent = "the file does not say what it took"
    if sheet.condense_seconds is not None:
        memory = sheet.condense_memory_bytes
        peak = f", at most {byte_count(memory)} of memory" if memory is not None else ""
        spent = f"{sheet.condense_seconds:.1f} s{peak}, on {printable(sheet.condensed_on)}"
    print(f"condensing: {spent}")
    _print_bytes(sheet)
    _print_seconds(sheet)
    if sheet.break_even_alone is not None and sheet.break_even_alone != sheet.break_even:
        trainings = counted(sheet.break_even_alone, "training")
        print(f"Without validating after every epoch the break-even is after {trainings}.")
    if sheet.runs > 1:
        print("±: 95 % interval over runs; --json has the std of all runs.")
    for note in sheet.notes:
        print(f"note: {printable(note)}")
    if sheet.leaks_test_labels:
        print_leak()
    print(f"decision: {sheet.decision}.")


def privacy(
    file: options.File,
    data: options.MadeFrom = None,
    shadows: Annotated[int, typer.Option(min=4)] = 16,
    networks: options.NetworkOptions = options.THREE_RUNS,
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """What FILE discloses: membership inference, and rows that are near real ones.

    Networks trained on the whole graph, on FILE and on a random subset of its bytes are attacked.

    Args:
        runs: Networks that are attacked, per graph.
    """
    from gcsr.analysis.privacy import COLUMNS

    given = {"shadows": shadows, "check_origin": not any_graph, **networks.arguments()}
    found: gcsr.Privacy = on_file(gcsr.privacy, file, data, loading, **given)
    if as_json:
        print_json(found.to_dict())
        return
    print_found(data, found.dataset)
    by = f" by {printable(found.method)}" if found.method else ""
    print(f"{found.dataset} condensed to {counted(found.nodes, 'node')}{by}")
    title = f"who was a training node? {found.attacked:,} of them among as many test nodes"
    print_table((f"{found.model} trained on", *COLUMNS), found.rows, COLUMNS, title)
    print(
        "AUC: 50 is guessing. Caught: training nodes recognized while 1 % of test nodes are mistaken."
    )
    for sentence in (*found.sentences, found.distances):
        print(f"{sentence}.")
    print(found.statement)


def robustness(
    data: options.Data,
    nodes: options.Nodes = None,
    ratio: options.Ratio = None,
    method: options.Method = "auto",
    noise: list[str] | None = None,
    level: list[float] | None = None,
    assignments: options.Assignments = None,
    graphs: options.Count = 3,
    networks: options.NetworkOptions = options.THREE_RUNS,
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Condense from noisy labels, features and edges, beside the whole graph with the same noise.

    Validation and test labels are never perturbed; networks are tested on the clean graph.

    Args:
        noise: symmetric, pair, features or edges; repeatable. [default: all]
        level: A share that is perturbed; repeatable. [default: 0.1, 0.3, 0.5]
    """
    from gcsr.evaluation.robustness import LEVELS, NOISES

    given = networks.arguments() | parse_settings(method, assignments)
    with progress_bars() as progress:
        found = gcsr.robustness(
            load_graph(data, loading, progress),
            nodes=nodes,
            ratio=ratio,
            method=method,
            noises=noise or tuple(NOISES),
            levels=level or LEVELS,
            graphs=graphs,
            progress=progress,
            **given,
        )
    if as_json:
        print_json(found.to_dict())
        return
    columns = ("noise", "level", f"{counted(found.nodes, 'node')} by {method}", "whole graph")
    rows = [
        (row.noise, f"{row.level:g}", str(row.condensed), str(row.whole), str(row.difference))
        for row in found.rows
    ]
    title = f"{found.dataset}: test accuracy of {found.model}, {counted(found.graphs, 'draw')}"
    print_table((*columns, "difference"), rows, (*columns[1:], "difference"), title)
    for name in dict.fromkeys(row.noise for row in found.rows if row.noise != "none"):
        print(f"{name}: {NOISES[name]}")
    print("Validation and test labels are clean, and so is the graph that networks are tested on.")


def search(
    file: options.File,
    data: options.MadeFrom = None,
    trials: options.Count = 40,
    assignments: options.Dimensions = None,
    sampler: str = "tpe",
    finalists: options.Count = 3,
    compare: bool = False,
    runs: options.Count = 2,
    epochs: options.Epochs = 200,
    out: Path | None = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Search an architecture on FILE; the best few are trained on the whole graph.

    Configurations are trained on the condensed graph and scored on real validation nodes.

    Args:
        assignments: Search model, hidden_channels, num_layers, dropout, lr or weight_decay
            (low..high, low..high:log or a,b,c) or fix it (a value); repeatable.
        runs: Networks per configuration.
        out: Write a page with plots to this file (.html); an earlier page is replaced, any other
            file is refused.
    """
    if out is not None:
        require_page(out)

    from gcsr.reporting.results import pairs
    from gcsr.reporting.searched import CLOCK, NAMES, clock_row
    from gcsr.tuning.architecture import SETTINGS
    from gcsr.utils.devices import pick_device

    changes = parse_dimensions(assignments)
    for name in changes:
        require_one_of("--set", name, SETTINGS)
    found: gcsr.SearchResult = on_file(
        gcsr.search,
        file,
        data,
        loading,
        trials=trials,
        finalists=finalists,
        compare=compare,
        sampler=sampler,
        runs=runs,
        recipe=gcsr.TrainingRecipe(epochs=epochs, validate_every=min(10, epochs)),
        seed=seed,
        device=pick_device(device),
        check_origin=not any_graph,
        **changes,
    )
    size = None if out is None else write_page(out, gcsr.report(found))
    if as_json:
        print_json(found.to_dict())
        return
    print_found(data, found.dataset)
    small = found.small
    print(
        f"{found.dataset}: {counted(len(found.configurations), 'configuration')},"
        f" {counted(found.runs, 'network')} each, {counted(found.recipe['epochs'], 'epoch')},"
        f" on {found.device}"
    )
    rows = [(NAMES[name], *clock_row(one)) for name, one in found.rankings.items()]
    print_table(("searched on", *CLOCK), rows, CLOCK)
    print(f"winner: {pairs(found.settings, 3)}")
    test = "" if small.test is None else f", test {small.test:.1f} %"
    print(f"trained on the whole graph: validation {small.finalists[small.winner]:.1f} %{test}")
    print(f"{found.verdict}.")
    if found.leaks_test_labels:
        print_leak()
    if out is not None:
        print(f"wrote {out} ({byte_count(size)}); open it in a browser")


def _print_bytes(sheet: gcsr.CostSheet) -> None:
    rule = sheet.sparsified_by
    sparse = "without zeros" if rule == "none" else f"sparsified ({rule})"
    rows = []
    for form in sheet.forms:
        how = "dense" if form.structure == "dense" else sparse
        here = " [this file]" if form.in_file else ""
        sizes = (form.features_bytes, form.adjacency_bytes, form.bytes)
        rows.append((f"{how}, {form.dtype}{here}", sizes, form.accuracy))
    original = sheet.original_bytes
    sizes = (sheet.original_features_bytes, sheet.original_adjacency_bytes, original)
    rows.append(("the whole graph", sizes, sheet.whole.accuracy))
    numbers = ("features", "adjacency", "all with labels", "of original", "test accuracy")
    print_table(
        ("stored", *numbers),
        [
            (name, *map(byte_count, sizes), f"{100 * sizes[-1] / original:.2f} %", str(accuracy))
            for name, sizes, accuracy in rows
        ],
        numbers,
        "bytes in a file",
    )


def _print_seconds(sheet: gcsr.CostSheet) -> None:
    trained = {
        "this file": sheet.condensed,
        "a random subset of its bytes": sheet.random,
        "the whole graph": sheet.whole,
        "the whole graph with pseudo-labels": sheet.whole_with_pseudo_labels,
    }
    rows = [
        (
            name,
            f"{row.nodes:,}",
            byte_count(row.bytes),
            f"{row.seconds:.3g}",
            f"{row.seconds_alone:.3g}",
            str(row.accuracy),
        )
        for name, row in trained.items()
        if row is not None
    ]
    if sheet.pseudo_labels is not None:
        test = f"{sheet.pseudo_labels['test']:.1f} %"
        rows.append(("the pseudo-labels themselves", "-", "-", "-", "-", test))
    numbers = ("nodes", "bytes", "seconds", "without validation", "test accuracy")
    print_table(("trained on", *numbers), rows, numbers, "seconds to train one network")
