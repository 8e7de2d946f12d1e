"""``gcsr condense`` and ``gcsr update``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import load_graph, on_file, output_paths, replaced, write_graphs
from gcsr.cli.options import checked_device, parse_settings
from gcsr.cli.output import new_notes, print_json, print_leak, progress_bars, remember_unfinished
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.formatting import byte_count, counted, printable
from gcsr.utils.progress import prefixed

if TYPE_CHECKING:
    from gcsr.data.condensed import StoredDtype
    from gcsr.evaluation.forecast import Forecast
    from gcsr.outofcore.estimate import Estimate


def condense(
    data: options.Data,
    out: Path | None = None,
    nodes: options.Nodes = None,
    ratio: options.Ratio = None,
    method: str | None = None,
    budget: Annotated[float | None, typer.Option(metavar="SECONDS")] = None,
    preset: str = "default",
    assignments: options.Assignments = None,
    bounds: options.ExpertBounds = options.EXPERT_BOUNDS,
    rule: options.Rule = "none",
    dtype: str | None = None,
    seed: options.Seed = 0,
    graphs: options.Count = 1,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    only_estimate: Annotated[bool, typer.Option("--estimate")] = False,
    loading: options.Loading = options.LOADING,
    fresh: bool = False,
    no_checkpoint: bool = False,
    checkpoint_every: Annotated[float | None, typer.Option(metavar="SECONDS", min=0)] = None,
    as_json: options.Json = False,
) -> None:
    """Condense a graph to --nodes nodes, or to a --ratio of them, and write it to a file.

    A run that was ended continues where it was when the same command is given again.

    Args:
        out: The file to write (needed, but with --estimate). With --graphs above 1:
            NAME-0.safetensors, NAME-1.safetensors, ... beside it.
        method: See `gcsr methods`. By default auto: the best clustered start, improved by bilevel
            condensation within the budget; with a preset gcsr.
        budget: Seconds that the automatic mode should take per graph on a reference core or a GPU, by
            a count of operations; a slower or busy core takes longer; by default 240.
        rule: Which edges are stored: none (all), threshold=0.05, top-k=8, or auto: the fewest that
            validate within half a point of all.
        dtype: What is stored: float32 or float16; by default as computed (--set dtype=...).
        graphs: How many graphs to make together, of seeds SEED, SEED + 1, ...
        only_estimate: Only print the time, memory and disk needed, and when it will have paid.
        features: keep, rows, standardize, or auto: the one under which networks of the real graph
            validate best; by default what is usual for the dataset, and auto where the scale of the
            features of a file is extreme.
        fresh: Ignore the checkpoint of an earlier run.
        no_checkpoint: Write no checkpoint.
        checkpoint_every: Seconds between checkpoints; by default so that they take one hundredth of
            the time.
    """
    require(out is not None or only_estimate, "--out is needed: the file to write.")
    out = out or Path("unused.safetensors")
    paths = [] if only_estimate else output_paths(out, graphs)

    from gcsr.api import default_method, make_condenser
    from gcsr.data.arrays import FEATURE_SCALINGS
    from gcsr.evaluation.sparsify import Sparsifier
    from gcsr.methods.registry import build
    from gcsr.utils.devices import pick_device

    method = method or default_method(preset)
    settings = _settings(method, assignments, bounds, budget)
    # Errors that do not depend on the data come before the data are read.
    build(method, {"nodes": nodes, "ratio": ratio, **settings})
    stored_dtype = cast("StoredDtype | None", dtype)
    Sparsifier(rule=rule, dtype=stored_dtype)
    target = checked_device(device, cluster)
    here = pick_device(device if cluster is None else "auto")
    checkpoint = None
    if cluster is not None:
        for option, given in (("--fresh", fresh), ("--checkpoint-every", checkpoint_every)):
            require(not given, f"{option} cannot be used with --cluster, which has no checkpoints.")
    elif not no_checkpoint and not only_estimate:
        folder = out.with_name(f".{out.name}.checkpoint")
        checkpoint = gcsr.Checkpoint(folder, every=checkpoint_every, fresh=fresh, keep=True)
        remember_unfinished(folder)
    if loading.features is not None:
        require_one_of("features", loading.features, ("auto", *FEATURE_SCALINGS))
    with progress_bars() as progress:
        kept = replace(loading, features="keep") if loading.features == "auto" else loading
        graph = load_graph(data, kept, progress, memory=memory)
        if only_estimate:
            condenser, _ = make_condenser(
                graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings=settings
            )
            from gcsr.data.stored_graph import StoredGraph

            ahead = None
            if cluster is None and not isinstance(graph, StoredGraph):
                from gcsr.evaluation.forecast import forecast

                ahead = forecast(condenser, graph, here)
            _print_estimate(condenser.estimate(graph), ahead, method, as_json)
            return
        made = gcsr.condense_many(
            graph,
            nodes=nodes,
            ratio=ratio,
            method=method,
            preset=preset,
            features=loading.features,
            seeds=range(seed, seed + graphs),
            device=target,
            checkpoint=checkpoint,
            progress=progress,
            cluster=cluster,
            **settings,
        )
        if rule != "none" or dtype is not None:
            stored: dict[str, Any] = {"rule": rule, "dtype": stored_dtype, "device": here}
            made = [
                gcsr.sparsify(small, graph, progress=prefixed(progress, f"graph {done}"), **stored)
                for done, small in enumerate(made)
            ]
    lost = [line for one, path in zip(made, paths, strict=True) if (line := replaced(path, one))]
    write_graphs(made, paths, checkpoint)
    summary = _summary(out, paths, made, lost)
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary, made)


def update(
    file: options.File,
    data: Annotated[str, typer.Option("--data", metavar="DATA")],
    out: Path,
    nodes: options.CountOrNone = None,
    iterations: Annotated[int | None, typer.Option(min=0)] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    loading: options.Loading = options.LOADING,
    as_json: options.Json = False,
) -> None:
    """Bring a condensed graph up to date with a graph that has grown, instead of condensing anew.

    Nodes, edges, labels or classes may have been added; features and earlier classes are the same.

    Args:
        data: The graph as it is now: a dataset's name, a graph file or folder.
        out: The file to write; it may be FILE.
        nodes: Number of condensed nodes; by default as many as FILE has.
    """
    paths = output_paths(out)

    given = {"nodes": nodes, "iterations": iterations, "seed": seed}
    target = checked_device(device, None)
    made: gcsr.CondensedGraph = on_file(gcsr.update, file, data, loading, device=target, **given)
    lost = None if out.resolve() == file.resolve() else replaced(out, made)
    write_graphs([made], paths)
    found, dataset = made.provenance["update"], made.provenance["dataset"]["name"]
    seconds, notes = made.provenance["measured"]["seconds"], made.provenance["notes"]
    if as_json:
        print_json(
            {
                "out": str(out),
                "dataset": dataset,
                "nodes": made.num_nodes,
                **found,
                "updates": len(made.provenance["history"]),
                "seconds": seconds,
                "notes": notes,
                "replaced": lost,
                "leaks_test_labels": made.leaks_test_labels,
            }
        )
        return
    scores = ", ".join(f"{name} {100 * one:.1f} %" for name, one in found["validation"].items())
    print(
        f"{printable(dataset)}: {counted(found['kept'], 'node')} kept, {sum(found['added'])} added,"
        f" {counted(found['iterations'], 'outer step')}, {seconds:.1f} s; validation: {scores}"
    )
    for note in notes:
        print(f"note: {printable(note)}")
    if made.leaks_test_labels:
        print_leak()
    if lost:
        print(lost)
    print(f"wrote {out}")


def _settings(
    method: str,
    assignments: Sequence[str] | None,
    bounds: options.ExpertBounds,
    budget: float | None,
) -> dict[str, Any]:
    """Settings of ``--set`` and of the options that are settings too."""
    settings = parse_settings(method, assignments)
    given: dict[str, Any] = dict(bounds.settings)
    if budget is not None:
        require(method == "auto", f"--budget is for the automatic mode, not for --method {method}.")
        given["budget"] = budget
    for key in given:
        require(key not in settings, f"--{key.replace('_', '-')} is given by --set too.")
    return settings | given


def _print_estimate(found: Estimate, ahead: Forecast | None, method: str, as_json: bool) -> None:
    """One line of what it takes, and when it will have paid; only of auto this machine is timed."""
    if as_json:
        print_json(found.to_dict() | ({} if ahead is None else {"forecast": ahead.to_dict()}))
        return
    seconds = found.seconds
    time = f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
    time = f"{max(1.0, seconds):.0f} s" if seconds < 120 else time
    where = "in blocks" if found.in_blocks else "in memory"
    took = f"{where}: about {time} on one reference core (an order of magnitude)"
    if ahead is not None and method == "auto":
        here = f"{ahead.condense_seconds:.3g} s to condense"
        took = f"{where}, on this machine: {here} ({time} on one reference core)"
    print(
        f"{took}, {byte_count(found.memory_bytes)} of memory, {byte_count(found.disk_bytes)} of disk"
    )
    if ahead is not None:
        measured = f"trainings measured here in {ahead.calibration_seconds:.1f} s"
        print(f"{ahead.sentence} ({measured}).")


def _summary(
    out: Path, paths: Sequence[Path], made: Sequence[gcsr.CondensedGraph], lost: list[str]
) -> dict[str, Any]:
    records = [one.provenance for one in made]
    first = records[0]
    notes = (note for one in made for note in (*one.provenance["notes"], *one.size_note))
    return {
        "out": str(out),
        "files": [str(path) for path in paths],
        "replaced": lost,
        **{key: first[key] for key in ("method", "preset", "settings", "ratio", "bytes", "device")},
        "chosen": [one["automatic"]["chosen"] for one in records if "automatic" in one],
        "dataset": first["dataset"]["name"],
        "features": first["dataset"]["features"],
        "scaling": first.get("scaling"),
        "nodes": made[0].num_nodes,
        "graphs": len(made),
        "seeds": [one["seed"] for one in records],
        "seconds": sum(one["measured"]["seconds"] for one in records),
        "stored": [one.get("stored") for one in records],
        "leaks_test_labels": any(graph.leaks_test_labels for graph in made),
        "notes": list(dict.fromkeys(notes)),
    }


def _print_summary(summary: dict[str, Any], made: Sequence[gcsr.CondensedGraph]) -> None:
    each = " each" if len(made) > 1 else ""
    print(
        f"{summary['dataset']}: {counted(summary['nodes'], 'node')}{each} by {summary['method']}"
        f" ({100 * summary['ratio']:.2f} % of what is condensed),"
        f" {byte_count(summary['bytes']['condensed'])} instead of"
        f" {byte_count(summary['bytes']['original'])}, condensed in {summary['seconds']:.1f} s"
    )
    records = [one.provenance for one in made if "automatic" in one.provenance]
    kept = [chosen(one["automatic"], one["settings"]) for one in records]
    for sentence in dict.fromkeys(kept):
        of = f" ({kept.count(sentence)} of {len(kept)} graphs)" if len(set(kept)) > 1 else ""
        print(f"chosen: {sentence}{of}")
    if summary["scaling"]:
        scores = summary["scaling"]["validation"].items()
        shown = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores)
        print(f"features: {summary['features']} (chosen on validation: {shown})")
    for stored in filter(None, summary["stored"]):
        _print_stored(stored)
    if summary["preset"] != "default":
        print(f"settings: {summary['preset']}")
    if made[0].provenance["measured"].get("resumed"):
        print("continued from what an earlier run left behind")
    for note in new_notes(summary["notes"]):
        print(f"note: {note}")
    if summary["leaks_test_labels"]:
        print_leak()
    for sentence in summary["replaced"]:
        print(sentence)
    for path in summary["files"]:
        print(f"wrote {path}")


def chosen(automatic: dict[str, Any], asked: dict[str, Any]) -> str:
    """What the automatic mode kept: what was learned, its start, or real nodes.

    ``asked`` are the settings of the automatic mode.
    """
    from gcsr.methods.bilevel import Bilevel

    kept, planned = automatic["chosen"], automatic["plan"]["iterations"]
    settings = kept["settings"]
    if kept["method"] != Bilevel.name:
        learned = "nothing learned" if planned else "no start"
        return f"{kept['method']} (real training nodes); {learned} had better validation accuracy"
    hops = counted(settings.get("num_hops", Bilevel.num_hops), "hop")
    steps = settings.get("iterations", Bilevel.iterations)
    if steps:
        return f"{Bilevel.name} after {hops}, {counted(steps, 'outer step')}"
    failed = [one["reason"] for one in automatic["left_out"] if one["settings"].get("iterations")]
    why = "outer steps did not improve validation accuracy"
    if "bilevel" in asked.get("disable", "") or asked.get("iterations") == 0:
        why = "outer steps were switched off"
    elif not planned:
        why = "no outer steps fit into the budget"
    elif failed:
        why = f"outer steps failed ({failed[0]})"
    return f"its start ({settings.get('init', Bilevel.init)} after {hops}); {why}"


def _print_stored(stored: dict[str, Any]) -> None:
    """What sparsifying and rounding saved, and the validation accuracy that they cost."""
    chosen = " (chosen on validation)" if stored["asked"] == "auto" else ""
    edges = "every edge" if stored["rule"] == "none" else stored["rule"]
    size, score = stored["bytes"], stored["validation"]
    print(
        f"stored: {edges}{chosen}, {stored['dtype']}: {byte_count(size['after'])} instead of"
        f" {byte_count(size['before'])}; validation accuracy {score['before']:.1f} %"
        f" -> {score['after']:.1f} %"
    )
