"""``gcsr.report``: results in, one HTML page out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from gcsr.condensed import CondensedGraph
from gcsr.devices import pick_device
from gcsr.errors import require
from gcsr.evaluate.origin import require_graph, require_origin
from gcsr.graph import Graph
from gcsr.models import testing_model
from gcsr.progress import Progress, silent
from gcsr.report.comparison import comparison_page, require_one_dataset
from gcsr.report.evidence import SMALL, Scored, Trial, look, tested
from gcsr.report.page import Page
from gcsr.report.single import single_page
from gcsr.training import TrainingRecipe, paper_recipe

RUNS = 5
SUBSETS = 3
SAMPLED = 2000
MOST_SAMPLED = 20_000
# Beyond that a file is broken or hostile: similarities grow with the square.
MOST_CLASSES = 1000
NO_DATA = "No real graph was given, so there is no accuracy, no comparison and no map."
NOT_ASKED = "No network was trained for this page."


def report(
    results: CondensedGraph | Sequence[CondensedGraph],
    graph: Graph | None = None,
    *,
    names: Sequence[str] | None = None,
    evaluate: bool = True,
    model: str = "gcn",
    runs: int = RUNS,
    recipe: TrainingRecipe | None = None,
    subsets: int = SUBSETS,
    tsne_nodes: int = SAMPLED,
    seed: int = 0,
    device: str | torch.device = "auto",
    any_graph: bool = False,
    absent: str = NO_DATA,
    progress: Progress = silent,
) -> str:
    """One self-contained HTML page about a condensed graph, or several of one dataset compared.

    Args:
        results: a condensed graph, or several.
        graph: the real one; without it the page shows what it can.
        names: what the results are called; by default after how they were made.
        evaluate: whether networks are trained on the result, on random subsets and on the whole graph.
        model: the network, by name.
        runs: networks per graph.
        recipe: how they are trained; by default as in the paper.
        subsets: random subsets of the same size.
        tsne_nodes: at most so many real nodes in the map, up to 20,000; 0 makes no map.
        seed: of networks, sample and map.
        device: where networks are trained.
        any_graph: accept a graph that the results were not made from.
        absent: why there is no real graph, if there is none.
        progress: told what is being done.

    Equal arguments give equal bytes, but for the seconds that training takes.
    """
    several = not isinstance(results, CondensedGraph)
    graphs = [results] if isinstance(results, CondensedGraph) else list(results)
    require(bool(graphs), "results: at least one condensed graph is needed.")
    whole = isinstance(tsne_nodes, int) and not isinstance(tsne_nodes, bool)
    require(
        whole and 0 <= tsne_nodes <= MOST_SAMPLED,
        f"tsne_nodes: {tsne_nodes!r} is not accepted; a whole number from 0 to {MOST_SAMPLED} is.",
    )
    for small in graphs:
        require(
            small.num_classes <= MOST_CLASSES,
            f"num_classes: {small.num_classes} is not accepted; a page shows up to {MOST_CLASSES}.",
        )
    pairs = list(zip(_names(graphs, names), graphs, strict=True))
    require_one_dataset(pairs)
    scores: list[Scored] = []
    full = paper_recipe("" if graph is None else graph.name)
    if graph is not None:
        require_graph(graph)
        require_origin(graphs, graph, any_graph)
        if evaluate:
            testing_model(model)
            used = recipe or full
            trial = Trial(model, runs, used, subsets, seed, pick_device(device))
            scores = tested(pairs, graph, trial, any_graph=any_graph, progress=progress)
    found = [
        look(
            name,
            small,
            graph,
            _of_one(scores, place),
            tsne_nodes=0 if several else tsne_nodes,
            seed=seed,
            any_graph=any_graph,
            absent=absent,
            untested="" if scores else NOT_ASKED,
            progress=progress,
        )
        for place, (name, small) in enumerate(pairs)
    ]
    if several:
        return comparison_page(found, scores, full.epochs).render()
    return single_page(found[0], full_epochs=full.epochs).render()


def folder_report(folder: str | Path) -> str:
    """The page of a folder that ``gcsr reproduce`` wrote; nothing is computed."""
    # The tables of the paper take a moment to import.
    from gcsr.report.reproduced import reproduced_page  # noqa: PLC0415

    page: Page = reproduced_page(Path(folder))
    return page.render()


def _names(graphs: Sequence[CondensedGraph], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        require(
            len(names) == len(graphs),
            f"names: {len(names)} names were given for {len(graphs)} results.",
        )
        return list(names)
    made = [f"{g.provenance.get('method', 'result')}-{g.num_nodes}" for g in graphs]
    return [n if made.count(n) == 1 else f"{n} ({i})" for i, n in enumerate(made, 1)]


def _of_one(scores: Sequence[Scored], place: int) -> list[Scored]:
    """Scores of one result and of what all are compared with."""
    own = [one for one in scores if one.kind == SMALL]
    return [replace(own[place]), *(s for s in scores if s.kind != SMALL)] if own else []
