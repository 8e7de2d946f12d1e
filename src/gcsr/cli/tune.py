"""``gcsr tune``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.data import (
    load_graph,
    output_paths,
    require_replaceable,
    require_writable,
    require_writable_folder,
    write_graphs,
)
from gcsr.cli.output import (
    Stages,
    console,
    print_json,
    progress_bars,
    remember_written,
    table,
    uninterrupted,
)
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gcsr.tuning.result import Trial, Tuning
    from gcsr.tuning.search import Search
    from gcsr.utils.progress import Progress

BEST_SHOWN = 5


def tune(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A dataset's name, a graph file or folder."),
    ],
    nodes: Annotated[int | None, typer.Option(help="Number of condensed nodes.")] = None,
    ratio: Annotated[
        float | None, typer.Option(help="The same, as a share of the nodes that may be seen.")
    ] = None,
    method: Annotated[str, typer.Option(help="See `gcsr methods`.")] = "gcsr",
    space: Annotated[
        str | None,
        typer.Option(
            metavar="paper|wide|FILE.toml",
            help="What is searched. [default: what --set searches, otherwise paper]",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=...",
            help="Search a setting (low..high, low..high:log or a,b,c) or fix it (a value);"
            " repeatable.",
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="How many in all, those of a continued study included.")
    ] = 30,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no trial after that many seconds.")
    ] = None,
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.sqlite",
            help="Keeps every trial; the same command continues it."
            " [default: DATA-METHOD-NODES.tune.sqlite]",
        ),
    ] = None,
    seed: options.Seed = 0,
    graphs: Annotated[
        int, typer.Option(min=1, help="Graphs per trial, of seeds SEED, SEED + 1, ...")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Condense with the best settings and write the graph to this file."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the trials into this file (.png or .svg).")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="What is not searched: default, paper or official.")
    ] = "default",
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    as_json: options.Json = False,
) -> None:
    """Search the settings whose condensed graph validates best; test labels are never seen."""
    paths = [] if out is None else output_paths(out, graphs)
    if paths:
        require_writable(paths)
        require_replaceable(paths)

    from gcsr.distributed.start import check_cluster  # noqa: PLC0415
    from gcsr.tuning.result import figure_format  # noqa: PLC0415
    from gcsr.tuning.search import Search  # noqa: PLC0415 - torch takes a second to import
    from gcsr.tuning.study import (  # noqa: PLC0415
        StudySpec,
        import_optuna,
        space_for,
    )

    import_optuna()
    if cluster is not None:
        check_cluster(cluster)
    if plot is not None:
        figure_format(plot)
        require_writable_folder("plot", plot.parent)
    require(seconds is None or seconds > 0, f"seconds: {seconds} is not accepted; > 0 is.")
    changes = _assigned(assignments or [])
    # What is wrong without looking at the data is said before the data are read.
    space_for(method, space, changes)
    left: list[str] = []
    try:
        with progress_bars() as progress:
            graph = load_graph(
                data,
                root=root,
                features=features,
                undirected=undirected,
                inductive=inductive,
                progress=progress,
            )
            asked = StudySpec.of(
                graph,
                nodes=nodes,
                ratio=ratio,
                method=method,
                space=space,
                changes=changes,
                preset=preset,
                seed=seed,
                graphs=graphs,
            )
            path = study or Path(f"{Path(data).stem}-{method}-{asked.nodes}.tune.sqlite")
            with Search(asked, study=path, device=device, cluster=cluster) as search:
                remember_written([path])
                result = _run(search, trials, seconds, progress, left)
            made = (
                result.condense(device=device, progress=progress, cluster=cluster)
                if paths and result.best
                else []
            )
    finally:
        # Once the bars are gone.
        for line in left:
            print(line, file=sys.stderr)
    if made:
        write_graphs(made, paths)
    if plot is not None:
        with uninterrupted():
            remember_written([result.plot(plot)])
    given: list[str] = [] if features is None else ["--features", features]
    given += ["--undirected"] if undirected else []
    if inductive is not None:
        given.append("--inductive" if inductive else "--transductive")
    given += [] if root is None else ["--root", str(root)]
    again = winning_command(data, result, given, out or Path("best.safetensors"))
    files = [*paths, *([] if plot is None else [plot])]
    if as_json:
        print_json(result.to_dict() | {"command": again, "files": [str(file) for file in files]})
        return
    _tell(result, again)
    for file in files:
        print(f"wrote {file}")


def _assigned(assignments: Sequence[str]) -> dict[str, object]:
    from gcsr.methods.registry import setting_name  # noqa: PLC0415 - imports torch

    found: dict[str, object] = {}
    for assignment in assignments:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        require(
            bool(equals and name),
            f"--set: {assignment!r} is not accepted; name=low..high, name=a,b,c or name=value is.",
        )
        key = setting_name(name)
        require(key not in found, f"--set: {name!r} is given twice.")
        found[key] = text
    return found


def _run(
    search: Search, trials: int, seconds: float | None, progress: Progress, left: list[str]
) -> Tuning:
    """Run the trials; after Ctrl-C ``left`` has what was found and how to go on."""
    try:
        on_trial = _best_so_far(search.result(), progress)
        search.run(trials=trials, seconds=seconds, progress=progress, on_trial=on_trial)
    except KeyboardInterrupt:
        found = search.result()
        kept = f"{len(found.trials)} of {counted(trials, 'trial')}"
        left.append(f"{kept} kept; the same command continues")
        if found.ranked:
            left.append(f"best so far: {_said(found)}")
        raise
    return search.result()


def _best_so_far(known: Tuning, progress: Progress) -> Callable[[Trial], None]:
    best = max((trial.score or 0.0 for trial in known.trials), default=0.0)

    def show() -> None:
        if best and isinstance(progress, Stages):
            progress.describe("trials", f"trials, best so far {100 * best:.1f} %")

    def on_trial(trial: Trial) -> None:
        nonlocal best
        best = max(best, trial.score or 0.0)
        show()

    show()
    return on_trial


def winning_command(data: str, result: Tuning, given: Sequence[str], out: Path) -> str:
    """The ``gcsr condense`` that makes the winner again."""
    from gcsr.tuning.space import text_of  # noqa: PLC0415 - imports torch

    asked = result.question
    words = ["gcsr", "condense", data, "--nodes", str(asked.nodes), "--method", asked.method]
    if asked.preset != "default":
        words += ["--preset", asked.preset]
    for name, value in result.settings.items():
        words += ["--set", f"{name}={text_of(value)}"]
    words += ["--seed", str(asked.seed)]
    if asked.graphs > 1:
        words += ["--graphs", str(asked.graphs)]
    return shlex.join([*words, *given, "--out", str(out)])


def _said(result: Tuning) -> str:
    from gcsr.tuning.space import text_of  # noqa: PLC0415 - imports torch

    best = result.best
    chosen = ", ".join(f"{name}={text_of(value)}" for name, value in best.settings.items())
    return f"trial {best.number}, validation {100 * result.score:.2f} %" + (
        f" ({chosen})" if chosen else ""
    )


def _tell(result: Tuning, again: str) -> None:
    asked = result.question
    pruned = sum(trial.state == "pruned" for trial in result.trials)
    best = _said(result)
    print(
        f"{asked.graph.name}: {counted(asked.nodes, 'node')} by {asked.method},"
        f" {counted(len(result.trials), 'trial')}, {pruned} of them pruned, in {result.study}"
    )
    searched = list(asked.space.searched)
    columns = ("trial", "validation, %", *searched, "seconds")
    shown = table(*columns, numbers=columns)
    for trial in result.ranked[:BEST_SHOWN]:
        values = [_short(trial.settings[name]) for name in searched]
        score = f"{100 * (trial.score or 0.0):.2f}"
        shown.add_row(str(trial.number), score, *values, f"{trial.seconds:.1f}")
    console().print(shown)
    print(f"best: {best}")
    print(f"make it again: {again}")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
