"""``gcsr condense``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcsr.cli.output import byte_count, print_json

if TYPE_CHECKING:
    from gcsr.outofcore.estimate import Estimate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gcsr.cli import options
from gcsr.cli.data import (
    checkpoint_folder,
    load_graph,
    output_paths,
    replaced,
    require_replaceable,
    require_writable,
    write_graphs,
)
from gcsr.cli.options import expert_bounds, parse_bytes, parse_settings
from gcsr.cli.output import prefixed, print_leak, progress_bars, remember_unfinished, uninterrupted
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph, StoredDtype
    from gcsr.utils.checkpoint import Checkpoint

# -- What a condensation would take, for people and programs -----------------------------------------


def tell_estimate(found: Estimate, *, as_json: bool) -> None:
    """Print an estimate."""
    if as_json:
        print_json(found.to_dict())
        return
    where = "in blocks" if found.in_blocks else "in memory"
    print(
        f"{where}: about {_duration(found.seconds)} on one core (an order of magnitude),"
        f" {byte_count(found.memory_bytes)} of memory, {byte_count(found.disk_bytes)} of disk"
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def condense(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A dataset's name, a graph file or folder."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write (needed, but with --estimate). With --graphs above 1:"
            " NAME-0.safetensors, NAME-1.safetensors, ... beside it."
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of condensed nodes.")] = None,
    ratio: Annotated[
        float | None, typer.Option(help="The same, as a share of the nodes that may be seen.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="See `gcsr methods`. By default auto: the best clustered start, improved by bilevel"
            " condensation within the budget; with a preset gcsr."
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Seconds that the automatic mode should take per graph, by a count of operations;"
            " by default 240.",
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="default; paper: the authors' settings for their datasets; or official: those of"
            " SFGC's own authors."
        ),
    ] = "default",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    expert_memory: options.ExpertMemory = None,
    expert_disk: options.ExpertDisk = None,
    rule: Annotated[
        str,
        typer.Option(
            "--sparsify",
            metavar="RULE",
            help="Which edges are stored: none (all), threshold=0.05, top-k=8, or auto: the fewest"
            " that validate within half a point of all.",
        ),
    ] = "none",
    dtype: Annotated[
        str | None,
        typer.Option(
            help="What is stored: float32 or float16; by default as computed (--set dtype=...)."
        ),
    ] = None,
    seed: options.Seed = 0,
    graphs: Annotated[
        int,
        typer.Option(min=1, help="How many graphs to make together, of seeds SEED, SEED + 1, ..."),
    ] = 1,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    only_estimate: Annotated[
        bool,
        typer.Option(
            "--estimate", help="Only say what time, memory and disk this would take; write nothing."
        ),
    ] = False,
    root: options.Root = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="keep, rows, standardise, or auto: the one under which networks of the real graph"
            " validate best; by default what is usual for the dataset."
        ),
    ] = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew, whatever an earlier run left behind.")
    ] = False,
    no_checkpoint: Annotated[
        bool,
        typer.Option("--no-checkpoint", help="Leave nothing behind that could be continued."),
    ] = False,
    checkpoint_every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Write down how far the run is so often; by default as often as takes one"
            " hundredth of the time.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Condense a graph to --nodes nodes, or to a --ratio of them, and write it to a file.

    A run that was ended continues where it was when the same command is given again.
    """
    out, paths = _places(out, graphs, only_estimate)

    from gcsr.api import condense_many, default_method, make_condenser, sparsify  # noqa: PLC0415 - imports torch
    from gcsr.auto.scaling import choose_scaling  # noqa: PLC0415
    from gcsr.distributed.start import check_cluster  # noqa: PLC0415
    from gcsr.evaluation.sparsify import Sparsifier  # noqa: PLC0415
    from gcsr.methods.presets import PRESETS  # noqa: PLC0415
    from gcsr.methods.registry import build  # noqa: PLC0415
    from gcsr.utils.checkpoint import Checkpoint  # noqa: PLC0415
    from gcsr.utils.devices import pick_device  # noqa: PLC0415

    require_one_of("preset", preset, PRESETS)
    method = method or default_method(preset)
    settings = parse_settings(method, assignments or [])
    if budget is not None:
        require(
            method == "auto", f"--budget: is for the automatic mode, not for --method {method}."
        )
        require("budget" not in settings, "--budget: is given by --set too.")
        settings["budget"] = budget
    for key, size in expert_bounds(expert_memory, expert_disk).items():
        require(key not in settings, f"--{key.replace('_', '-')}: is given by --set too.")
        settings[key] = size
    # What is wrong without looking at the data is said before the data are read.
    build(method, {"nodes": nodes, "ratio": ratio, **settings})
    stored_dtype = cast("StoredDtype | None", dtype)
    Sparsifier(rule=rule, dtype=stored_dtype)
    bound = None if memory is None else parse_bytes("--memory", memory)
    # The devices of a cluster are elsewhere.
    target = pick_device(device) if cluster is None else device
    here = pick_device(device if cluster is None else "auto")
    checkpoint = None
    if cluster is not None:
        check_cluster(cluster)
        for option, given in (("--fresh", fresh), ("--checkpoint-every", checkpoint_every)):
            require(not given, f"{option}: nothing is written down of work on a cluster.")
    elif not no_checkpoint and not only_estimate:
        folder = checkpoint_folder(out)
        checkpoint = Checkpoint(folder, every=checkpoint_every, fresh=fresh, keep=True)
        remember_unfinished(folder)
    with progress_bars() as progress:
        graph = load_graph(
            data,
            root=root,
            features="keep" if features == "auto" else features,
            undirected=undirected,
            inductive=inductive,
            progress=progress,
            memory=bound,
        )
        if only_estimate:
            condenser, _ = make_condenser(
                graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings=settings
            )
            tell_estimate(condenser.estimate(graph), as_json=as_json)
            return
        context: dict[str, Any] = {}
        if features == "auto":
            choice = choose_scaling(graph, device=here, progress=progress)
            graph, context = graph.scaled(choice.features), {"scaling": choice.told}
        made = condense_many(
            graph,
            nodes=nodes,
            ratio=ratio,
            method=method,
            preset=preset,
            seeds=range(seed, seed + graphs),
            device=target,
            checkpoint=checkpoint,
            progress=progress,
            cluster=cluster,
            context=context,
            **settings,
        )
        if rule != "none" or dtype is not None:
            made = [
                sparsify(
                    small,
                    graph,
                    rule=rule,
                    dtype=stored_dtype,
                    device=here,
                    progress=prefixed(progress, f"graph {done}"),
                )
                for done, small in enumerate(made)
            ]
    lost = [said for one, path in zip(made, paths, strict=True) if (said := replaced(path, one))]
    _write(made, paths, checkpoint)
    _tell(out, paths, made, lost, as_json=as_json)


def _places(out: Path | None, graphs: int, only_estimate: bool) -> tuple[Path, list[Path]]:
    """Where results go; an estimate needs no such place."""
    require(out is not None or only_estimate, "--out: is needed, the file to write.")
    out = out or Path("nothing.safetensors")
    paths = output_paths(out, graphs)
    if not only_estimate:
        require_writable(paths)
        require_replaceable(paths)
    return out, paths


def _write(made: list[CondensedGraph], paths: list[Path], checkpoint: Checkpoint | None) -> None:
    """The result; what the run left behind goes once it is there, or if there was nothing to keep."""
    if checkpoint is None:
        write_graphs(made, paths)
        return
    with uninterrupted():
        try:
            write_graphs(made, paths, checkpoint.stage)
        except InputError:
            if not checkpoint.exists:
                checkpoint.discard()
            raise
        checkpoint.discard()


def _summary(
    out: Path, paths: list[Path], made: list[CondensedGraph], lost: list[str]
) -> dict[str, Any]:
    first = made[0].provenance
    return {
        "out": str(out),
        "files": [str(path) for path in paths],
        "replaced": lost,
        "method": first["method"],
        "chosen": [one.provenance["automatic"]["chosen"] for one in made if _automatic(one)],
        "preset": first["preset"],
        "settings": first["settings"],
        "dataset": first["dataset"]["name"],
        "features": first["dataset"]["features"],
        "scaling": first.get("scaling"),
        "nodes": made[0].num_nodes,
        "ratio": first["ratio"],
        "graphs": len(made),
        "seeds": [graph.provenance["seed"] for graph in made],
        "seconds": sum(graph.provenance["measured"]["seconds"] for graph in made),
        "bytes": first["bytes"],
        "stored": [graph.provenance.get("stored") for graph in made],
        "device": first["device"],
        "leaks_test_labels": any(graph.leaks_test_labels for graph in made),
        "notes": list(dict.fromkeys(note for one in made for note in one.provenance["notes"])),
    }


def _automatic(one: CondensedGraph) -> bool:
    return "automatic" in one.provenance


def _makers(made: list[CondensedGraph]) -> str:
    """The method; for the automatic mode, which ones it chose."""
    name = str(made[0].provenance["method"])
    found = [one.provenance["automatic"]["chosen"]["method"] for one in made if _automatic(one)]
    chosen = ", ".join(sorted(set(found)))
    return f"{name}, which chose {chosen}" if chosen else name


def _tell(
    out: Path, paths: list[Path], made: list[CondensedGraph], lost: list[str], *, as_json: bool
) -> None:
    if as_json:
        print_json(_summary(out, paths, made, lost))
        return
    summary = _summary(paths[0], paths, made, lost)
    each = " each" if len(made) > 1 else ""
    print(
        f"{summary['dataset']}: {counted(summary['nodes'], 'node')}{each} by {_makers(made)}"
        f" ({100 * summary['ratio']:.2f} % of what is condensed),"
        f" {byte_count(summary['bytes']['condensed'])} instead of"
        f" {byte_count(summary['bytes']['original'])}, {summary['seconds']:.1f} s"
    )
    if summary["scaling"]:
        scores = summary["scaling"]["validation"]
        said = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores.items())
        print(f"features: {summary['features']} (chosen on validation: {said})")
    for stored in filter(None, summary["stored"]):
        print(f"stored: {stored_in_words(stored)}")
    if summary["preset"] != "default":
        print(f"settings: {summary['preset']}")
    if made[0].provenance["measured"].get("resumed"):
        print("continued from what an earlier run left behind")
    for note in summary["notes"]:
        print(f"note: {note}")
    if summary["leaks_test_labels"]:
        print_leak()
    for sentence in lost:
        print(sentence)
    for path in paths:
        print(f"wrote {path}")


def stored_in_words(stored: dict[str, Any]) -> str:
    """What sparsifying and rounding did, and what they cost on validation nodes."""
    chosen = " (chosen on validation)" if stored["asked"] == "auto" else ""
    edges = "every edge" if stored["rule"] == "none" else stored["rule"]
    size, score = stored["bytes"], stored["validation"]
    return (
        f"{edges}{chosen}, {stored['dtype']}: {byte_count(size['after'])} instead of"
        f" {byte_count(size['before'])}; validation accuracy {score['before']:.1f} %"
        f" -> {score['after']:.1f} %"
    )
