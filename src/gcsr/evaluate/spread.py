"""Networks trained and tested on a cluster, some of them per unit: the same scores."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gcsr.cluster import Cluster, Shared
from gcsr.evaluate.task import Task
from gcsr.graph import Graph
from gcsr.graph.stored import StoredGraph
from gcsr.progress import Progress, silent

# Units per CPU: each prepares the real graph once, and the last ones should end together.
UNITS_PER_CPU = 2


def scores_spread(
    task: Task, graph: Graph, cluster: Cluster, device: torch.device, progress: Progress
) -> tuple[Tensor, Tensor]:
    """Test and validation accuracy of every network of a task.

    On a CPU networks are trained one by one, wherever that is. On CUDA they are one batched
    computation, whose rounding depends on how many they are: they stay together, in one unit.
    """
    networks = task.networks
    each = len(networks)
    if device.type == "cpu":
        each = -(-len(networks) // (UNITS_PER_CPU * cluster.cpus))
    shared, real = cluster.put(task), cluster.put(_shared_out(graph, cluster.cpus))
    units = [
        cluster.give(
            _scored,
            shared,
            real,
            device,
            networks[first : first + each],
            device=device,
            heard=progress is not silent,
        )
        for first in range(0, len(networks), each)
    ]
    test, validation = zip(*cluster.results(units, progress), strict=True)
    return torch.cat(test), torch.cat(validation)


def _shared_out(graph: Graph, units: int) -> Graph:
    """A graph that stays on disk takes the memory it may take over all units together."""
    if not isinstance(graph, StoredGraph):
        return graph
    return replace(graph, disk=replace(graph.disk, memory=graph.disk.memory // max(1, units)))


def _scored(
    shared: Shared, real: Shared, device: torch.device, networks: range, progress: Progress
) -> tuple[Tensor, Tensor]:
    """The unit."""
    task: Task = shared.read()
    test, validation = task.scores(real.get(), device, networks, progress)
    return test.cpu(), validation.cpu()
