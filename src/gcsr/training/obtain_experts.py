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
from gcsr.models.base import Params
from gcsr.outofcore.predict import ClassesInBlocks
from gcsr.training.expert_cache import ExpertCache
from gcsr.training.expert_recipe import ExpertRequest, expert_key
from gcsr.training.experts import MeanPrediction, memory_budget, train_experts, train_part
from gcsr.training.trajectories import Trajectories
from gcsr.utils.parallel import single_threaded
from gcsr.utils.products import Array, read_only
from gcsr.utils.progress import Progress, silent

# Parts, their sum and a copy of it are in the store together for a moment.
STORE_SHARE = 4
# Units per CPU: few enough to be worth their start, many enough to end together.
UNITS_PER_CPU = 4
CPU = torch.device("cpu")
Arrays = tuple[Array, ...]


def train_spread(
    cluster: Cluster,
    request: ExpertRequest,
    view: Shared,
    visible: VisibleGraph,
    progress: Progress,
) -> Shared | None:
    """Experts in the object store; ``None`` where each process trains its own.

    That is where they would not fit into the store, may not be held in memory, or are on disk.
    """
    size = sum(p.nbytes for p in _shapes(request, visible))
    bounded = request.memory_bytes is not None and size > request.memory_bytes
    if request.disk_bytes or bounded or STORE_SHARE * size > cluster.store_bytes:
        return None
    count = request.recipe.count
    each = -(-count // (UNITS_PER_CPU * cluster.cpus))
    parts = [range(first, min(first + each, count)) for first in range(0, count, each)]
    units = [cluster.submit(_train_some, view, request, part) for part in parts]
    progress("training experts", 0, count)
    done = 0
    for unit in cluster.finished(units):
        cluster.get(unit.done)
        done += len(parts[units.index(unit)])
        progress("training experts", done, count)
    gathered = cluster.submit(_gathered, view, request, [Shared(unit.ref) for unit in units])
    for unit in cluster.finished([gathered]):
        cluster.get(unit.done)
    return Shared(gathered.ref)


def load_shared_experts(stored: Shared, request: ExpertRequest, visible: VisibleGraph) -> None:
    """Let this process take the experts of the store for its own."""
    kept, prediction = _SHARED.get(stored.ref.hex(), stored.read)
    trajectories = Trajectories(request.recipe, _tensors(kept))
    mean = None if prediction is None else _tensors([prediction])[0]
    _keep(_place(expert_key(request, visible, CPU), CPU), Experts(trajectories, mean))


_SHARED = Kept()


def _train_some(
    view: Shared, request: ExpertRequest, experts: range, progress: Progress
) -> tuple[Arrays, Arrays]:
    """What is kept of some experts, and their last weights where those are asked for."""
    visible = view.get().visible
    kept, last = train_part(request, visible, experts, CPU)
    return _arrays(kept), _arrays(last) if request.predictions else ()


def _gathered(
    view: Shared, request: ExpertRequest, parts: list[Shared], progress: Progress
) -> tuple[Arrays, Array | None]:
    """All experts, and their mean prediction, added up in the order of their numbers."""
    found = [part.read() for part in parts]
    kept = tuple(np.concatenate(arrays) for arrays in zip(*(k for k, _ in found), strict=True))
    if not request.predictions:
        return kept, None
    mean = MeanPrediction(request.model, view.get().visible, CPU, request.dtype)
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

    Of a graph on disk only the ``classes`` that they predict are kept. ``cached``: they were not
    trained this time.
    """

    trajectories: Trajectories
    prediction: Tensor | None = None
    cached: bool = False
    classes: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        predicted = [t.nbytes for t in (self.prediction, self.classes) if t is not None]
        return self.trajectories.nbytes + sum(predicted)

    @property
    def predicts(self) -> bool:
        """Whether predictions for every node were asked for."""
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
        """Memory and cache use of this run, for the provenance of results."""
        paths = self.trajectories
        return {
            "kept": paths.keeps_everything,
            "mapped": paths.mapped,
            "bytes": paths.nbytes,
            "cached": self.cached,
            "stride": paths.stride,
        }


def experts_for(
    request: ExpertRequest,
    visible: VisibleGraph,
    *,
    device: torch.device,
    progress: Progress = silent,
) -> Experts:
    """Experts as :func:`train_experts` trains them, trained only if they are not available yet.

    ``request.disk_bytes`` bounds the folder of stored experts and the file of trajectories that memory
    cannot hold (0: there is neither). For predictions the recipe must train the whole schedule.
    """
    key = expert_key(request, visible, device)
    cache = ExpertCache(request.disk_bytes)
    recent = _take(_place(key, device), request)
    if recent is not None:
        in_memory = not recent.trajectories.mapped and recent.classes is None
        if request.disk_bytes and in_memory and not cache.touch(key):
            cache.save(key, recent.trajectories.kept, recent.prediction)
        return replace(recent, cached=True)
    budget = memory_budget(request, device)
    like = _shapes(request, visible)
    found = None
    predicts_in_blocks = request.predictions and visible.disk is not None
    if sum(p.nbytes for p in like) <= budget and not predicts_in_blocks:
        found = cache.load(key, like, prediction=request.predictions, device=device)
    if found is not None and _fits(found[1], visible, request.dtype):
        experts = Experts(Trajectories(request.recipe, found[0]), found[1], cached=True)
    else:
        mean = blocks = None
        if predicts_in_blocks:
            blocks = ClassesInBlocks(request.model, visible, device)
        elif request.predictions:
            mean = MeanPrediction(request.model, visible, device, request.dtype)
        trajectories = train_experts(
            replace(request, memory_bytes=budget),
            visible,
            device=device,
            on_trained=mean or blocks,
            progress=progress,
        )
        experts = Experts(
            trajectories,
            None if mean is None else mean.mean,
            classes=None if blocks is None else blocks.classes(progress),
        )
        if trajectories.keeps_everything and not trajectories.mapped and blocks is None:
            cache.save(key, trajectories.kept, experts.prediction)
    paths = experts.trajectories
    if paths.mapped or (paths.keeps_everything and experts.nbytes <= budget):
        _keep(_place(key, device), experts)
    return experts


def forget_experts() -> None:
    """Free the experts that this process would use again."""
    with _lock:
        _recent.clear()


def _place(key: str, device: torch.device) -> str:
    # "cuda" is the current device; the weights are on a numbered one.
    return f"{key} {torch.empty(0, device=device).device}"


# The most recent experts of this process, and no others, by their key; threads replace them.
_recent: dict[str, Experts] = {}
_lock = threading.Lock()


def _keep(key: str, experts: Experts) -> None:
    with _lock:
        _recent.clear()
        _recent[key] = experts


def _take(key: str, request: ExpertRequest) -> Experts | None:
    """The recent experts if they suffice; otherwise they are freed."""
    with _lock:
        experts = _recent.get(key)
        if experts is not None:
            paths, limit = experts.trajectories, request.memory_bytes
            enough = paths.recipe.kept_epochs >= request.recipe.kept_epochs
            enough = enough and (experts.predicts or not request.predictions)
            if enough and (limit is None or experts.nbytes <= limit or paths.mapped):
                return experts
        _recent.clear()
        return None


def _fits(prediction: Tensor | None, visible: VisibleGraph, dtype: torch.dtype) -> bool:
    shape = (visible.num_nodes, visible.num_classes)
    return prediction is None or (prediction.shape == shape and prediction.dtype == dtype)


def _shapes(request: ExpertRequest, visible: VisibleGraph) -> Params:
    """Tensors without memory, shaped like everything that is kept."""
    one = request.model.init(int(visible.x.shape[1]), visible.num_classes, torch.Generator())
    lead = (request.recipe.count, request.recipe.rows)
    return tuple(
        torch.empty((*lead, *p.shape[1:]), dtype=request.dtype, device="meta") for p in one
    )
