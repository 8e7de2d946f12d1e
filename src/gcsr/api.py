"""The public functions that condense."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import torch

from gcsr.auto.scaling import scaled_graph
from gcsr.data.condensed import CondensedGraph, StoredDtype
from gcsr.data.graph import Graph
from gcsr.data.interop import (
    graph_of,
    options_of_data,
    reading_options,
    recordable_options,
)
from gcsr.data.views import View
from gcsr.distributed.pool import Cluster
from gcsr.evaluation.origin import require_origin
from gcsr.evaluation.sparsify import Sparsifier, parse_rule
from gcsr.methods.base import Condenser
from gcsr.methods.presets import PRESETS, preset_settings
from gcsr.methods.registry import (
    build,
    known_setting,
    method_names,
    require_method,
    setting_kinds,
    setting_name,
)
from gcsr.methods.registry import method as find_method
from gcsr.utils.checkpoint import Checkpoint
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import InputError, require, require_one_of
from gcsr.utils.progress import ProgressOption, shows_progress


@shows_progress
def condense(
    graph: object,
    *,
    nodes: int | None = None,
    ratio: float | None = None,
    method: str | Condenser | type[Condenser] | None = None,
    preset: str = "default",
    features: str | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
    cluster: str | Cluster | None = None,
    **settings: Any,
) -> CondensedGraph:
    """Condense a graph to ``nodes`` nodes, or to a ``ratio`` of its visible nodes.

    Args:
        graph: the real graph, or an object that :func:`gcsr.load` converts, such as a PyG ``Data``.
            Its test labels are not used, unless a setting asks for a leak by name.
        nodes: number of condensed nodes; every class with training nodes gets at least one.
        ratio: the same as a share of the visible nodes: all nodes, or the training nodes of an
            inductive graph. Exactly one of the two must be given.
        method: a registered name, such as ``gcsr``, ``gcond`` or ``random``, or its class; a class as
            ``module:Class``; or an instance such as ``gcsr.GCond(nodes=70)``, which has the size and
            all settings. By default ``auto``, the automatic mode; with a preset ``gcsr``.
        preset: ``default`` leaks nothing; ``paper`` holds the authors' settings per dataset and size,
            and ``official`` those of SFGC's own authors.
        features: ``keep``, ``rows``, ``standardize`` (:meth:`Graph.scaled`), or ``auto``: the one under
            which networks of the real graph validate best. By default features stay as they are,
            unless their scale is extreme: then as ``auto``, with a warning.
        seed: the same seed on the same machine gives the same bytes.
        device: ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``.
        checkpoint: a folder for the state of the run, removed when it is finished. The same call
            continues an interrupted run, with the same result; see :class:`Checkpoint`.
        progress: True shows a bar, False nothing, a function is called with the stage, the steps done
            and their number. By default a bar on a terminal or in a notebook.
        cluster: ``local`` or the ``HOST:PORT`` of a Ray cluster's head, where experts and graphs are
            then made, with the same bytes as a result; by default all is done in this process.
        settings: those of the method, such as :class:`gcsr.GCSR`; they override the preset. For an
            object that is converted also options of :func:`gcsr.load`, such as ``undirected``.

    Returns:
        The condensed graph; its ``provenance`` records how it was made.

    Raises:
        InputError: an argument cannot be used; the message names it and what is accepted.
    """
    require("seeds" not in settings, "seeds must be given to gcsr.condense_many; here it is seed.")
    return condense_many(
        graph,
        nodes=nodes,
        ratio=ratio,
        method=method,
        preset=preset,
        features=features,
        seeds=[seed],
        device=device,
        checkpoint=checkpoint,
        progress=progress,
        cluster=cluster,
        **settings,
    )[0]


@shows_progress
def condense_many(
    graph: object,
    *,
    seeds: Sequence[int],
    nodes: int | None = None,
    ratio: float | None = None,
    method: str | Condenser | type[Condenser] | None = None,
    preset: str = "default",
    features: str | None = None,
    device: str | torch.device = "auto",
    checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
    cluster: str | Cluster | None = None,
    **settings: Any,
) -> list[CondensedGraph]:
    """Condense a graph once per seed, all at the same time and from the same experts.

    The other arguments are those of :func:`condense`.

    Args:
        seeds: one condensed graph is made for each; up to rounding the same as from its seed alone.

    Returns:
        Condensed graphs in the order of ``seeds``.
    """
    context: dict[str, Any] = {}
    method = chosen_method(method, preset, nodes, ratio)
    reading = [] if isinstance(graph, Graph) else reading_options(graph)
    chosen = type(method) if isinstance(method, Condenser) else find_method(method)
    for given in [name for name in settings if name not in reading]:
        require(
            bool(reading) or given not in options_of_data() or given in setting_kinds(chosen),
            f"{given} cannot be used with a gcsr.Graph; give it to gcsr.load, or to what else made the"
            " graph.",
        )
        known_setting(chosen, given, condense, reading)
    if not isinstance(graph, Graph):
        options = {key: settings.pop(key) for key in reading if key in settings}
        graph = graph_of(graph, **options)
        if recorded := recordable_options(options):
            context["loading"] = recorded
    condenser, name = make_condenser(
        graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings=settings
    )
    here = pick_device(device if cluster is None else "auto")
    graph, choice = scaled_graph(graph, features, device=here, progress=progress)
    if choice is not None:
        context["scaling"] = choice.provenance
    return condenser.condense_many(
        graph,
        seeds=seeds,
        device=device,
        checkpoint=checkpoint,
        progress=progress,
        context={**context, "preset": name},
        cluster=cluster,
    )


def chosen_method(
    method: str | Condenser | type[Condenser] | None, preset: str, nodes: object, ratio: object
) -> str | Condenser:
    """The default method, or the one given: a registered class as its name; others must be called."""
    method = method or default_method(preset)
    if isinstance(method, Condenser):
        require_method(type(method), made=True)
    if not (isinstance(method, type) and issubclass(method, Condenser)):
        require(
            isinstance(method, str | Condenser),
            f"method must be a name or an instance such as gcsr.GCond(nodes=70), got {method!r}.",
        )
        return method
    require_method(method)
    if method.name in method_names() and find_method(method.name) is method:
        return method.name
    size = f"nodes={nodes or 50}" if ratio is None else f"ratio={ratio}"
    raise InputError(
        f"method must be a name or an instance, got the class {method.__name__}; call it:"
        f" method={method.__name__}({size}), with all settings in it, or register it:"
        f" gcsr.methods.register({method.__name__})."
    )


def default_method(preset: str) -> str:
    """The method that is used by default: ``auto``, or GCSR if a preset is given."""
    return "auto" if preset == "default" else "gcsr"


@shows_progress
def sparsify(
    small: CondensedGraph,
    graph: object,
    *,
    rule: str = "auto",
    dtype: StoredDtype | None = None,
    tolerance: float = 0.5,
    runs: int = 5,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: ProgressOption = None,
) -> CondensedGraph:
    """The same condensed graph in fewer bytes; its provenance records the lost validation accuracy.

    ``rule`` says which edges stay: ``threshold=0.05``, ``top-k=8`` (each node's heaviest), ``none``
    (all), or ``auto``: the fewest with which ``runs`` quickly trained networks validate within
    ``tolerance`` percentage points of the graph as it is. ``dtype="float16"`` halves what is stored
    of the rest. Only validation labels are read. See ``provenance["stored"]``.
    """
    graph = require_origin([small], graph, check_origin)
    parse_rule(rule, "rule")
    sparsifier = Sparsifier(rule=rule, dtype=dtype, tolerance=tolerance, runs=runs, seed=seed)
    return sparsifier(small, View(graph).condensing(), pick_device(device), progress)


def make_condenser(
    graph: Graph,
    *,
    nodes: int | None,
    ratio: float | None,
    method: str | Condenser,
    preset: str,
    settings: dict[str, Any],
) -> tuple[Condenser, str]:
    """The condenser that :func:`condense` would run, and the name of the preset behind it."""
    require_one_of("preset", preset, PRESETS)
    size = {"nodes": nodes, "ratio": ratio}
    if isinstance(method, Condenser):
        given = [name for name, value in size.items() if value is not None]
        given += [*settings, *(["preset"] if preset != "default" else [])]
        require(
            not given,
            f"method: {method.name} is an instance with its own settings; leave out"
            f" {', '.join(given)}, or give the name of the method.",
        )
        return method, preset
    if preset == "default":
        return build(method, {**size, **settings}), preset
    chosen = find_method(method)
    if preset in chosen.presets:
        base, name = chosen.presets[preset], preset
    else:
        visible = graph.train.numel() if graph.inductive else graph.num_nodes
        wanted = build(method, size).size(visible)
        model = settings.get("model")
        base, name = preset_settings(preset, method, graph.name, wanted, model=model)
    own = {setting_name(key): value for key, value in settings.items()}
    return build(method, {**base, **size, **own}), name
