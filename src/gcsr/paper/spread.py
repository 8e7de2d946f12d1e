"""Cells measured on a cluster: a group that shares condensed graphs is a unit of work there.

Data, claims, rows and kept graphs stay with this process; machines of the cluster need none of them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence

import torch

from gcsr.cluster import Cluster, ClusterError, Shared, Unit
from gcsr.condensed import CondensedGraph
from gcsr.graph import Graph
from gcsr.paper.cells import Cell, Protocol
from gcsr.paper.store import Store
from gcsr.paper.work import Measuring, Outcome, Plan, Taken, Work, failed
from gcsr.progress import Progress, silent

# Units given away beyond those that can run: a machine that is done has the next at hand.
SPARE_UNITS = 2
Measured = tuple[list[tuple[Cell, Outcome]], list[CondensedGraph]]


def measured_on_cluster(
    groups: Sequence[Sequence[Cell]], plan: Plan, store: Store, cluster: Cluster, patience: float
) -> Generator[tuple[Cell, Outcome], None, None]:
    """Every cell once, in the order in which they are finished; a row is on disk before it is told."""
    work = Work(plan, store, silent)
    waiting, running = deque(groups), dict[Unit, Taken]()
    # Put once per dataset; gone with the last unit that reads it.
    graphs: dict[str, Shared] = {}
    most = cluster.cpus + SPARE_UNITS
    try:
        while waiting or running:
            busy = 0
            while waiting and len(running) < most and busy < len(waiting):
                group = waiting.popleft()
                taken = work.take(group)
                if taken is None:  # another run is at it: something else first
                    waiting.append(group)
                    busy += 1
                    continue
                yield from taken.known
                if taken.graph is None or not taken.missing:
                    taken.claim.close()
                    continue
                name = group[0].dataset
                if name not in graphs:
                    read = {one.missing[0].dataset for one in running.values()}
                    graphs = {one: shared for one, shared in graphs.items() if one in read}
                    graphs[name] = cluster.put(taken.graph)
                running[_given(cluster, taken, work, plan, graphs[name])] = taken
            if not running:
                if waiting:
                    time.sleep(patience)
                continue
            for unit in cluster.some_finished(list(running)):
                yield from _told(cluster, unit, running, work, store)
    finally:
        cluster.call_off(list(running))
        for taken in running.values():
            taken.claim.close()


def _given(cluster: Cluster, taken: Taken, work: Work, plan: Plan, graph: Shared) -> Unit:
    wanted = plan.shelf is not None
    kept = work.kept(taken)
    how = plan.protocol, plan.device, plan.bounds
    arguments = graph, how, taken.missing, kept, wanted and kept is None
    return cluster.give(_measured, *arguments, device=plan.device)


def _told(
    cluster: Cluster, unit: Unit, running: dict[Unit, Taken], work: Work, store: Store
) -> Generator[tuple[Cell, Outcome], None, None]:
    """What became of a unit; rows are appended, and the claim is given back."""
    taken = running[unit]
    small: list[CondensedGraph] = []
    try:
        outcomes, small = cluster.result(unit)
    except ClusterError as error:
        if cluster.lost:
            raise
        outcomes = failed(taken.missing, str(error))
    for cell, outcome in outcomes:
        if outcome.row is not None:
            store.append(outcome.row)
        yield cell, outcome
    # What was measured is safe before a full disk can say no to the graphs.
    work.keep(taken, small)
    running.pop(unit).claim.close()


def _measured(
    shared: Shared,
    how: tuple[Protocol, torch.device, Mapping[str, int]],
    missing: Sequence[Cell],
    kept: list[CondensedGraph] | None,
    wanted: bool,
    progress: Progress,
) -> Measured:
    """The unit: outcomes and, where they are ``wanted``, the condensed graphs behind them."""
    graph: Graph = shared.get()
    made: list[CondensedGraph] = []
    protocol, device, bounds = how
    measuring = Measuring(protocol, device, progress, bounds)
    outcomes = list(measuring.outcomes(missing, graph, kept, made.extend if wanted else _dropped))
    return outcomes, made


def _dropped(small: Sequence[CondensedGraph]) -> None:
    """Nobody keeps them."""
