"""``gcsr analyze``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import gcsr
from gcsr.cli import options
from gcsr.cli.data import on_file, print_found, require_writable_folder
from gcsr.cli.output import print_json, print_leak, print_table, remember_written, uninterrupted
from gcsr.utils.formatting import counted, printable

if TYPE_CHECKING:
    from gcsr.analysis.statistics import Distribution, GraphStatistics

# Classes shown in the table; --json has all.
MOST_SHOWN = 12


def analyze(
    file: options.File,
    data: options.MadeFrom = None,
    figures: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    space: str = "features",
    hops: Annotated[int, typer.Option(min=0)] = 2,
    nearest: options.Count = 1,
    threshold: float = 0.01,
    tsne_nodes: Annotated[int, typer.Option(min=0)] = 1000,
    seed: options.Seed = 0,
    loading: options.Loading = options.LOADING,
    any_graph: options.AnyGraph = False,
    as_json: options.Json = False,
) -> None:
    """Compare a condensed graph with the real one: classes, edges, neighborhoods, features.

    The t-SNE map is made for --figures and --json only.

    Args:
        figures: Write figures (PNG and SVG) into DIR.
        space: Features that nodes are compared in: features, propagated or start.
        threshold: Entries of A' above it count as edges where edges are counted.
    """
    if figures is not None:
        require_writable_folder("figures", figures if figures.exists() else figures.parent)
    analysis: gcsr.Analysis = on_file(
        gcsr.analyze,
        file,
        data,
        loading,
        threshold=threshold,
        space=space,
        hops=hops,
        nearest=nearest,
        tsne_nodes=tsne_nodes if as_json or figures is not None else 0,
        seed=seed,
        check_origin=not any_graph,
    )
    written: list[Path] = []
    if figures is not None:
        from gcsr.analysis.figures import save_figures

        with uninterrupted():
            figures.mkdir(exist_ok=True)
            written = save_figures(analysis, figures)
            remember_written(written)
    if as_json:
        named = {"figures": [str(path) for path in written]} if written else {}
        print_json(analysis.to_dict() | named)
        return
    print_found(data, analysis.dataset)
    real = printable(f"{analysis.dataset} ({analysis.original_part})")
    made = printable(f"condensed by {analysis.method}" if analysis.method else "condensed")
    print_table(("", real, made), _rows(analysis), (real, made))
    for line in _remarks(analysis):
        print(line)
    if analysis.leaks_test_labels:
        print_leak()
    for path in written:
        print(f"wrote {path}")


def _rows(analysis: gcsr.Analysis) -> Iterator[tuple[str, ...]]:
    condensed = analysis.condensed
    both = (analysis.original, condensed)
    yield "nodes", *(f"{side.nodes:,}" for side in both)
    yield "without a label", *(f"{side.balance.unlabeled:,}" for side in both)
    yield "class shares, %", *map(_classes, both)
    yield "entries of A", *(f"{side.entries:,}" for side in both)
    yield "density nnz/N², %", *(_percent(side.density) for side in both)
    yield "sparsity 2m/N², %", _percent(analysis.paper_sparsity), "-"
    yield f"density above {condensed.threshold:g}, %", "-", _percent(condensed.density_above)
    yield "edge homophily", *(_number(side.edge_homophily) for side in both)
    yield "  by weight", *(_number(side.weighted_edge_homophily) for side in both)
    yield "node homophily", *(_number(side.node_homophily) for side in both)
    yield "degree", *(_spread(side.degrees) for side in both)
    yield "edge weight", *(_spread(side.weights) for side in both)
    yield "CCNS within classes", *map(_diagonal, both)
    yield "silhouette of X'", "-", _number(analysis.silhouette)
    yield "  first three classes", "-", _number(analysis.silhouette_three)


def _remarks(analysis: gcsr.Analysis) -> Iterator[str]:
    apart, near = analysis.ccns_distance, analysis.nearest
    sides = {"real": analysis.original, "condensed": analysis.condensed}
    bare = [name for name, side in sides.items() if not side.entries]
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


def _classes(side: GraphStatistics) -> str:
    shares = [f"{100 * share:.0f}" for share in side.balance.shares[:MOST_SHOWN]]
    return " ".join(shares) + (" ..." if side.balance.shares.size > MOST_SHOWN else "")


def _diagonal(side: GraphStatistics) -> str:
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
