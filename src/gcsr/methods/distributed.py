"""Condensation on a cluster: a unit per seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from gcsr.data.views import CondensingView
from gcsr.distributed.pool import Cluster, Unit
from gcsr.distributed.worker import Shared, ask
from gcsr.outofcore.hops import Propagated
from gcsr.training.expert_recipe import ExpertRequest
from gcsr.training.obtain_experts import load_shared_experts, train_spread
from gcsr.utils.progress import Progress, Watch, silent

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
    from gcsr.methods.base import Condenser

# Called with the graphs of a unit where they were made; the worker must be able to import it.
Then = Callable[[list["CondensedGraph"], CondensingView, torch.device], list[Any]]


class EndedError(Exception):
    """The watch callback ended a condensation."""


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
    """One condensed graph per seed, or the results of ``then`` where it was condensed.

    ``watch`` is called as it would be in this process, and may raise to end all units. On a CPU every
    seed is a unit. On CUDA graphs are one batched computation, whose rounding depends on their number:
    they stay together, in one unit. For a graph on disk, whose folder all machines read, the cluster
    passes messages first; a method with experts then does the rest in this process. A method that
    divides its own work runs in this process and submits its parts
    (:func:`gcsr.engines.loop.run_tasks`).
    """
    visible = view.visible
    if visible.disk is not None:
        work = condenser._work(condenser.size(visible.num_nodes))
        if work is not None and work.hops:
            Propagated(visible.disk, progress, cluster).features(work.hops)
        if condenser.expert_request is not None:
            seen = view if watch is None else replace(view, watch=watch)
            return _condense(condenser, seen, seeds, device, context, then, progress)
        disk = replace(visible.disk, memory=visible.disk.memory // cluster.cpus)
        view = replace(
            view,
            visible=replace(visible, disk=disk),
            validation=replace(view.validation, disk=disk),
        )
        visible = view.visible
    if condenser.divides_its_work and device.type == "cpu" and then is None:
        alone = replace(view, watch=None)
        return condenser._condense(alone, seeds, device, None, progress, context, cluster)
    if view.watch is not None:
        watch, view = watch or view.watch, replace(view, watch=None)
    shared = cluster.put(view)
    on_cpu = device.type == "cpu"
    request, experts = condenser.expert_request, None
    if request is not None and on_cpu:
        trained = train_spread(cluster, request, shared, visible, progress)
        experts = None if trained is None else (trained, request)
    groups = [[seed] for seed in seeds] if on_cpu else [list(seeds)]
    raised: list[Exception] = []

    def answer(unit: int, question: tuple[int, Mapping[int, float]]) -> bool:
        """Call the watch with the scores of a unit; whether units may continue."""
        if not raised and watch is not None:
            try:
                watch(*question)
            except Exception as reason:
                raised.append(reason)
        return not raised

    units: list[Unit] = [
        cluster.submit(
            _condense_unit,
            condenser,
            shared,
            group,
            device,
            context,
            experts,
            watch is not None,
            then,
            device=device,
            reports=progress is not silent or watch is not None,
        )
        for group in groups
    ]
    try:
        found = cluster.results(units, progress, answer if watch is not None else None)
    except EndedError:
        if not raised:
            raise
        raise raised[0] from None
    return [one for group in found for one in group]


def _condense_unit(
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
    """The unit: runs in a worker, whose watch asks the process that submitted the unit."""
    view: CondensingView = shared.get()
    if experts is not None:
        load_shared_experts(*experts, view.visible)

    def watch(iteration: int, scores: Mapping[int, float]) -> None:
        if not ask(progress, (iteration, dict(scores))):
            raise EndedError

    seen = replace(view, watch=watch) if watched else view
    return _condense(condenser, seen, seeds, device, context, then, progress)


def _condense(
    condenser: Condenser,
    view: CondensingView,
    seeds: Sequence[int],
    device: torch.device,
    context: dict[str, Any] | None,
    then: Then | None,
    progress: Progress,
) -> list[Any]:
    made = condenser.condense_many(
        view, seeds=seeds, device=device, progress=progress, context=context
    )
    return made if then is None else then(made, view, device)
