"""A test for methods: other test labels must not change a condensed graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.evaluation.origin import require_graph
from gcsr.methods.base import Condenser
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require

# Parts of the provenance that are measured, or that name the data with all its labels.
NOT_COMPARED = frozenset(["measured", "dataset"])


def check_leaks(
    method: Condenser, graph: Graph, *, seed: int = 0, device: str | torch.device = "cpu"
) -> CondensedGraph:
    """Condense a graph with its own, with permuted and with one-class test labels, and compare.

    All three results must have the same bytes and the same provenance. A method that declares
    ``leaks_test_labels`` must instead give other results on a transductive graph, and mark them.

    Args:
        method: with the settings to test. Use enough iterations that every part of the method runs.
        graph: the real graph. Test a transductive and an inductive one.
        seed: of the condensed graphs.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        The condensed graph.

    Raises:
        AssertionError: if test labels change the result, or a declared leak changes nothing or is
            not marked.
    """
    require(
        isinstance(method, Condenser),
        f"method must be an instance such as gcsr.GCSR(nodes=70), got {type(method).__name__}.",
    )
    require_graph(graph)
    labels = graph.y[graph.test]
    classes = labels.unique().numel()
    require(classes > 1, f"graph must have test nodes of more than one class, got {classes}.")
    order = torch.randperm(len(labels), generator=make_generator(0, "permuted test labels"))
    changed = {"permuted": labels[order], "one-class": labels.min().expand_as(labels)}
    ours = method.condense(graph, seed=seed, device=device)
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
    for name, part in differs.items():
        if part is not None and not declared:
            raise AssertionError(f"{method.name} reads test labels: {part} differs if {name}.")
    if declared and not any(differs.values()):
        raise AssertionError(f"{method.name} declares leaks_test_labels and reads no test labels.")
    return ours


def _difference(first: CondensedGraph, second: CondensedGraph) -> str | None:
    """The name of the first part that differs."""
    for part in ("x", "adjacency", "y"):
        # Bytes: the two zeros are different, and NaN is itself.
        one, other = (getattr(graph, part).contiguous().numpy() for graph in (first, second))
        if one.dtype != other.dtype or one.tobytes() != other.tobytes():
            return part
    stories: list[dict[str, Any]] = [
        {key: value for key, value in graph.provenance.items() if key not in NOT_COMPARED}
        for graph in (first, second)
    ]
    for key in sorted(stories[0].keys() | stories[1].keys()):
        if stories[0].get(key) != stories[1].get(key):
            return f"provenance[{key!r}]"
    return None
