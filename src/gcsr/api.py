"""The public face: one function per verb."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from gcsr.data.condensed import CondensedGraph, StoredDtype
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.distributed.pool import Cluster
from gcsr.evaluation.origin import require_graph, require_origin
from gcsr.evaluation.sparsify import Sparsifier
from gcsr.methods.base import Condenser
from gcsr.methods.presets import PRESETS, preset_settings
from gcsr.methods.registry import build, setting_kinds, setting_name
from gcsr.methods.registry import method as find_method
from gcsr.utils.checkpoint import Checkpoint
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import require, require_one_of
from gcsr.utils.progress import Progress, silent
from gcsr.utils.renamed import accepts_old_keywords, new_name


def condense(
    graph: Graph,
    *,
    nodes: int | None = None,
    ratio: float | None = None,
    method: str | Condenser | None = None,
    preset: str = "default",
    seed: int = 0,
    device: str | torch.device = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    progress: Progress = silent,
    cluster: str | Cluster | None = None,
    **settings: Any,
) -> CondensedGraph:
    """Condense a graph to ``nodes`` nodes, or to a ``ratio`` of those that may be seen.

    Args:
        graph: the real graph. Its test labels are not used, unless a setting asks for a leak by name.
        nodes: number of condensed nodes; every class with training nodes gets at least one.
        ratio: the same as a share of all nodes, or of the training nodes of an inductive graph.
            Exactly one of the two must be given.
        method: a registered name, such as ``gcsr``, ``gcond`` or ``random``, or an instance such as
            ``gcsr.GCond(nodes=70)``, which has the size and all settings.
        preset: ``default`` leaks nothing; ``paper`` holds the authors' settings per dataset and size,
            and ``official`` those of SFGC's own authors.
        seed: the same seed on the same machine gives the same bytes.
        device: ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``.
        checkpoint: a folder where the run writes down how far it is, removed when it is finished. The
            same call continues a run that was ended, with the same result; see :class:`Checkpoint`.
        progress: called with what is being done, how much of it is done and how much there is.
        cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head, where experts and graphs are
            then made, with the same bytes as a result; by default this process does it all.
        settings: those of the method (see :class:`gcsr.GCSR` and its kin); they win over the preset.

    Returns:
        The condensed graph, with everything about how it was made in its ``provenance``.

    Raises:
        InputError: what was given cannot be used; one sentence says what and what is accepted.
    """
    return condense_many(
        graph,
        nodes=nodes,
        ratio=ratio,
        method=method,
        preset=preset,
        seeds=[seed],
        device=device,
        checkpoint=checkpoint,
        progress=progress,
        cluster=cluster,
        **settings,
    )[0]


def condense_many(
    graph: Graph,
    *,
    seeds: Sequence[int],
    nodes: int | None = None,
    ratio: float | None = None,
    method: str | Condenser | None = None,
    preset: str = "default",
    device: str | torch.device = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    progress: Progress = silent,
    cluster: str | Cluster | None = None,
    context: dict[str, Any] | None = None,
    **settings: Any,
) -> list[CondensedGraph]:
    """Condense a graph once per seed, all at the same time and from the same experts.

    Args:
        graph: the real graph.
        seeds: one condensed graph is made for each; each is what its seed alone would give, but for
            rounding.
        nodes: number of condensed nodes.
        ratio: the same as a share of the nodes that may be seen.
        method: a registered name, or an instance.
        preset: ``default``, ``paper`` or ``official``; see :func:`condense`.
        device: ``auto``, ``cpu`` or ``cuda``.
        checkpoint: a folder where the run writes down how far it is; see :func:`condense`.
        progress: called with what is being done, how much of it is done and how much there is.
        cluster: as in :func:`condense`.
        context: added to the provenance, for example how the features came to be scaled as they are.
        settings: those of the method; they win over the preset.

    Returns:
        Condensed graphs in the order of ``seeds``.
    """
    condenser, name = make_condenser(
        graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings=settings
    )
    return condenser.condense_many(
        graph,
        seeds=seeds,
        device=device,
        checkpoint=checkpoint,
        progress=progress,
        context={**(context or {}), "preset": name},
        cluster=cluster,
    )


def default_method(preset: str) -> str:
    """Who condenses where nobody was named: the automatic mode; authors' settings are GCSR's."""
    return "auto" if preset == "default" else "gcsr"


@accepts_old_keywords
def sparsify(
    small: CondensedGraph,
    graph: Graph,
    *,
    rule: str = "auto",
    dtype: StoredDtype | None = None,
    tolerance: float = 0.5,
    runs: int = 5,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: Progress = silent,
) -> CondensedGraph:
    """The same condensed graph in fewer bytes, with the validation accuracy it lost in its provenance.

    ``rule`` says which edges stay: ``threshold=0.05``, ``top-k=8`` (each node's heaviest), ``none``
    (all), or ``auto``: the fewest with which ``runs`` quickly trained networks validate within
    ``tolerance`` percentage points of the graph as it is. ``dtype="float16"`` halves what is stored
    of the rest. Only validation labels are read. See ``provenance["stored"]``.
    """
    require_graph(graph)
    require_origin([small], graph, check_origin)
    made_by = Sparsifier(rule=rule, dtype=dtype, tolerance=tolerance, runs=runs, seed=seed)
    return made_by(small, View(graph).condensing(), pick_device(device), progress)


def make_condenser(
    graph: Graph,
    *,
    nodes: int | None,
    ratio: float | None,
    method: str | Condenser | None,
    preset: str,
    settings: dict[str, Any],
) -> tuple[Condenser, str]:
    """The condenser that :func:`condense` would run, and the name of the preset behind it."""
    require_one_of("preset", preset, PRESETS)
    require(
        isinstance(graph, Graph),
        f"graph: a gcsr.Graph is needed, not {type(graph).__name__}; gcsr.load makes one.",
    )
    if isinstance(method, Condenser):
        given = [name for name, value in (("nodes", nodes), ("ratio", ratio)) if value is not None]
        given += [*settings, *(["preset"] if preset != "default" else [])]
        require(
            not given,
            f"method: {method.name} is an instance with settings of its own; leave"
            f" {', '.join(given)} out, or name the method.",
        )
        return method, preset
    size = {"nodes": nodes, "ratio": ratio}
    method = method or default_method(preset)
    if preset == "default":
        return build(method, {**size, **settings}), preset
    visible = graph.train.numel() if graph.inductive else graph.num_nodes
    wanted = build(method, size).size(visible)
    model = settings.get("model")
    chosen = find_method(method)
    if preset in chosen.presets:
        base, name = chosen.presets[preset], preset
    else:
        base, name = preset_settings(preset, method, graph.name, wanted, model=model)
    kinds = setting_kinds(chosen)
    own = {new_name(setting_name(key), method, kinds): value for key, value in settings.items()}
    return build(method, {**base, **size, **own}), name
