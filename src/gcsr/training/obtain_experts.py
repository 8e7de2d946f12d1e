"""Experts from the last run of this process, from disk, or from training: the same bytes each way."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gcsr.data.views import VisibleGraph
from gcsr.distributed.pool import Cluster
from gcsr.distributed.worker import Kept, Shared
from gcsr.models.base import Model, Params
from gcsr.outofcore.prior import ClassesInBlocks
from gcsr.training.expert_cache import ExpertCache
from gcsr.training.expert_recipe import ExpertRecipe, expert_key
from gcsr.training.experts import (
    ExpertRequest,
    MeanPrediction,
    default_budget,
    train_experts,
    train_part,
)
from gcsr.training.trajectories import Trajectories
from gcsr.utils.parallel import single_threaded
from gcsr.utils.products import Array, read_only
from gcsr.utils.progress import Progress, silent

# -- Experts trained on a cluster: some of them per unit, gathered once, read by everybody -----------


# Parts, their sum and a copy of it are in the store together for a moment.
STORE_SHARE = 4
# Units per CPU: few enough to be worth their start, many enough to end together.
UNITS_PER_CPU = 4
CPU = torch.device("cpu")
Arrays = tuple[Array, ...]


def train_spread(
    cluster: Cluster, order: ExpertRequest, view: Shared, visible: VisibleGraph, progress: Progress
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
    units = [cluster.submit(_train_labeler, view, order, part) for part in parts]
    progress("training experts", 0, count)
    done = 0
    for unit in cluster.finished(units):
        cluster.check(unit)
        done += len(parts[units.index(unit)])
        progress("training experts", done, count)
    gathered = cluster.submit(_gathered, view, order, [Shared(unit.ref) for unit in units])
    for unit in cluster.finished([gathered]):
        cluster.check(unit)
    return Shared(gathered.ref)


def load_shared_experts(lent: Shared, order: ExpertRequest, visible: VisibleGraph) -> None:
    """Let this process take the experts of the store for its own."""
    kept, prediction = _BORROWED.get(lent.ref.hex(), lent.read)
    trajectories = Trajectories(order.recipe, _tensors(kept))
    said = None if prediction is None else _tensors([prediction])[0]
    experts = Experts(trajectories, said)
    share_experts(order.model, visible, order.recipe, experts, device=CPU, dtype=order.dtype)


_BORROWED = Kept()


def _train_labeler(
    view: Shared, order: ExpertRequest, experts: range, progress: Progress
) -> tuple[Arrays, Arrays]:
    """What is kept of some experts, and their last weights where those are asked for."""
    visible = view.get().visible
    kept, last = train_part(order.model, visible, order.recipe, experts, CPU, order.dtype)
    return _arrays(kept), _arrays(last) if order.predictions else ()


def _gathered(
    view: Shared, order: ExpertRequest, parts: list[Shared], progress: Progress
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


@dataclass(frozen=True, eq=False)
class Experts:
    """Trained experts: their trajectories and, where asked for, their mean prediction.

    Of a graph on disk only the ``classes`` they predict are kept. ``cached`` tells that
    nobody had to train them this time.
    """

    trajectories: Trajectories
    prediction: Tensor | None = None
    cached: bool = False
    classes: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = [said.nbytes for said in (self.prediction, self.classes) if said is not None]
        return self.trajectories.nbytes + sum(held)

    @property
    def predicts(self) -> bool:
        """Whether they were asked about every node."""
        return self.prediction is not None or self.classes is not None

    @property
    def predicted_classes(self) -> Tensor:
        """The class that their mean prediction puts first, for every visible node."""
        return self.mean_prediction.argmax(1) if self.classes is None else self.classes

    @property
    def mean_prediction(self) -> Tensor:
        """Mean class probabilities ``(n, C)``; only where they were asked for."""
        if self.prediction is None:
            raise RuntimeError("predictions were not asked for")
        return self.prediction

    @property
    def measured(self) -> dict[str, int | bool]:
        """What they took this time, for the provenance of results."""
        paths = self.trajectories
        return {
            "kept": paths.keeps_everything,
            "mapped": paths.mapped,
            "bytes": paths.nbytes,
            "cached": self.cached,
            "stride": paths.stride,
        }


def experts_for(
    model: Model,
    visible: VisibleGraph,
    recipe: ExpertRecipe,
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    predictions: bool = False,
    memory_bytes: int | None = None,
    disk_bytes: int = 0,
    progress: Progress = silent,
) -> Experts:
    """Experts as :func:`train_experts` trains them, trained only if they are not at hand.

    ``memory_bytes`` bounds the trajectories as there, ``disk_bytes`` the folder of stored ones and the
    file of those that memory cannot hold (0: there is neither). ``predictions`` asks for the mean
    prediction, for which ``recipe`` must train the whole schedule.
    """
    key = expert_key(model, visible, recipe, device, dtype)
    # "cuda" is whichever device is current; weights are on one in particular.
    place = str(torch.empty(0, device=device).device)
    cache = ExpertCache(disk_bytes)
    recent = _RECENT.take(f"{key} {place}", recipe, predictions, memory_bytes)
    if recent is not None:
        beyond = recent.trajectories.mapped or recent.classes is not None
        if disk_bytes and not beyond and not cache.touch(key):
            cache.save(key, recent.trajectories.kept, recent.prediction)
        return replace(recent, cached=True)
    budget = default_budget(device) if memory_bytes is None else memory_bytes
    like = _shapes(model, visible, recipe, dtype)
    found = None
    asked_by_parts = predictions and visible.disk is not None
    if sum(p.nbytes for p in like) <= budget and not asked_by_parts:
        found = cache.load(key, like, prediction=predictions, device=device)
    if found is not None and _fits(found[1], visible, dtype):
        experts = Experts(Trajectories(recipe, found[0]), found[1], cached=True)
    else:
        mean = None
        if predictions and not asked_by_parts:
            mean = MeanPrediction(model, visible, device, dtype)
        parts = ClassesInBlocks(model, visible, device) if asked_by_parts else None
        trajectories = train_experts(
            model,
            visible,
            recipe,
            device=device,
            dtype=dtype,
            memory_bytes=budget,
            disk_bytes=disk_bytes,
            on_trained=mean or parts,
            progress=progress,
        )
        experts = Experts(
            trajectories,
            None if mean is None else mean.mean,
            classes=None if parts is None else parts.classes(progress),
        )
        if trajectories.keeps_everything and not trajectories.mapped and parts is None:
            cache.save(key, trajectories.kept, experts.prediction)
    paths = experts.trajectories
    if paths.mapped or (paths.keeps_everything and experts.nbytes <= budget):
        _RECENT.keep(f"{key} {place}", experts)
    return experts


def share_experts(
    model: Model,
    visible: VisibleGraph,
    recipe: ExpertRecipe,
    experts: Experts,
    *,
    device: torch.device,
    dtype: torch.dtype,
) -> None:
    """Experts that another process trained: the next call here that asks for them gets these."""
    key = expert_key(model, visible, recipe, device, dtype)
    _RECENT.keep(f"{key} {torch.empty(0, device=device).device}", experts)


def expected_bytes(
    model: Model, visible: VisibleGraph, recipe: ExpertRecipe, dtype: torch.dtype
) -> int:
    """Bytes of everything that is kept of experts."""
    return sum(p.nbytes for p in _shapes(model, visible, recipe, dtype))


def forget_experts() -> None:
    """Free the experts that this process would use again."""
    _RECENT.forget()


class _Recent:
    """The most recent experts of this process, and no others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entry: tuple[str, Experts] | None = None

    def take(
        self, key: str, recipe: ExpertRecipe, predictions: bool, memory_bytes: int | None
    ) -> Experts | None:
        """The experts of a key if they serve; otherwise they make room for those that will."""
        with self._lock:
            if self._entry is not None and self._entry[0] == key:
                experts = self._entry[1]
                enough = experts.trajectories.recipe.kept_epochs >= recipe.kept_epochs
                enough = enough and not (predictions and not experts.predicts)
                fits = memory_bytes is None or experts.nbytes <= memory_bytes
                if enough and (fits or experts.trajectories.mapped):
                    return experts
            self._entry = None
            return None

    def keep(self, key: str, experts: Experts) -> None:
        """Replace what was kept."""
        with self._lock:
            self._entry = key, experts

    def forget(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._entry = None


_RECENT = _Recent()


def _fits(prediction: Tensor | None, visible: VisibleGraph, dtype: torch.dtype) -> bool:
    shape = (visible.num_nodes, visible.num_classes)
    return prediction is None or (prediction.shape == shape and prediction.dtype == dtype)


def _shapes(
    model: Model, visible: VisibleGraph, recipe: ExpertRecipe, dtype: torch.dtype
) -> Params:
    """Tensors without memory, shaped like everything that is kept."""
    one = model.init(int(visible.x.shape[1]), visible.num_classes, torch.Generator())
    lead = (recipe.count, recipe.rows)
    return tuple(torch.empty((*lead, *p.shape[1:]), dtype=dtype, device="meta") for p in one)
