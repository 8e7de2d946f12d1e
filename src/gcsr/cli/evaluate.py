"""``gcsr evaluate``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gcsr.cli import options
from gcsr.cli.data import found_data, load_graph, print_found
from gcsr.cli.options import parse_bytes
from gcsr.cli.output import print_json, print_leak, progress_bars
from gcsr.utils.errors import require
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.evaluation.evaluation import Evaluation


def evaluate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Condensed graphs; several are pooled."),
    ] = None,
    data: options.MadeFrom = None,
    full: Annotated[
        bool, typer.Option("--full", help="Train on the whole graph instead of on FILE.")
    ] = False,
    pseudo_labels: Annotated[
        bool,
        typer.Option(
            "--pseudo-labels",
            help="With --full: train with pseudo-labels of the unlabeled nodes too.",
        ),
    ] = False,
    model: Annotated[str, typer.Option(help="The network to train and test.")] = "gcn",
    runs: Annotated[int, typer.Option(min=1, help="Networks per condensed graph.")] = 10,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs per network.")] = 600,
    dropout: Annotated[
        float | None,
        typer.Option(help="Dropout while training, 0 to below 1. [default: the paper's, mostly 0]"),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: options.Cluster = None,
    memory: options.Memory = None,
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Train networks on condensed graphs and test them on the real one.

    Features are scaled, and nodes hidden, as they were when FILE was made, unless options say
    otherwise.
    """
    require(
        dropout is None or 0 <= dropout < 1,
        f"dropout: {dropout} is not accepted; a number >= 0 and < 1 is.",
    )
    if full:
        require(not files, "--full: trains on the whole graph, so no FILE can be given with it.")
        require(
            data is not None, "--data: is needed with --full, a dataset's name or a graph file."
        )
    else:
        require(
            not pseudo_labels,
            "--pseudo-labels: is for training on the whole graph; give --full with it.",
        )
        require(bool(files), "FILE: at least one condensed graph is needed, or --full.")

    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415 - torch takes a second to import
    from gcsr.distributed.start import check_cluster  # noqa: PLC0415
    from gcsr.evaluation.protocol import evaluate as evaluate_small  # noqa: PLC0415
    from gcsr.evaluation.protocol import evaluate_full  # noqa: PLC0415
    from gcsr.models.registry import testing_model  # noqa: PLC0415
    from gcsr.training.fit import TrainingRecipe  # noqa: PLC0415
    from gcsr.utils.devices import pick_device  # noqa: PLC0415

    testing_model(model)
    # The devices of a cluster are elsewhere.
    target = pick_device(device) if cluster is None else device
    if cluster is not None:
        check_cluster(cluster)
    small = [CondensedGraph.load(path) for path in files or []]
    used = found_data(small, root) if data is None else data
    with progress_bars() as progress:
        graph = load_graph(
            used,
            root=root,
            features=features,
            undirected=undirected,
            inductive=inductive,
            made=small,
            progress=progress,
            memory=None if memory is None else parse_bytes("--memory", memory),
        )
        recipe = TrainingRecipe(epochs=epochs)
        if dropout is not None:
            recipe = replace(recipe, dropout=dropout)
        if full:
            result = evaluate_full(
                graph,
                model=model,
                runs=runs,
                recipe=recipe,
                seed=seed,
                device=target,
                progress=progress,
                cluster=cluster,
                pseudo_labels=pseudo_labels,
            )
        else:
            result = evaluate_small(
                small,
                graph,
                model=model,
                runs=runs,
                recipe=recipe,
                seed=seed,
                device=target,
                check_origin=not any_graph,
                progress=progress,
                cluster=cluster,
            )
    if as_json:
        print_json(result.to_dict())
        return
    if data is None:
        print_found(used)
    _tell(result)


def _tell(result: Evaluation) -> None:
    print(result)
    if result.pseudo_labels is not None:
        itself = result.pseudo_labels["test"]
        print(f"{itself:.1f} % on {result.dataset} (the pseudo-labels themselves)")
    trained = "condensed graph" if result.trained_on == "condensed" else "whole graph"
    epochs = counted(result.recipe["epochs"], "epoch")
    print(f"trained on the {trained} for {epochs}, seed {result.seed}: {result.seconds:.1f} s")
    if result.leaks_test_labels:
        print_leak()
