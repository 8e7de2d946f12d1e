"""The public face: one function per verb."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gcsr.condense import PRESETS, Condenser, build, preset_settings, setting_name
from gcsr.condense.sparsify import Sparsifier
from gcsr.condensed import CondensedGraph, StoredDtype
from gcsr.devices import pick_device
from gcsr.errors import require, require_one_of
from gcsr.evaluate.origin import require_graph, require_origin
from gcsr.graph import Graph
from gcsr.progress import Progress, silent
from gcsr.views import View


def condense(
    graph: Graph,
    *,
    nodes: int | None = None,
    ratio: float | None = None,
    method: str = "gcsr",
    preset: str = "default",
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: Progress = silent,
    **settings: Any,
) -> CondensedGraph:
    """Condense a graph to ``nodes`` nodes, or to a ``ratio`` of those that may be seen.

    ``settings`` are those of the method (see :class:`gcsr.GCSR`) and win over the preset:
    ``default`` leaks nothing; ``paper`` holds the authors' settings per dataset and size, and
    ``official`` those of SFGC's own authors.
    """
    return condense_many(
        graph,
        nodes=nodes,
        ratio=ratio,
        method=method,
        preset=preset,
        seeds=[seed],
        device=device,
        progress=progress,
        **settings,
    )[0]


def condense_many(
    graph: Graph,
    *,
    seeds: Sequence[int],
    nodes: int | None = None,
    ratio: float | None = None,
    method: str = "gcsr",
    preset: str = "default",
    device: str | torch.device = "auto",
    progress: Progress = silent,
    **settings: Any,
) -> list[CondensedGraph]:
    """Condense a graph once per seed, all at the same time and from the same experts."""
    condenser, name = make_condenser(
        graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings=settings
    )
    return condenser.condense_many(
        graph, seeds=seeds, device=device, progress=progress, context={"preset": name}
    )


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
    any_graph: bool = False,
    progress: Progress = silent,
) -> CondensedGraph:
    """The same condensed graph in fewer bytes, with the validation accuracy it lost in its provenance.

    ``rule`` says which edges stay: ``threshold=0.05``, ``top-k=8`` (each node's heaviest), ``none``
    (all), or ``auto``: the fewest with which ``runs`` quickly trained networks validate within
    ``tolerance`` percentage points of the graph as it is. ``dtype="float16"`` halves what is stored
    of the rest. Only validation labels are read. See ``provenance["stored"]``.
    """
    require_graph(graph)
    require_origin([small], graph, any_graph)
    made_by = Sparsifier(rule=rule, dtype=dtype, tolerance=tolerance, runs=runs, seed=seed)
    return made_by(small, View(graph).condensing(), pick_device(device), progress)


def make_condenser(
    graph: Graph,
    *,
    nodes: int | None,
    ratio: float | None,
    method: str,
    preset: str,
    settings: dict[str, Any],
) -> tuple[Condenser, str]:
    """The condenser that :func:`condense` would run, and the name of the preset behind it."""
    require_one_of("preset", preset, PRESETS)
    require(
        isinstance(graph, Graph),
        f"graph: a gcsr.Graph is needed, not {type(graph).__name__}; gcsr.load makes one.",
    )
    size = {"nodes": nodes, "ratio": ratio}
    if preset == "default":
        return build(method, {**size, **settings}), preset
    visible = graph.train.numel() if graph.inductive else graph.num_nodes
    wanted = build(method, size).size(visible)
    model = settings.get("model")
    base, name = preset_settings(preset, method, graph.name, wanted, model=model)
    own = {setting_name(key): value for key, value in settings.items()}
    return build(method, {**base, **size, **own}), name
