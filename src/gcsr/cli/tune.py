"""``gcsr tune``."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.data import SUFFIX, load_graph, output_paths, require_writable_folder, write_graphs
from gcsr.cli.options import checked_device, parse_dimensions
from gcsr.cli.output import print_json, print_table, progress_bars, remember_written, uninterrupted
from gcsr.utils.errors import require
from gcsr.utils.formatting import command_line, counted, text_of
from gcsr.utils.progress import Progress, Stages

if TYPE_CHECKING:
    from gcsr.tuning.search import Search, Trial, Tuning

BEST_SHOWN = 5
# What names of files cannot have on Windows; the method may be module:Class.
_NO_NAMES = re.compile(r'[<>:"/\\|?*]')


def tune(
    data: options.Data,
    nodes: options.Nodes = None,
    ratio: options.Ratio = None,
    method: options.Method = "gcsr",
    space: Annotated[str | None, typer.Option(metavar="paper|wide|FILE.toml")] = None,
    assignments: options.Dimensions = None,
    trials: options.Count = 30,
    seconds: float | None = None,
    study: Annotated[Path | None, typer.Option(metavar="FILE.sqlite")] = None,
    seed: options.Seed = 0,
    graphs: options.Count = 1,
    out: Path | None = None,
    plot: Path | None = None,
    preset: str = "default",
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Search the settings whose condensed graph validates best; test labels are never seen.

    Args:
        space: What is searched. [default: what --set searches, otherwise paper]
        assignments: Search a setting (low..high, low..high:log or a,b,c) or fix it (a value);
            repeatable.
        trials: How many in all, those of a continued study included.
        study: Keeps every trial; the same command continues it.
            [default: DATA-METHOD-NODES.tune.sqlite]
        out: Condense with the best settings and write the graph to this file.
        plot: Draw the trials into this file (.png or .svg).
    """
    paths = [] if out is None else output_paths(out, graphs)

    from gcsr.tuning.search import figure_format, open_search
    from gcsr.tuning.space import space_for
    from gcsr.tuning.study import StudySpec

    checked_device(device, cluster)
    if plot is not None:
        figure_format(plot)
        require_writable_folder("plot", plot.parent)
    # Before a study is made.
    require(seconds is None or seconds > 0, f"seconds must be > 0, got {seconds}.")
    searched = space_for(method, space, parse_dimensions(assignments))
    left: list[str] = []
    try:
        with progress_bars() as progress:
            graph = load_graph(data, loading, progress)
            asked = StudySpec.of(
                graph,
                nodes=nodes,
                ratio=ratio,
                method=method,
                space=searched,
                preset=preset,
                seed=seed,
                graphs=graphs,
            )
            name = f"{Path(data).stem}-{method}-{asked.nodes}.tune.sqlite"
            path = study or Path(_NO_NAMES.sub("-", name))
            with open_search(asked, study=path, device=device, cluster=cluster) as search:
                remember_written([path])
                result = _run(search, trials, seconds, progress, left)
            made = []
            if paths and result.best:
                made = result.condense(device=device, progress=progress, cluster=cluster)
    finally:
        # Once the bars are gone.
        for line in left:
            print(line, file=sys.stderr)
    if made:
        write_graphs(made, paths)
    if plot is not None:
        with uninterrupted():
            remember_written([result.plot(plot)])
    spec = result.spec
    again = command_line(
        *("gcsr", "condense", data),
        nodes=spec.nodes,
        method=spec.method,
        preset=None if spec.preset == "default" else spec.preset,
        set=result.settings,
        seed=spec.seed,
        graphs=spec.graphs if spec.graphs > 1 else None,
        **loading.options,
        out=out or _free_name(spec.graphs),
    )
    files = [*paths, *([] if plot is None else [plot])]
    if as_json:
        print_json(result.to_dict() | {"command": again, "files": [str(file) for file in files]})
        return
    _print_result(result, trials, again)
    for file in files:
        print(f"wrote {file}")


def _run(
    search: Search, trials: int, seconds: float | None, progress: Progress, left: list[str]
) -> Tuning:
    """Run the trials; after Ctrl-C ``left`` has the best trial and how to continue."""

    def show_best(_: Trial | None = None) -> None:
        ranked = search.result().ranked
        if ranked and isinstance(progress, Stages):
            score = 100 * (ranked[0].score or 0.0)
            progress.describe("trials", f"trials, best so far {score:.1f} %")

    try:
        show_best()
        search.run(trials=trials, seconds=seconds, progress=progress, on_trial=show_best)
    except KeyboardInterrupt:
        found = search.result()
        kept = f"{len(found.trials)} of {counted(trials, 'trial')}"
        left.append(f"{kept} kept; the same command continues")
        if found.ranked:
            left.append(f"best so far: {_best(found)}")
        raise
    return search.result()


def _best(result: Tuning) -> str:
    best = result.best
    chosen = ", ".join(f"{name}={text_of(value)}" for name, value in best.settings.items())
    score = f"trial {best.number}, validation {100 * result.score:.2f} %"
    return f"{score} ({chosen})" if chosen else score


def _free_name(graphs: int) -> str:
    """A file that does not exist yet, nor those of several graphs."""
    for number in itertools.count(1):
        stem = "best" if number == 1 else f"best-{number}"
        names = [stem] if graphs == 1 else [f"{stem}-{place}" for place in range(graphs)]
        if not any(Path(f"{name}{SUFFIX}").exists() for name in names):
            break
    return f"{stem}{SUFFIX}"


def _print_result(result: Tuning, trials: int, again: str) -> None:
    asked = result.spec
    pruned = sum(trial.state == "pruned" for trial in result.trials)
    best = _best(result)
    print(
        f"{asked.graph.name}: {counted(asked.nodes, 'node')} by {asked.method},"
        f" {counted(len(result.trials), 'trial')}, {pruned} of them pruned, in {result.study}"
    )
    searched = list(asked.space.searched)
    every = asked.space.count
    if not searched:
        print(
            "note: there is nothing to search, so one trial is all; --set NAME=a,b,c searches one."
        )
    elif len(result.trials) < trials and every == len({str(one.settings) for one in result.trials}):
        print(f"note: the space has {counted(every, 'candidate')}, and all of them were tried.")
    rows = []
    for trial in result.ranked[:BEST_SHOWN]:
        values = [trial.settings[name] for name in searched]
        shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
        score = f"{100 * (trial.score or 0.0):.2f}"
        rows.append((str(trial.number), score, *shown, f"{trial.seconds:.1f}"))
    columns = ("trial", "validation, %", *searched, "seconds")
    print_table(columns, rows, columns)
    print(f"best: {best}")
    print(f"make it again: {again}")
