"""Figures of an :class:`gcsr.Analysis`; each is a matplotlib ``Figure``, made without pyplot."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcsr.analysis.analysis import Analysis
from gcsr.analysis.statistics import Distribution
from gcsr.utils.errors import require_one_of
from gcsr.utils.safe_io import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

FORMATS = ("png", "svg")
DPI = 150
NO_LABEL = "0.6"
# Matrices up to this many classes carry their values as text.
MOST_TEXT = 12


def ccns_figure(analysis: Analysis) -> Figure:
    """Cross-class neighborhood similarity of both graphs, on one scale from 0 to 1."""
    figure, (axes,) = _figure(1, 2, width=8.4, height=3.8)
    sides = (("original", analysis.original.ccns), ("condensed", analysis.condensed.ccns))
    for axis, (name, values) in zip(axes, sides, strict=True):
        image = draw_similarities(axis, values)
        axis.set(title=f"CCNS, {name}", xlabel="class", ylabel="class")
    figure.colorbar(image, ax=axes)
    return figure


def tsne_figure(analysis: Analysis) -> Figure | None:
    """Sampled real nodes (dots) and condensed nodes (stars); gray has no label."""
    places = analysis.map
    if places is None:
        return None
    figure, ((axis,),) = _figure(1, 1, width=6.0, height=5.2)
    count = analysis.original.ccns.shape[0]
    for kind, classes in (("real", places.real_classes), ("condensed", places.condensed_classes)):
        draw_nodes(axis, getattr(places, kind), _colors(classes, count), kind)
    axis.set(title=f"t-SNE, space: {analysis.space.name}", xticks=[], yticks=[])
    axis.legend(frameon=False)
    return figure


def distribution_figure(analysis: Analysis) -> Figure:
    """Degrees and edge weights of both graphs."""
    figure, axes = _figure(2, 2, width=8.4, height=6.0)
    sides = (("original", analysis.original), ("condensed", analysis.condensed))
    for row, (name, side) in zip(axes, sides, strict=True):
        above = f" (above {side.threshold:g})" if side.threshold else ""
        _bars(row[0], side.degrees)
        row[0].set(title=f"degrees, {name}", xlabel=f"neighbors{above}", ylabel="nodes")
        _bars(row[1], side.weights)
        row[1].set(title=f"weights, {name}", xlabel=f"weight{above}", ylabel="entries")
    return figure


FIGURES: dict[str, Callable[[Analysis], Figure | None]] = {
    "ccns": ccns_figure,
    "adjacency": lambda found: _by_class(found, found.matrices.adjacency, "A' by class", "edges"),
    "gram": lambda found: _by_class(found, found.matrices.gram, "X'X'ᵀ by class", "signed"),
    "tsne": tsne_figure,
    "distributions": distribution_figure,
}


def figure_bytes(figure: Figure, kind: str, dpi: int = DPI) -> bytes:
    """A PNG or SVG file; the same figure gives the same bytes, and text in an SVG stays text."""
    require_one_of("format", kind, FORMATS)
    from matplotlib import rc_context  # noqa: PLC0415 - takes a second to import

    buffer = io.BytesIO()
    # A date and random ids would make every SVG another one.
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with rc_context({"svg.hashsalt": "gcsr", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def save_figures(
    analysis: Analysis, folder: str | Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write every figure into an existing folder; returns the files (no map, no t-SNE figure)."""
    for kind in formats:
        require_one_of("format", kind, FORMATS)
    written = []
    for name, draw in FIGURES.items():
        for kind in formats:
            figure = draw(analysis)  # saving a figure changes its layout a little
            if figure is not None:
                path = Path(folder) / f"{name}.{kind}"
                write_atomically(path, figure_bytes(figure, kind))
                written.append(path)
    return written


def _figure(rows: int, columns: int, *, width: float, height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second to import

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def heat_map(axis: Axes, matrix: np.ndarray, starts: Iterable[int], scale: str) -> AxesImage:
    """Draw a matrix with white lines where another class starts.

    The ``scale`` is ``signed``, with white at zero, or begins at zero: ``edges`` ends at the largest
    entry off the diagonal, which may outshine the rest, and ``all`` at the largest entry.
    """
    shown = np.abs(matrix) if scale == "signed" else matrix
    if scale == "edges":
        shown = matrix[~np.eye(len(matrix), dtype=bool)]
    high = float(shown.max(initial=0)) or 1.0
    low, colors = (-high, "RdBu_r") if scale == "signed" else (0.0, "viridis")
    image = axis.imshow(matrix, interpolation="nearest", vmin=low, vmax=high, cmap=colors)
    for start in starts:
        axis.axhline(start - 0.5, color="white", linewidth=0.6)
        axis.axvline(start - 0.5, color="white", linewidth=0.6)
    return image


def _by_class(analysis: Analysis, matrix: np.ndarray, title: str, scale: str) -> Figure:
    figure, ((axis,),) = _figure(1, 1, width=5.4, height=4.6)
    places = analysis.matrices
    image = heat_map(axis, matrix, places.starts[1:], scale)
    ends = np.append(places.starts[1:], matrix.shape[0])
    named = [str(c) if c >= 0 else "none" for c in places.classes[places.starts]]
    middles = (places.starts + ends - 1) / 2
    axis.set_xticks(middles, named)
    axis.set_yticks(middles, named)
    axis.set(title=title, xlabel="class", ylabel="class")
    figure.colorbar(
        image, ax=axis, extend="max" if image.get_clim()[1] < matrix.max() else "neither"
    )
    return figure


_NODES: dict[str, dict[str, Any]] = {
    "real": {"s": 6, "alpha": 0.5, "linewidths": 0},
    "condensed": {"s": 90, "marker": "*", "edgecolors": "black", "linewidths": 0.5},
}


def draw_nodes(axis: Axes, places: np.ndarray, colors: Any, kind: str) -> None:
    """Real nodes as dots, condensed ones as stars."""
    axis.scatter(places[:, 0], places[:, 1], c=colors, label=kind, **_NODES[kind])


def draw_similarities(axis: Axes, values: np.ndarray) -> AxesImage:
    """A matrix of classes between 0 and 1; a small one with its values in the cells."""
    image = axis.imshow(values, vmin=0, vmax=1, cmap="viridis")
    ticks = range(0, values.shape[0], max(1, values.shape[0] // 12))
    axis.set(xticks=ticks, yticks=ticks)
    for (row, column), value in np.ndenumerate(values):
        if values.shape[0] <= MOST_TEXT and not np.isnan(value):
            ink = "black" if value > 0.6 else "white"
            axis.text(
                column, row, f"{value:.2f}", ha="center", va="center", color=ink, fontsize="x-small"
            )
    return image


def _bars(axis: Axes, values: Distribution) -> None:
    if not values.count:
        axis.text(0.5, 0.5, "none", ha="center", va="center", transform=axis.transAxes)
        return
    widths = np.diff(values.edges)
    axis.bar(values.edges[:-1], values.counts, widths, align="edge", edgecolor="white")
    if widths.max() > 1.5 * widths.min():  # bins that double
        axis.set_xscale("symlog", linthresh=1)


def _colors(classes: np.ndarray, count: int) -> list[Any]:
    from matplotlib import colormaps  # noqa: PLC0415 - takes a second to import

    table = colormaps["tab10"] if count <= 10 else colormaps["turbo"].resampled(count)
    return [table(int(c)) if c >= 0 else NO_LABEL for c in classes]
