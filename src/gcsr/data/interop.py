"""The graph that an object stands for: PyG, NetworkX, pandas, plain arrays."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from gcsr.data.arrays import SPLITS
from gcsr.data.edges import UNDIRECTED_HINT
from gcsr.data.graph import Graph
from gcsr.data.objects import described, libraries_of
from gcsr.utils.errors import InputError, plain_number, require, require_known


def reading_options(source: object) -> list[str]:
    """Names of the options with which :func:`graph_of` converts an object, but for ``features``."""
    return [name for name in _options(_reader(source)[0]) if name != "features"]


@cache
def _options(reader: Callable[..., Graph]) -> list[str]:
    parameters = inspect.signature(reader).parameters.values()
    return [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]


def options_of_data() -> list[str]:
    """The options of :meth:`Graph.from_pyg`, but for ``features``."""
    return [name for name in _options(Graph.from_pyg) if name != "features"]


def options_of_objects() -> frozenset[str]:
    """The options of every reader of objects."""
    readers = (Graph.from_pyg, Graph.from_networkx, Graph.from_pandas, Graph.from_arrays)
    return frozenset(name for reader in readers for name in _options(reader))


def recordable_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that provenance records, so that the same object becomes the same graph again."""
    kinds = {"split": int, "undirected": bool, "weight": str}
    options = {name: plain_number(value) for name, value in options.items()}
    return {name: value for name, value in options.items() if type(value) is kinds.get(name)}


def graph_of(source: object, **options: Any) -> Graph:
    """The graph that an object stands for; a :class:`Graph` is returned as it is.

    Args:
        source: a :class:`Graph`; a PyG ``Data``, ``HeteroData`` or dataset; a NetworkX graph;
            ``(edges, nodes)`` as pandas frames; or ``(edge_index, x, y)`` as arrays.
        options: of :meth:`Graph.from_pyg`, :meth:`~Graph.from_networkx`, :meth:`~Graph.from_pandas`
            or :meth:`~Graph.from_arrays`.
    """
    if isinstance(source, Graph):
        return source
    reader, parts = _reader(source)
    for option in options:
        require_known(option, f"an option of Graph.{reader.__name__}", _options(reader))
    return reader(*parts, **options)


def argument_graph(source: object, **options: Any) -> Graph:
    """:func:`graph_of` for functions without options of reading, which :func:`gcsr.load` has.

    ``options`` are those that were recorded when the graph was condensed.
    """
    masks = [getattr(source, f"{part}_mask", None) for part in SPLITS]
    if all(getattr(mask, "ndim", 1) == 1 for mask in masks):
        # The column that was chosen then is the only one now.
        options.pop("split", None)
    try:
        return graph_of(source, **options)
    except InputError as error:
        call = "give gcsr.load(graph, undirected=True)"
        raise InputError(str(error).replace(UNDIRECTED_HINT, call)) from None


def _reader(source: object) -> tuple[Callable[..., Graph], Sequence[Any]]:
    """The function that makes a graph of an object, and its parts in order; others are refused."""
    libraries = libraries_of(source)
    if "torch_geometric" in libraries:
        return Graph.from_pyg, (source,)
    if "networkx" in libraries:
        return Graph.from_networkx, (source,)
    parts: Sequence[Any] = source if isinstance(source, tuple | list) else ()
    if len(parts) == 2 and all("pandas" in libraries_of(part) for part in parts):
        return Graph.from_pandas, parts
    if len(parts) == 3 and not any("torch_geometric" in libraries_of(part) for part in parts):
        edges, x, y = parts
        shape = _shape("edge_index", edges)
        require(
            2 in shape or 2 not in _shape("x", x) or shape == shape[::-1],
            f"the order must be (edge_index, x, y), got an array of shape {tuple(shape)} first.",
        )
        return Graph.from_arrays, (x, edges, y)
    call = "gcsr.load reads names and files"
    if isinstance(source, str | os.PathLike):
        call = f"gcsr.load({str(source)!r}) reads a name or a file"
    if isinstance(source, tuple | list) and any(
        "torch_geometric" in libraries_of(p) for p in source
    ):
        call = "gcsr.load takes one of several: pass data[0]"
    if "pandas" in libraries:
        call = "gcsr.Graph.from_pandas(edges, nodes) takes features and labels from a second frame"
    raise InputError(
        f"graph must be a gcsr.Graph, got {described(source)}; a PyG Data or dataset, a NetworkX"
        f" graph, (edge_index, x, y) and (edges, nodes) of pandas are accepted too, and {call}."
    )


def _shape(field: str, value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        raise InputError(f"{field} must have rows of equal length.") from None
