"""What a condensed graph was made from, and that no test label went into it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence, ValuesView
from dataclasses import replace
from typing import Any

import torch

from gcsr.data.arrays import FEATURE_SCALINGS
from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.interop import argument_graph, recordable_options
from gcsr.data.objects import described
from gcsr.methods.base import Condenser
from gcsr.methods.registry import require_method
from gcsr.starts.pseudo_labels import LABELERS
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, InputWarning, require
from gcsr.utils.safe_io import part

# The default labeler.
LABELER = "consistent"
# Shown wherever a graph that was condensed with pseudo-labels is compared with the whole graph.
PSEUDO_LABELS_NOTE = (
    "This graph was condensed with pseudo-labels of unlabeled nodes, so it can beat a GNN trained on"
    " the training labels alone; the fair references are the pseudo-labels themselves and the same"
    " GNN trained with them on the whole graph."
)


def used_pseudo_labels(small: CondensedGraph) -> bool:
    """Whether a graph was condensed with pseudo-labels of unlabeled nodes."""
    return bool(small.provenance.get("pseudo_labels"))


def labeler_of(small: CondensedGraph) -> str:
    """The labeler of a condensed graph; the default if the file does not name it."""
    name = part(small.provenance, "pseudo_labels").get("labeler")
    return name if name in LABELERS else LABELER


def identity(small: CondensedGraph, *, seed: bool = True) -> dict[str, str]:
    """What makes a graph, by name; a file by another program may lack any of it."""
    made = small.provenance
    source, stored = part(made, "dataset"), part(made, "stored")
    values = {
        **part(made, "settings"),
        "method": made.get("method"),
        "nodes": made.get("nodes", small.num_nodes),
        "seed": made.get("seed") if seed else None,
        "data": [source.get("content_hash"), source.get("inductive")],
        "sparsify": stored.get("asked", "none"),
        "stored dtype": stored.get("dtype"),
    }
    if not seed:
        # An update of another seed continues from another graph.
        values.pop("previous", None)
    # As JSON, where tuples are lists as in files.
    return {name: json.dumps(value, sort_keys=True, default=str) for name, value in values.items()}


def same_settings(graphs: Sequence[CondensedGraph]) -> list[list[int]]:
    """Places of the graphs that were made alike, up to the seed: one list for each way."""
    groups: dict[str, list[int]] = {}
    for place, small in enumerate(graphs):
        groups.setdefault(json.dumps(identity(small, seed=False), sort_keys=True), []).append(place)
    return list(groups.values())


def require_graph(graph: object) -> None:
    """Refuse other objects than graphs."""
    require(
        isinstance(graph, Graph),
        f"graph must be a gcsr.Graph, got {described(graph)}; gcsr.load makes one.",
    )


def require_condensed(small: object, field: str = "small") -> None:
    """Refuse other objects than condensed graphs."""
    require(
        isinstance(small, CondensedGraph),
        f"{field} must be a gcsr.CondensedGraph, got {described(small)}; gcsr.condense makes one of a"
        " real graph, and gcsr.CondensedGraph.load reads a file.",
    )


def condensed_graphs(small: object, field: str = "small") -> list[CondensedGraph]:
    """One condensed graph, or several, as a list; other objects are refused."""
    several = isinstance(small, Sequence | Iterator | ValuesView) and not isinstance(small, str)
    graphs: list[Any] = list(small) if several else [small]  # type: ignore[call-overload]
    require(bool(graphs), f"{field} must have at least one condensed graph, got none.")
    for one in graphs:
        require_condensed(one, field)
    return graphs


def require_origin(graphs: Sequence[CondensedGraph], graph: object, check_origin: bool) -> Graph:
    """Refuse condensed graphs that do not fit ``graph``, or that were made from another one.

    Returns the graph: other objects are converted as :func:`gcsr.load` does, and features that are not
    scaled are scaled as they were when the first condensed graph was made.
    """
    for small in graphs:
        require_condensed(small)
    made_from = part(graphs[0].provenance, "dataset")
    if not isinstance(graph, Graph):
        # As the object became the graph that was condensed.
        options = recordable_options(part(graphs[0].provenance, "loading"))
        hidden = made_from.get("inductive") is True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # they were issued then
            graph = argument_graph(
                graph, **options, inductive=hidden, name=str(made_from.get("name"))
            )
    scaling = made_from.get("features")
    if graph.feature_scaling == "keep" and scaling in FEATURE_SCALINGS and check_origin:
        graph = graph.scaled(scaling)
    for small in graphs:
        require(
            small.x.shape[1] == graph.num_features and small.num_classes == graph.num_classes,
            f"data: the condensed graph has {small.x.shape[1]} features and {small.num_classes}"
            f" classes, {graph.name} has {graph.num_features} and {graph.num_classes}.",
        )
        require(
            small.multi_label == graph.multi_label,
            f"data: the condensed graph and {graph.name} must both be multi-label or neither, got one.",
        )
        made_from = small.provenance.get("dataset", {})
        known = made_from.get("content_hash", graph.content_hash)
        if known != graph.content_hash and check_origin:
            raise InputError(
                f"data: the condensed graph was made from {made_from.get('name')} with content hash"
                f" {str(known)[:12]}, but {graph.name} has {graph.content_hash[:12]}; give the same"
                " data and feature scaling, or check_origin=False."
            )
        hidden_then = made_from.get("inductive", graph.inductive)
        require(
            hidden_then == graph.inductive or not check_origin,
            f"data: the condensed graph was made with inductive={hidden_then}, but {graph.name} is"
            f" loaded with inductive={graph.inductive}; load it the same way, or give"
            " check_origin=False.",
        )
    return graph


# Parts of the provenance that are measured, or that name the data with all its labels.
NOT_COMPARED = frozenset(["measured", "dataset"])


def check_leaks(
    method: Condenser, graph: Graph, *, seed: int = 0, device: str | torch.device = "cpu"
) -> CondensedGraph:
    """Condense a graph twice, and with permuted and with one-class test labels, and compare.

    All results must have the same bytes and the same provenance. A method that declares
    ``leaks_test_labels`` must instead give other results on a transductive graph, and mark them.

    Args:
        method: with the settings to test. Use enough iterations that every part of the method runs.
        graph: the real graph. Test a transductive and an inductive one.
        seed: of the condensed graphs.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        The condensed graph.

    Raises:
        AssertionError: if the same seed gives another result, test labels change the result, or a
            declared leak changes nothing or is not marked.
    """
    require(
        isinstance(method, Condenser),
        f"method must be an instance such as gcsr.GCSR(nodes=70), got {type(method).__name__}.",
    )
    require_method(type(method), made=True)
    require_graph(graph)
    labels = graph.y[graph.test]
    classes = labels.unique().numel()
    require(classes > 1, f"graph must have test nodes of more than one class, got {classes}.")
    order = torch.randperm(len(labels), generator=make_generator(0, "permuted test labels"))
    changed = {"permuted": labels[order], "one-class": labels.min().expand_as(labels)}
    ours, again = (method.condense(graph, seed=seed, device=device) for _ in range(2))
    if field := _difference(ours, again):
        raise AssertionError(
            f"{method.name} gives another {field} for the same seed; draw random numbers from"
            " make_generator(seed, ...) only."
        )
    differs = {}
    for name, values in changed.items():
        other = replace(graph, y=graph.y.index_copy(0, graph.test, values))
        differs[name] = _difference(ours, method.condense(other, seed=seed, device=device))
    declared = method.leaks_test_labels and not graph.inductive
    if ours.leaks_test_labels != declared:
        raise AssertionError(
            f"leaks_test_labels must be {declared} in the provenance of {method.name}, got"
            f" {ours.leaks_test_labels}."
        )
    for name, field in differs.items():
        if field is not None and not declared:
            raise AssertionError(f"{method.name} reads test labels: {field} differs if {name}.")
    if declared and not any(differs.values()):
        raise AssertionError(f"{method.name} declares leaks_test_labels and reads no test labels.")
    return ours


def _difference(first: CondensedGraph, second: CondensedGraph) -> str | None:
    """The name of the first part that differs."""
    for field in ("x", "adjacency", "y"):
        # Bytes: the two zeros are different, and NaN is itself.
        one, other = (getattr(graph, field).contiguous().numpy() for graph in (first, second))
        if one.dtype != other.dtype or one.tobytes() != other.tobytes():
            return field
    recorded: list[dict[str, Any]] = [
        {key: value for key, value in graph.provenance.items() if key not in NOT_COMPARED}
        for graph in (first, second)
    ]
    for key in sorted(recorded[0].keys() | recorded[1].keys()):
        if recorded[0].get(key) != recorded[1].get(key):
            return f"provenance[{key!r}]"
    return None
