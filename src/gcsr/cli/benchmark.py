"""``gcsr benchmark``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.options import checked_device
from gcsr.cli.output import (
    ROOT_OPTION,
    in_options,
    print_json,
    print_table,
    progress_bars,
    remember_rows,
    remember_written,
)
from gcsr.utils.errors import InputError, require
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.benchmarking.grid import Grid
    from gcsr.benchmarking.results import Results

CELLS_FAILED = 1
# Fields of a grid that have another name as an option.
OPTIONS = {
    "methods": "--method",
    "models": "--model",
    "more_models": "--more-model",
    "settings": "--set",
}
# The tables and the page beside the file of rows.
OUTPUTS = (".csv", ".tex", ".md", ".html")
# Cases side by side in the terminal.
WIDE = 5
Words = list[str] | None


def benchmark(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]")] = None,
    data: Annotated[Words, typer.Option("--data", metavar="DATA")] = None,
    method: Words = None,
    nodes: str | None = None,
    per_class: str | None = None,
    ratio: str | None = None,
    model: Words = None,
    more_model: Words = None,
    seeds: options.CountOrNone = None,
    runs: options.CountOrNone = None,
    epochs: options.CountOrNone = None,
    preset: str | None = None,
    tune: Annotated[int | None, typer.Option(min=0)] = None,
    set_: options.Assignments = None,
    out: Path = Path("benchmark.jsonl"),
    jobs: options.Count = 1,
    time_limit: float | None = None,
    cell_limit: float | None = None,
    retry: bool = False,
    keep_graphs: Path | None = None,
    estimate: bool = False,
    download: options.Download = True,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    root: options.Root = None,
    as_json: options.Json = False,
) -> None:
    """Compare methods on graphs, sizes and test models; the same command continues a stopped run.

    Without FILE and --data, the rows of OUT are shown and its tables are written again.

    Args:
        file: A TOML file; options replace its fields.
        data: Graphs: names or files, with variants such as cora:60-20-20 (split of the labeled
            nodes) or cora:inductive. Lists may have commas, options may be repeated.
        method: Methods: names, module:Class, or all.
        nodes: Sizes, such as 35,70,140.
        per_class: Sizes as nodes per class.
        ratio: Sizes as shares of the visible nodes.
        model: Test models at every size; `gcsr evaluate --help` lists them.
        more_model: Test models at the first size only.
        preset: Settings: default, paper or official.
        tune: Tune by validation accuracy, with so many trials per cell.
        set_: A setting of the given methods.
        out: The file of rows (.jsonl); tables and a page are beside it.
        keep_graphs: Keep condensed graphs in this folder, and take them from it.
        estimate: Print expected seconds and measure nothing.
    """
    from gcsr.benchmarking.grid import Grid, of_file
    from gcsr.benchmarking.grid import benchmark as run
    from gcsr.benchmarking.results import Results
    from gcsr.benchmarking.store import Store

    named = [word for word in _words(method) or () if word != "all"]
    changes: dict[str, Any] = {
        "data": _words(data),
        "methods": _words(method),
        "nodes": _numbers("--nodes", nodes, int),
        "per_class": _numbers("--per-class", per_class, int),
        "ratio": _numbers("--ratio", ratio, float),
        "models": _words(model),
        "more_models": _words(more_model),
        "settings": options.parse_common_settings(named, set_) if set_ else None,
        "seeds": seeds,
        "runs": runs,
        "epochs": epochs,
        "preset": preset,
        "tune": tune,
    }
    require(not set_ or bool(named), "--set needs --method, whose settings are meant.")
    changes = {name: value for name, value in changes.items() if value is not None}
    if file is None and data is None:
        given = [OPTIONS.get(name, f"--{name.replace('_', '-')}") for name in changes]
        require(not given, f"--data or FILE is needed with {', '.join(given)}.")
        require(out.is_file(), f"{out}: there are no rows; give FILE or --data.")
        results = Results.of(Store(out))
    else:
        checked_device(device, cluster)
        require(
            file is None or data is None or file.exists(),
            f"FILE must be a TOML file, got {file}; several values of an option are separated by"
            " commas: --nodes 35,70.",
        )
        grid = Grid(**changes) if file is None else Grid.read(file, **changes)
        if estimate:
            with of_file(file, changes):
                _print_estimate(grid, out, root, download, as_json)
            return
        for place in () if out.exists() else map(out.with_suffix, OUTPUTS):
            require(
                not place.exists(),
                f"out: {place} exists and {out} does not; name another file, or remove it first.",
            )
        try:
            with progress_bars() as progress, of_file(file, changes):
                results = run(
                    grid,
                    out=out,
                    root=root,
                    device=device,
                    jobs=jobs,
                    cluster=cluster,
                    time_limit=time_limit,
                    cell_limit=cell_limit,
                    retry=retry,
                    keep_graphs=keep_graphs,
                    download=download,
                    progress=progress,
                )
        except KeyboardInterrupt:
            remember_rows(out, len(Store(out)))
            raise
    files = write_outputs(results, out)
    remember_written([out, *files])
    if as_json:
        print_json(
            {
                "rows": results.rows,
                "ranks": [vars(rank) for rank in results.ranks],
                "missing": results.missing,
                "files": [str(path) for path in (out, *files)],
            }
        )
    else:
        _print_results(results, [out, *files])
    if results.failures or results.faults:
        raise typer.Exit(CELLS_FAILED)


def _words(given: Words) -> list[str] | None:
    return None if given is None else [word for text in given for word in text.split(",") if word]


def _numbers(option: str, given: str | None, kind: type[int] | type[float]) -> list[Any] | None:
    try:
        return None if given is None else [kind(word) for word in given.split(",")]
    except ValueError:
        raise InputError(f"{option} must be numbers such as 35,70, got {given!r}.") from None


def write_outputs(results: Results, out: Path) -> list[Path]:
    """The tables and the page beside the file of rows."""
    from gcsr.reporting.benchmark import benchmark_page
    from gcsr.utils.safe_io import write_atomically

    files = {".csv": results.csv(), ".tex": results.latex(), ".md": results.markdown()}
    files[".html"] = benchmark_page(results, f"Benchmark: {out.stem}").render()
    for suffix, text in files.items():
        write_atomically(out.with_suffix(suffix), text.encode())
    return [out.with_suffix(suffix) for suffix in files]


def _print_results(results: Results, files: Sequence[Path]) -> None:
    cases = results.cases()
    for first in range(0, len(cases), WIDE):
        head, *lines = results.matrix(cases[first : first + WIDE], ("*", ""))
        print_table(head, lines, head[1:], f"test accuracy (%) of {results.model}")
    if cases:
        print(
            "*: best, or not distinguishable from it (95 %); ±: 95 % interval; † leaks test labels"
        )
    for note in results.notes:
        print(note)
    if results.outdated:
        found = [f"{counted(count, 'row')} of {one}" for one, count in results.outdated.items()]
        print(f"measured with an earlier revision of the method: {', '.join(found)}")
    if results.ranks:
        head, *lines = results.rank_table()
        print_table(head, lines, head[1:], "average ranks")
        print(results.rank_sentence)
    for why, places in results.failures.items():
        print(in_options(f"failed: {'; '.join(places)}: {why}", ROOT_OPTION))
    for why in dict.fromkeys(results.faults):
        print(in_options(f"not measured: {why}", ROOT_OPTION))
    if results.missing:
        print(f"{counted(results.missing, 'cell')} not begun; the same command continues")
    for path in files:
        print(f"wrote {path}")


def _print_estimate(
    grid: Grid, out: Path, root: Path | None, download: bool, as_json: bool
) -> None:
    from gcsr.benchmarking.grid import estimate
    from gcsr.benchmarking.measurement import Data
    from gcsr.benchmarking.store import Store

    found = estimate(grid, Store(out), Data(root, download))
    lines = []
    for label in dict.fromkeys(cell.label for cell, _ in found):
        own = [seconds for cell, seconds in found if cell.label == label]
        known = [seconds for seconds in own if seconds is not None]
        lines.append((label, len(own), sum(known), len(own) - len(known)))
    if as_json:
        names = ("method", "cells", "seconds", "unknown")
        print_json([dict(zip(names, line, strict=True)) for line in lines])
        return
    head = ("method", "cells to measure", "seconds of condensing", "cells of unknown seconds")
    print_table(head, [(a, b, f"{c:,.0f}", d) for a, b, c, d in lines], head[1:])
    total = sum(seconds or 0 for _, seconds in found)
    print(
        f"about {total:,.0f} seconds in one process: those of rows of OUT where there are any, else an"
        " order of magnitude on one reference core; a GPU takes far less; seconds of training test"
        " networks are not counted"
    )
