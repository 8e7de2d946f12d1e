"""The one runner: cells that are not on disk yet are measured, in this process or in several."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from gcsr.cluster import Cluster, ClusterError, connected
from gcsr.devices import pick_device
from gcsr.errors import require
from gcsr.paper.cells import Cell, Experiment, Protocol
from gcsr.paper.data import Data
from gcsr.paper.graphs import Shelf
from gcsr.paper.jobs import measured_in_processes
from gcsr.paper.spread import measured_on_cluster
from gcsr.paper.store import Store
from gcsr.paper.work import Outcome, Plan, Work, recalled
from gcsr.progress import Progress, silent

# Seconds between looks at cells that another process measures.
PATIENCE = 1.0


def reproduce(
    experiment: Experiment,
    store: Store,
    *,
    protocol: Protocol,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    root: Path | None = None,
    download: bool | None = None,
    device: str = "auto",
    jobs: int = 1,
    keep_graphs: Path | None = None,
    bounds: Mapping[str, int] | None = None,
    progress: Progress = silent,
    cluster: str | Cluster | None = None,
) -> dict[Cell, Outcome]:
    """Measure the cells of an experiment (of some datasets or methods) that ``store`` does not hold.

    Every finished cell is in the store before the next begins. A dataset that cannot be had, or a
    cell that cannot be computed, is told in the outcome; the rest runs. ``download``: whether missing
    datasets are fetched, by default unless the protocol is quick. ``jobs`` processes measure at the
    same time; what other processes with the same store are at is left to them, and waited for at the
    end. ``keep_graphs`` is a folder for condensed graphs, which cells of other tables then find there.
    ``bounds`` are the bytes that experts may take (``expert_memory``, ``expert_disk``) in each process.
    ``cluster`` (``local`` or the ``HOST:PORT`` of a Ray cluster's head) measures cells instead.
    """
    for name in datasets:
        experiment.require_part("dataset", name, experiment.datasets)
    whole = isinstance(jobs, int) and not isinstance(jobs, bool) and jobs >= 1
    require(whole, f"jobs: {jobs!r} is not accepted; a whole number >= 1 is.")
    require(
        jobs == 1 or cluster is None,
        f"jobs: {jobs} is not accepted with a cluster, which takes as many as it has CPUs.",
    )
    data = Data(root, not protocol.quick if download is None else download)
    shelf = None if keep_graphs is None else Shelf(keep_graphs)
    known = {cell.method for cell in experiment.cells}
    for name in methods:
        experiment.require_part("method", name, sorted(known))
    wanted = [
        cell
        for cell in experiment.cells
        if (not datasets or cell.dataset in datasets) and (not methods or cell.method in methods)
    ]
    groups = _groups(wanted)
    stage, total = f"cells of {experiment.name}", len(wanted)
    found: dict[Cell, Outcome] = {}
    progress(stage, 0, total)
    with ExitStack() as connection:
        units = None if cluster is None else connection.enter_context(connected(cluster))
        target = pick_device(device) if units is None else units.device(device)
        plan = Plan(store.path, protocol, data, target, shelf, bounds or {})
        if units is not None:
            measured = measured_on_cluster(groups, plan, store, units, PATIENCE)
        elif jobs > 1 and len(groups) > 1:
            several = min(jobs, len(groups))
            measured = measured_in_processes(groups, plan, several, PATIENCE, progress)
        else:
            measured = _in_turn(groups, Work(plan, store, progress))
        try:
            with closing(measured):  # at once: workers must not outlive an interruption
                for cell, outcome in measured:
                    found[cell] = outcome
                    progress(stage, len(found), total)
        except ClusterError as error:
            sentence = str(error).rstrip(".")
            raise ClusterError(
                f"{sentence}; {len(found)} of {total} cells are finished and kept."
            ) from None
        finally:
            store.refresh()
    return recall(experiment, store, protocol) | found


def recall(experiment: Experiment, store: Store, protocol: Protocol) -> dict[Cell, Outcome]:
    """What is known of every cell without computing anything."""
    return {cell: recalled(cell, store, protocol) for cell in experiment.cells}


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share condensed graphs together, datasets one after the other."""
    by_dataset: dict[str, dict[Cell, list[Cell]]] = {}
    for cell in cells:
        same = by_dataset.setdefault(cell.dataset, {})
        same.setdefault(cell.condensation, []).append(cell)
    return [group for same in by_dataset.values() for group in same.values()]


def _in_turn(
    groups: Iterable[list[Cell]], work: Work
) -> Generator[tuple[Cell, Outcome], None, None]:
    """One group after the other; those that another process is at go to the end."""
    waiting = deque(groups)
    taken = 0  # by others, since the last one that was not
    while waiting:
        group = waiting.popleft()
        outcomes = work.outcomes(group)
        if outcomes is not None:
            taken = 0
            yield from outcomes
            continue
        waiting.append(group)
        taken += 1
        if taken >= len(waiting):
            taken = 0
            time.sleep(PATIENCE)
