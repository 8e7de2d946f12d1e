"""Condensed graphs made on a cluster: one seed per unit, from the same experts, the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from gcsr.data.views import CondensingView
from gcsr.distributed.pool import Cluster, Unit
from gcsr.distributed.worker import Shared, ask
from gcsr.outofcore.hops import propagated_by
from gcsr.training.experts import ExpertRequest
from gcsr.training.obtain_experts import load_shared_experts, train_spread
from gcsr.utils.progress import Progress, Watch, silent

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
    from gcsr.methods.base import Condenser

# Done with the graphs of a unit where they were made; it must be found under its name there.
Then = Callable[[list["CondensedGraph"], CondensingView, torch.device], list[Any]]


class EndedError(Exception):
    """Whoever watches a condensation has seen enough."""


def condense_spread(
    condenser: Condenser,
    view: CondensingView,
    seeds: Sequence[int],
    *,
    cluster: Cluster,
    device: torch.device,
    progress: Progress = silent,
    context: dict[str, Any] | None = None,
    watch: Watch | None = None,
    then: Then | None = None,
) -> list[Any]:
    """One condensed graph per seed, or what ``then`` makes of it where it was condensed.

    ``watch`` hears of iterates as it would in this process, and may raise to end all units.

    On a CPU every seed is a unit. On CUDA graphs are one batched computation, whose rounding depends
    on how many they are: they stay together, in one unit.
    """
    if view.visible.disk is not None:
        return _from_disk(
            condenser, view, seeds, cluster, device, progress, context or {}, watch, then
        )
    if view.watch is not None:
        watch, view = watch or view.watch, replace(view, watch=None)
    shared = cluster.put(view)
    on_cpu = device.type == "cpu"
    order, lent = condenser.expert_request, None
    if order is not None and on_cpu:
        lent = train_spread(cluster, order, shared, view.visible, progress)
    groups = [[seed] for seed in seeds] if on_cpu else [list(seeds)]
    told = _Told(watch)
    heard = progress is not silent or watch is not None
    units: list[Unit] = [
        cluster.submit(
            _condensed,
            condenser,
            shared,
            group,
            device,
            context,
            None if lent is None or order is None else (lent, order),
            watch is not None,
            then,
            device=device,
            reports=heard,
        )
        for group in groups
    ]
    try:
        found = cluster.results(units, progress, told if watch is not None else None)
    except EndedError:
        if told.reason is None:
            raise
        raise told.reason from None
    return [one for group in found for one in group]


def _from_disk(
    condenser: Condenser,
    view: CondensingView,
    seeds: Sequence[int],
    cluster: Cluster,
    device: torch.device,
    progress: Progress,
    context: dict[str, Any],
    watch: Watch | None,
    then: Then | None,
) -> list[Any]:
    """A graph that stays on disk: the cluster passes messages, the rest is done here."""
    disk = view.visible.disk
    assert disk is not None
    work = condenser._work(condenser.size(view.visible.num_nodes))
    if work is not None and work.hops:
        propagated_by(cluster, disk, progress).features(work.hops)
    seen = view if watch is None else replace(view, watch=watch)
    made = condenser.condense_many(
        seen, seeds=seeds, device=device, progress=progress, context=context
    )
    return made if then is None else then(made, view, device)


class _Told:
    """Hands what units say to whoever watches, and remembers why one was ended."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self.reason: BaseException | None = None

    def __call__(self, unit: int, question: tuple[int, Mapping[int, float]]) -> bool:
        """Whether the unit shall go on."""
        if self.reason is None and self._watch is not None:
            try:
                self._watch(*question)
            except Exception as reason:
                self.reason = reason
        return self.reason is None


class _Asking:
    """A watch in a worker: asks the process that gave the unit."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, iteration: int, scores: Mapping[int, float]) -> None:
        if not ask(self._progress, (iteration, dict(scores))):
            raise EndedError


def _condensed(
    condenser: Condenser,
    shared: Shared,
    seeds: list[int],
    device: torch.device,
    context: dict[str, Any] | None,
    experts: tuple[Shared, ExpertRequest] | None,
    watched: bool,
    then: Then | None,
    progress: Progress,
) -> list[Any]:
    """The unit."""
    view: CondensingView = shared.get()
    if experts is not None:
        load_shared_experts(*experts, view.visible)
    seen = replace(view, watch=_Asking(progress)) if watched else view
    made = condenser.condense_many(
        seen, seeds=seeds, device=device, progress=progress, context=context
    )
    return made if then is None else then(made, view, device)
