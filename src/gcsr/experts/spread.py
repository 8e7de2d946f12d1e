"""Experts trained on a cluster: some of them per unit, gathered once, read by everybody.

What a graph needs of its experts is large (hundreds of megabytes on Cora) and the same for every
seed. In the object store there is one copy per machine, which worker processes read in place; experts
that each process trains for itself would be trained, and held, once per process.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from gcsr.cluster import Cluster, Kept, Shared
from gcsr.experts.obtain import Experts, expected_bytes, lend_experts
from gcsr.experts.order import ExpertOrder
from gcsr.experts.predict import MeanPrediction
from gcsr.experts.train import train_part
from gcsr.experts.trajectories import Trajectories
from gcsr.models import Params
from gcsr.parallel import single_threaded
from gcsr.products import Array, read_only
from gcsr.progress import Progress
from gcsr.views import VisibleGraph

# Parts, their sum and a copy of it are in the store together for a moment.
STORE_SHARE = 4
# Units per CPU: few enough to be worth their start, many enough to end together.
UNITS_PER_CPU = 4
CPU = torch.device("cpu")
Arrays = tuple[Array, ...]


def train_spread(
    cluster: Cluster, order: ExpertOrder, view: Shared, visible: VisibleGraph, progress: Progress
) -> Shared | None:
    """Experts in the object store; ``None`` where each process had better train its own.

    That is where they would not fit into the store, may not be held in memory, or are on disk.
    """
    size = expected_bytes(order.model, visible, order.recipe, order.dtype)
    bounded = order.memory_bytes is not None and size > order.memory_bytes
    if order.disk_bytes or bounded or STORE_SHARE * size > cluster.store_bytes:
        return None
    count = order.recipe.count
    each = -(-count // (UNITS_PER_CPU * cluster.cpus))
    parts = [range(first, min(first + each, count)) for first in range(0, count, each)]
    units = [cluster.give(_taught, view, order, part) for part in parts]
    progress("training experts", 0, count)
    done = 0
    for unit in cluster.finished(units):
        cluster.check(unit)
        done += len(parts[units.index(unit)])
        progress("training experts", done, count)
    gathered = cluster.give(_gathered, view, order, [Shared(unit.ref) for unit in units])
    for unit in cluster.finished([gathered]):
        cluster.check(unit)
    return Shared(gathered.ref)


def borrow(lent: Shared, order: ExpertOrder, visible: VisibleGraph) -> None:
    """Let this process take the experts of the store for its own."""
    kept, prediction = _BORROWED.get(lent.ref.hex(), lent.read)
    trajectories = Trajectories(order.recipe, _tensors(kept))
    said = None if prediction is None else _tensors([prediction])[0]
    experts = Experts(trajectories, said)
    lend_experts(order.model, visible, order.recipe, experts, device=CPU, dtype=order.dtype)


_BORROWED = Kept()


def _taught(
    view: Shared, order: ExpertOrder, experts: range, progress: Progress
) -> tuple[Arrays, Arrays]:
    """What is kept of some experts, and their last weights where those are asked for."""
    visible = view.get().visible
    kept, last = train_part(order.model, visible, order.recipe, experts, CPU, order.dtype)
    return _arrays(kept), _arrays(last) if order.predictions else ()


def _gathered(
    view: Shared, order: ExpertOrder, parts: list[Shared], progress: Progress
) -> tuple[Arrays, Array | None]:
    """All experts, and their mean prediction, added up in the order of their numbers."""
    found = [part.read() for part in parts]
    kept = tuple(np.concatenate(arrays) for arrays in zip(*(k for k, _ in found), strict=True))
    if not order.predictions:
        return kept, None
    mean = MeanPrediction(order.model, view.get().visible, CPU, order.dtype)
    first = 0
    with single_threaded():
        for _, last in found:
            group = range(first, first + len(last[0]))
            mean(group, _tensors(last))
            first = group.stop
    return kept, mean.mean.numpy()


def _arrays(params: Params) -> Arrays:
    return tuple(p.detach().numpy() for p in params)


def _tensors(arrays: Iterable[Array]) -> Params:
    return tuple(read_only(array) for array in arrays)
