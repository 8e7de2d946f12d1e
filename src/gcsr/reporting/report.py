"""``gcsr.report``: results in, one HTML page out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gcsr.analysis.analysis import TSNE_NODES, analyze
from gcsr.analysis.privacy import privacy as attack
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.datasets.registry import DATA_VARIABLE, catalogue
from gcsr.evaluation.cost import SMALL
from gcsr.evaluation.origin import condensed_graphs, require_origin
from gcsr.models.registry import testing_model
from gcsr.reporting.pages import comparison_page, require_one_dataset, single_page
from gcsr.reporting.results import Result, Score, text, train_and_test
from gcsr.reporting.searched import search_page
from gcsr.training.fit import TrainingRecipe
from gcsr.tuning.architecture import SearchResult
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import require, require_integer
from gcsr.utils.formatting import UNNAMED
from gcsr.utils.progress import ProgressOption, shows_progress
from gcsr.utils.safe_io import part

NEAREST = 3
MOST_SAMPLED = 20_000
# A file with more is broken or hostile: similarities grow with the square.
MOST_CLASSES = 1000
NO_DATA = "No real graph was given, so there is no accuracy, no comparison and no map."
NOT_ASKED = "No network was trained for this page."


class HtmlReport(str):
    """The text of a page, with the accuracies that are on it."""

    scores: tuple[Score, ...] = ()


def condensed_files(paths: Sequence[Path], suffix: str) -> list[Path]:
    """Files as they are; of folders the condensed graphs in them, by name."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob(f"*{suffix}")) if path.is_dir() else [path]
        require(
            bool(inside),
            f"{path}: holds neither condensed graphs (*{suffix}) nor rows of `gcsr reproduce`.",
        )
        files += inside
    for path in files:
        require(files.count(path) == 1, f"{path} is given twice.")
    return files


def known_dataset(small: CondensedGraph, root: Path | None) -> tuple[str | None, str]:
    """The dataset that a result names if it is here, else the reason why it is not used.

    A file may come from anywhere: its name opens no path and downloads nothing.
    """
    name = text(part(small.provenance, "dataset"), "name", "")
    if not name:
        return None, "The result does not say what it was made from; give the graph with --data."
    here = {info.name: info.available for info in catalogue(root)}
    if name not in here:
        unnamed = name == UNNAMED
        what = "The result was made from a graph without a name" if unnamed else f"{name} is not a"
        what += "" if unnamed else " registered dataset"
        return None, f"{what}; give its file or folder with --data (Graph.to_npz writes one)."
    if not here[name]:
        # A page shows it too, so it names no folder of this machine.
        return (
            None,
            f"The files of {name} are not here; name their folder with --root FOLDER or"
            f" {DATA_VARIABLE}, or give --data {name} to have them downloaded.",
        )
    return name, ""


@shows_progress
def report(
    results: CondensedGraph | Sequence[CondensedGraph] | SearchResult,
    graph: Graph | None = None,
    *,
    names: Sequence[str] | None = None,
    evaluate: bool = True,
    model: str = "gcn",
    runs: int = 5,
    recipe: TrainingRecipe | None = None,
    subsets: int = 3,
    tsne_nodes: int = TSNE_NODES,
    privacy: bool = False,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    absent: str = NO_DATA,
    progress: ProgressOption = None,
) -> HtmlReport:
    """One self-contained HTML page about a condensed graph, or several of one dataset compared.

    Args:
        results: a condensed graph, or several; or what :func:`gcsr.search` returned, for whose page
            nothing is computed.
        graph: the real one; without it the page shows what it can.
        names: what the results are called; by default after how they were made.
        evaluate: whether networks are trained on the result, on random subsets and on the whole graph.
        model: the network, by name.
        runs: networks per graph.
        recipe: how they are trained; by default as in the paper.
        subsets: random subsets of the same size.
        tsne_nodes: at most so many real nodes in the map, up to 20,000; 0 makes no map.
        privacy: whether networks trained on a single result are attacked, as by :func:`gcsr.privacy`.
        seed: of networks, sample and map.
        device: where networks are trained.
        check_origin: ``False`` accepts a graph that the results were not made from.
        absent: why there is no real graph, if there is none.
        progress: as in :func:`gcsr.condense`.

    Returns:
        The page, a ``str``. Its ``scores`` are the accuracies that are on it.

    Equal arguments give equal bytes, but for the seconds that training takes.
    """
    if isinstance(results, SearchResult):
        return HtmlReport(search_page(results).render())
    several = not isinstance(results, CondensedGraph)
    graphs = condensed_graphs(results, "results")
    require_integer("tsne_nodes", tsne_nodes, most=MOST_SAMPLED)
    require_integer("subsets", subsets, 1)
    for small in graphs:
        require_integer("num_classes", small.num_classes, most=MOST_CLASSES)
    pairs = list(zip(_names(graphs, names), graphs, strict=True))
    require_one_dataset(pairs)
    full_epochs = TrainingRecipe().epochs
    scores: list[Score] = []
    if graph is not None:
        graph = require_origin(graphs, graph, check_origin)
        graph.require_single_label("results")  # before networks are trained
        if evaluate:
            testing_model(model)
            scores = train_and_test(
                pairs,
                graph,
                subsets=subsets,
                check_origin=check_origin,
                progress=progress,
                model=model,
                runs=runs,
                recipe=recipe or TrainingRecipe(),
                seed=seed,
                device=pick_device(device),
            )
    own = [one for one in scores if one.kind == SMALL]
    shared = [one for one in scores if one.kind != SMALL]
    found = []
    for place, (name, small) in enumerate(pairs):
        result = Result(
            name,
            small,
            scores=(own[place], *shared) if scores else (),
            absent=absent if graph is None else "",
            untested="" if scores else NOT_ASKED,
        )
        if graph is not None:
            how: dict[str, Any] = {"seed": seed, "check_origin": check_origin, "progress": progress}
            near = min(NEAREST, int(graph.train.numel()))
            shown = 0 if several else tsne_nodes
            analysis = analyze(small, graph, nearest=near, tsne_nodes=shown, **how)
            result = replace(result, analysis=analysis)
            if privacy and not several:
                attacked = attack(small, graph, model=model, recipe=recipe, device=device, **how)
                result = replace(result, privacy=attacked)
        found.append(result)
    if not several:
        page = single_page(found[0], full_epochs)
    else:
        if scores:
            scores.sort(key=lambda one: (one.kind != SMALL, one.kind == SMALL and -one.validation))
            found.sort(key=lambda one: -one.scores[0].validation)
        else:
            found.sort(key=lambda one: (one.small.num_nodes, one.name))
        page = comparison_page(found, scores, full_epochs)
    written = HtmlReport(page.render())
    written.scores = tuple(scores)
    return written


def _names(graphs: Sequence[CondensedGraph], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        require(
            len(names) == len(graphs),
            f"names must have one name per result: {len(names)} names were given for"
            f" {len(graphs)} results.",
        )
        return list(names)
    made = [f"{g.provenance.get('method', 'result')}-{g.num_nodes}" for g in graphs]
    return [n if made.count(n) == 1 else f"{n} ({i})" for i, n in enumerate(made, 1)]
