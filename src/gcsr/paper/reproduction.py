"""An experiment: published numbers (lines), the cells they are compared with, and their measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcsr.benchmarking.cells import Cell, Protocol
from gcsr.benchmarking.runner import measure
from gcsr.benchmarking.store import Store
from gcsr.benchmarking.work import Data, Outcome, recalled
from gcsr.utils.errors import require_one_of


@dataclass(frozen=True)
class Line:
    """One number of the paper and what it is compared with: the mean over ``cells``.

    ``without_leak`` are the same cells with the prior ``predicted``, where the paper's own counts
    test labels. A line without cells gives the reason in ``missing``. ``x`` and ``series`` place it
    in a figure. ``value`` names one of the numbers of an analysis.
    """

    dataset: str
    nodes: int | None
    label: str
    published: float | None = None
    published_std: float | None = None
    cells: tuple[Cell, ...] = ()
    without_leak: tuple[Cell, ...] = ()
    missing: str = ""
    digits: int = 1
    x: float | None = None
    series: str = ""
    value: str = ""


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of a curve; ``even`` spaces its values evenly, as a table does."""

    label: str
    even: bool = True


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of the paper.

    Experiments with an ``axis`` are drawn as curves, those with an ``analysis`` as pictures of
    graphs, others as points.
    """

    name: str
    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    axis: Axis | None = None
    drawn: bool = True
    analysis: str = ""

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets in the order of the table."""
        return tuple(dict.fromkeys(line.dataset for line in self.lines))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every measurement once."""
        found = (cell for line in self.lines for cell in (*line.cells, *line.without_leak))
        return tuple(dict.fromkeys(found))


def reproduce(
    experiment: Experiment,
    store: Store,
    *,
    protocol: Protocol,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    root: Path | None = None,
    download: bool | None = None,
    **options: Any,
) -> dict[Cell, Outcome]:
    """Measure the cells of an experiment that ``store`` does not hold.

    Args:
        experiment: a table or figure.
        store: the rows of finished cells.
        protocol: how often cells are repeated.
        datasets: only these.
        methods: only these.
        root: data folder.
        download: whether missing datasets are fetched; by default unless the protocol is quick.
        options: others of :func:`~gcsr.benchmarking.runner.measure`.
    """
    for name in datasets:
        require_one_of("dataset", name, experiment.datasets)
    for name in methods:
        require_one_of("method", name, sorted({cell.method for cell in experiment.cells}))
    wanted = [
        cell
        for name in experiment.datasets
        for cell in experiment.cells
        if cell.dataset == name
        and (not datasets or cell.dataset in datasets)
        and (not methods or cell.method in methods)
    ]
    found = measure(
        wanted,
        store,
        stage=f"cells of {experiment.name}",
        protocol=protocol,
        data=Data(root, not protocol.quick if download is None else download),
        **options,
    )
    return recall(experiment, store, protocol) | found


def recall(experiment: Experiment, store: Store, protocol: Protocol) -> dict[Cell, Outcome]:
    """What is known of every cell without computing anything."""
    return {cell: recalled(cell, store, protocol) for cell in experiment.cells}
