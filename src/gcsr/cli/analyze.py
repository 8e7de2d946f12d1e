"""``gcsr analyze``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gcsr.cli import options
from gcsr.cli.data import found_data, load_graph, print_found, require_writable_folder
from gcsr.cli.output import (
    console,
    print_json,
    print_leak,
    printable,
    progress_bars,
    remember_written,
    table,
    uninterrupted,
)
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.analysis.analysis import Analysis
    from gcsr.analysis.nearest import Space
    from gcsr.analysis.statistics import Distribution, Portrait

# Classes shown in the table; --json has all.
MOST_SHOWN = 12


def analyze(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A condensed graph.")],
    data: options.MadeFrom = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write figures (PNG and SVG) into DIR.")
    ] = None,
    space: Annotated[
        str,
        typer.Option(help="Features that nodes are compared in: features, propagated or start."),
    ] = "features",
    hops: Annotated[int, typer.Option(min=0, help="Hops of message passing in that space.")] = 2,
    nearest: Annotated[
        int, typer.Option(min=1, help="Nearest training nodes per condensed node.")
    ] = 1,
    threshold: Annotated[
        float, typer.Option(help="Entries of A' above it count as edges where edges are counted.")
    ] = 0.01,
    tsne_nodes: Annotated[
        int, typer.Option(min=0, help="At most so many real nodes in the t-SNE map; 0: no map.")
    ] = 1000,
    seed: options.Seed = 0,
    root: options.Root = None,
    features: options.Features = None,
    undirected: options.Undirected = False,
    inductive: options.Inductive = None,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Compare a condensed graph with the real one: classes, edges, neighborhoods, features.

    The t-SNE map is made for --figures and --json only.
    """
    if figures is not None:
        require_writable_folder("figures", figures)

    from gcsr.analysis.analysis import analyze as compare  # noqa: PLC0415 - torch takes a second to import
    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415

    small = CondensedGraph.load(file)
    used = found_data([small], root) if data is None else data
    with progress_bars() as progress:
        graph = load_graph(
            used,
            root=root,
            features=features,
            undirected=undirected,
            inductive=inductive,
            made=[small],
            progress=progress,
        )
        analysis = compare(
            small,
            graph,
            threshold=threshold,
            space=cast("Space", space),
            hops=hops,
            nearest=nearest,
            tsne_nodes=tsne_nodes if as_json or figures is not None else 0,
            seed=seed,
            check_origin=not any_graph,
            progress=progress,
        )
    written = [] if figures is None else _draw(analysis, figures)
    if as_json:
        named = {"figures": [str(path) for path in written]} if written else {}
        print_json(analysis.to_dict() | named)
        return
    if data is None:
        print_found(used)
    _tell(analysis)
    if analysis.leaks_test_labels:
        print_leak()
    for path in written:
        print(f"wrote {path}")


def _draw(analysis: Analysis, folder: Path) -> list[Path]:
    from gcsr.analysis.figures import save_figures  # noqa: PLC0415 - imports matplotlib

    with uninterrupted():
        folder.mkdir(exist_ok=True)
        written = save_figures(analysis, folder)
        remember_written(written)
    return written


def _tell(analysis: Analysis) -> None:
    real = f"{analysis.dataset} ({analysis.original_part})"
    made = f"condensed by {analysis.method}" if analysis.method else "condensed"
    shown = table("", printable(real), printable(made), numbers=(printable(real), printable(made)))
    for name, original, condensed in _rows(analysis):
        shown.add_row(name, original, condensed)
    console().print(shown)
    for line in _remarks(analysis):
        print(line)


def _rows(analysis: Analysis) -> Iterator[tuple[str, str, str]]:
    sides = (analysis.original, analysis.condensed)

    def both(name: str, said: list[str]) -> tuple[str, str, str]:
        return name, said[0], said[1]

    yield both("nodes", [f"{side.nodes:,}" for side in sides])
    yield both("without a label", [f"{side.balance.unlabeled:,}" for side in sides])
    yield both("class shares, %", [_classes(side) for side in sides])
    yield both("entries of A", [f"{side.entries:,}" for side in sides])
    yield both("density nnz/N², %", [_percent(side.density) for side in sides])
    yield "sparsity 2m/N², %", _percent(analysis.paper_sparsity), "-"
    above = analysis.condensed.threshold
    yield both(f"density above {above:g}, %", ["-", _percent(analysis.condensed.density_above)])
    yield both("edge homophily", [_number(side.edge_homophily) for side in sides])
    yield both("  by weight", [_number(side.weighted_edge_homophily) for side in sides])
    yield both("node homophily", [_number(side.node_homophily) for side in sides])
    yield both("degree", [_spread(side.degrees) for side in sides])
    yield both("edge weight", [_spread(side.weights) for side in sides])
    yield both("CCNS within classes", [_diagonal(side) for side in sides])
    yield "silhouette of X'", "-", _number(analysis.silhouette)
    yield "  first three classes", "-", _number(analysis.silhouette_three)


def _remarks(analysis: Analysis) -> Iterator[str]:
    apart, near = analysis.ccns_distance, analysis.nearest
    bare = [
        name
        for name, side in (("real", analysis.original), ("condensed", analysis.condensed))
        if not side.entries
    ]
    if bare:
        has = "has" if len(bare) == 1 else "have"
        yield f"CCNS: nothing to compare, the {' and the '.join(bare)} graph {has} no edges"
    else:
        yield (
            f"CCNS: Frobenius distance {_number(apart.frobenius)}, off-diagonal correlation"
            f" {_number(apart.off_diagonal_correlation)} ({counted(apart.classes, 'class')})"
        )
    yield f"classes: total variation from the training nodes {_number(analysis.class_distance)}"
    yield (
        f"nearest training nodes ({analysis.space.name}): {100 * near.agreement:.1f} % have the"
        f" condensed node's class; {near.distinct} different ones for"
        f" {counted(near.nodes.shape[0], 'node')}"
    )


def _classes(side: Portrait) -> str:
    shares = [f"{100 * share:.0f}" for share in side.balance.shares[:MOST_SHOWN]]
    return " ".join(shares) + (" ..." if side.balance.shares.size > MOST_SHOWN else "")


def _diagonal(side: Portrait) -> str:
    if not side.entries:
        return "no edges"
    own = side.ccns.diagonal()
    shown = " ".join(_number(value, 2) for value in own[:MOST_SHOWN].tolist())
    return shown + (" ..." if own.size > MOST_SHOWN else "")


def _spread(values: Distribution) -> str:
    if not values.count:
        return "-"
    low, _, middle, _, high = values.quartiles.tolist()
    return f"{low:.3g} .. {high:.3g}, median {middle:.3g}, mean {values.mean:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None or value != value else f"{value:.{digits}f}"  # noqa: PLR0124 - NaN
