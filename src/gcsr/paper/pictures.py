"""The figures of the paper that show graphs: entries of the list like any table."""

from __future__ import annotations

from gcsr.condense.presets.cells import SIZES
from gcsr.datasets.registry import DATASETS
from gcsr.paper import published
from gcsr.paper.cells import WHOLE_GRAPH, Experiment, Line, looking
from gcsr.paper.looks import (
    ADJACENCY,
    AS_FIRST,
    CORRELATION,
    GRAM,
    PRIOR,
    SILHOUETTE,
    THREE,
    WITHIN,
)


def _line(
    look: str,
    method: str,
    dataset: str,
    nodes: int,
    value: str,
    known: float | None = None,
    digits: int = 2,
) -> Line:
    """A number of the graphs of one method, and its twin without the leak."""
    leaks = method == "gcsr" and not DATASETS[dataset].inductive
    fair = (looking(look, method, dataset, nodes, prior="predicted"),) if leaks else ()
    return Line(
        dataset,
        nodes,
        f"{method}, {value}",
        known,
        cells=(looking(look, method, dataset, nodes),),
        without_leak=fair,
        digits=digits,
        value=value,
    )


def ccns(leak: str) -> Experiment:
    """Figure: cross-class neighbourhood similarity of Citeseer at 3.6 %."""
    nodes = SIZES["citeseer"][2]
    whole = looking("ccns", WHOLE_GRAPH, "citeseer", None)
    known_of = {"s(0, 0)": None} | {
        f"{name}{AS_FIRST}": known for name, known in published.CCNS_ORIGINAL.items()
    }
    lines = [
        Line("citeseer", None, f"original, {name}", known, cells=(whole,), digits=2, value=name)
        for name, known in known_of.items()
    ]
    for method, known in published.CCNS_CORRELATION.items():
        lines.append(_line("ccns", method, "citeseer", nodes, CORRELATION, known))
        lines.append(_line("ccns", method, "citeseer", nodes, WITHIN))
    notes = (
        leak,
        "The paper shows colours and prints no numbers: those under 'published' are of Citeseer itself,"
        " with its 15 nodes without a label as class 0, and of the first graph per method that the"
        " authors released. What is drawn and correlated leaves those nodes out.",
        "The correlation is over pairs of different classes; A' has its weights and not its diagonal.",
    )
    title = "Cross-class neighbourhood similarity"
    return Experiment("ccns", title, tuple(lines), notes, look="ccns")


def adjacency(leak: str) -> Experiment:
    """Figure: X'X'ᵀ, P and A' of Citeseer at 1.8 %."""
    nodes = SIZES["citeseer"][1]
    lines = tuple(
        _line("adjacency", "gcsr", "citeseer", nodes, value, digits=1)
        for value in (GRAM, PRIOR, ADJACENCY)
    )
    notes = (
        leak,
        "Numbers are the percentage of the absolute weight, diagonal aside, between nodes of one"
        " class; P is as the last iteration left it. The paper prints no numbers.",
    )
    title = "What A' is made of: weight within classes (%)"
    return Experiment("adjacency", title, lines, notes, look="adjacency")


def tsne(leak: str) -> Experiment:
    """Figure: t-SNE of Cora at 2.6 %, with silhouettes."""
    nodes = SIZES["cora"][1]
    lines = tuple(
        _line("tsne", method, "cora", nodes, value)
        for method in ("gcond", "sfgc", "sgdd", "gcsr")
        for value in (SILHOUETTE, THREE)
    )
    notes = (
        leak,
        "Silhouettes are of X' by class. The paper writes them into its picture only, and does not say"
        " of which classes: all seven here, and the first three, which are those drawn.",
    )
    title = "t-SNE of real and condensed nodes, and the silhouette of condensed ones"
    return Experiment("tsne", title, lines, notes, look="tsne")
