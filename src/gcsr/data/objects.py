"""Objects of PyG, NetworkX and pandas as arguments of :meth:`gcsr.Graph.from_arrays`.

None of these libraries is imported here. Objects are recognized by the package of their class.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcsr.data.arrays import SPARSE, SPLITS, are_texts, array_of
from gcsr.utils.errors import InputError, plain_number, require

NO_FEATURES = "stands for no features"
# Arrays, or names of attributes, for x, y, train, val and test.
_Given = Mapping[str, Any]
# Arguments of Graph.from_arrays, notes that are shown as warnings, notes that are not, and the names
# that the arguments have in the object (:func:`renaming`).
ObjectParts = tuple[dict[str, Any], list[str], list[str], dict[str, str]]
# The most names or classes that a sentence lists.
MOST_NAMED = 10


_LIBRARIES = {
    "torch_geometric": "PyG",
    "networkx": "NetworkX",
    "pandas": "pandas",
    "numpy": "NumPy",
    "torch": "torch",
}


def described(source: object) -> str:
    """What an object is, as a user would name it: ``a PyG Data``, ``a gcsr.Graph``, ``None``."""
    if source is None:
        return "None"
    name = type(source).__name__
    if any(kind.__module__ == "gcsr.data.graph" for kind in type(source).__mro__):
        return "a gcsr.Graph (the real graph)"
    libraries = libraries_of(source)
    for package, library in _LIBRARIES.items():
        if package in libraries:
            return f"a {library} {name}"
    if isinstance(source, str | os.PathLike):
        return f"the text {str(source)!r}" if isinstance(source, str) else f"the path {source}"
    if isinstance(source, list | tuple) and source:
        return f"a {name} with {described(source[0])}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def libraries_of(source: object) -> set[str]:
    """Top-level packages of the class of an object and of its base classes."""
    return {kind.__module__.partition(".")[0] for kind in type(source).__mro__}


@contextmanager
def renaming(names: Mapping[str, str]) -> Iterator[None]:
    """Call arguments of :meth:`gcsr.Graph.from_arrays` in errors as the object of the user does.

    Advice that names parts of the split is about node ids: masks get their own, or none.
    """
    try:
        yield
    except InputError as error:
        if names:
            error.args = (_renamed(str(error), names),)  # the traceback ends at the check
        raise


def _renamed(sentence: str, names: Mapping[str, str]) -> str:
    what, _, advice = sentence.partition("; ")
    fields, must, rest = what.partition(" must ")
    named = fields.split(" and ")
    if set(named) <= names.keys():
        named = [names[field] for field in named]
        rest = re.sub(r"(?<=of |as )x\b", names["x"], rest)
        what = f"{' and '.join(named)}{must}{rest}"
        if len(named) == 2:  # masks with nodes in common
            first, second = named
            return f"{what}; {second} & ~{first} drops them from {second}."
    if re.search(rf"\b(?:{'|'.join(SPLITS)})\b", advice):
        return f"{what}."
    code = r"(?<![\w.])(?:x|y|edge_weights)\b"
    advice = re.sub(code, lambda found: names[found[0]], advice)
    return f"{what}; {advice}" if advice else what


def _listed(names: Sequence[object]) -> str:
    shown = ", ".join(map(str, names[:MOST_NAMED]))
    return f"{shown}, ..." if len(names) > MOST_NAMED else shown


# -- PyG ---------------------------------------------------------------------------------------------


def read_pyg(data: Any, split: int | None, weight: str | None) -> ObjectParts:
    """See :meth:`gcsr.Graph.from_pyg`."""
    notes: list[str] = []
    quiet: list[str] = []
    split = plain_number(split)
    fine = split is None or (isinstance(split, int) and not isinstance(split, bool))
    require(fine, f"split must be an integer, the column of the masks, got {split!r}.")
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not hasattr(data, "to_dict"):
        data = _first_graph(data, notes)
    if hasattr(data, "node_types"):
        data = _one_node_type(data, weight, notes)
    loader = hasattr(data, "batch_size")
    call = "; give the graph that it loads (its attribute data or dataset)" if loader else ""
    require(
        hasattr(data, "edge_index") and hasattr(data, "get"),
        f"data must be a PyG Data or dataset, got {described(data)}{call}.",
    )
    single = isinstance(data.get("x"), Tensor) and data.get("x").ndim == 0
    require(not single, "data.x must have one row per node, got a single value.")
    edge_index, weights, names = _edges(data, weight, notes)
    require(
        data.get("y") is not None or data.get("edge_label_index") is None,
        "data.y must be the class of every node, got edge_label_index instead; this library is for"
        " node classification, not for link prediction.",
    )
    x = data.get("x")
    x = x.to_torch_sparse_csr_tensor() if hasattr(x, "to_torch_sparse_csr_tensor") else x
    if isinstance(x, SPARSE):
        data = copy.copy(data)
        data.num_nodes = x.shape[0]  # PyG counts rows of tensors and NumPy arrays alone
    for field, found in (("x", x), ("y", data.get("y"))):
        call = _MISSING[field] if found is None else _CONVERTED.format(field)
        if field == "y" and found is not None and are_texts(array_of("y", found)):
            call = _NUMBERED
        require(
            isinstance(found, Tensor) or (field == "x" and isinstance(found, SPARSE)),
            f"data.{field} must be a tensor, got {described(found)}{call}.",
        )
    masks: dict[str, Any] = {
        part: _mask_column(data, f"{part}_mask", split or 0, quiet) for part in SPLITS
    }
    require(
        not split or bool(quiet),
        f"split must be None or 0, as no mask of data has several columns, got {split}.",
    )
    for part, mask in masks.items():
        others = (
            f"{name}_{kind}" for name in _OTHER_NAMES[part] for kind in ("idx", "index", "mask")
        )
        for name in (name for name in others if mask is None and data.get(name) is not None):
            ids = data.get(name)
            tensor = f"data.{name}" if isinstance(ids, Tensor) else f"torch.as_tensor(data.{name})"
            require(
                name.endswith("mask") or not _are_integers(f"data.{name}", ids),
                f"data.{part}_mask must be given, got data.{name}; data.{part}_mask ="
                f" torch_geometric.utils.index_to_mask({tensor}, data.num_nodes) makes a mask of node"
                " ids.",
            )
            notes.append(
                f"data.{name} is ignored: this part of the nodes is read from data.{part}_mask"
            )
    arguments = {"x": x, "edges": edge_index, "y": data.y, "edge_weights": weights, **masks}
    names |= {"x": "data.x", "y": "data.y"} | {part: f"data.{part}_mask" for part in SPLITS}
    quiet = list(dict.fromkeys(quiet))
    if split is None:
        notes, quiet = [*notes, *quiet], []
    return arguments, notes, quiet, names


def _are_integers(name: str, value: Any) -> bool:
    if isinstance(value, Tensor):
        kind = value.dtype
        return not (kind.is_floating_point or kind.is_complex or kind == torch.bool)
    ids = isinstance(value, list | tuple | range | np.ndarray)
    return ids and array_of(name, value).dtype.kind in "iu"


_OTHER_NAMES = {"train": ("train",), "val": ("val", "valid"), "test": ("test",)}
_OF_NODES = ("x", "y", *(f"{part}_mask" for part in SPLITS))
_CONVERTED = "; torch.as_tensor(data.{}) makes one of numbers"
_NUMBERED = (
    "; torch.as_tensor(numpy.unique(data.y, return_inverse=True)[1]) makes one of texts, in their"
    " sorted order"
)
_MISSING = {
    "x": f"; data.x = torch.ones(data.num_nodes, 1) {NO_FEATURES}",
    "y": "; it holds the class of every node, -1 where it is not known",
}


def _first_graph(dataset: Any, notes: list[str]) -> Any:
    require(len(dataset) > 0, "data must be a dataset of at least one graph, got none.")
    data = dataset[0]
    if len(dataset) > 1:
        notes.append(f"the first of the {len(dataset)} graphs of the dataset is used")
    if hasattr(dataset, "get_idx_split") and hasattr(data, "clone"):  # datasets of OGB
        data = data.clone()
        for part, ids in dataset.get_idx_split().items():
            mask = torch.zeros(data.num_nodes, dtype=torch.bool)
            mask[torch.as_tensor(ids)] = True
            data[f"{'val' if part == 'valid' else part}_mask"] = mask
    return data


def _one_node_type(data: Any, weight: str | None, notes: list[str]) -> Any:
    """A ``HeteroData`` with one type of nodes as a ``Data``; its types of edges become one."""
    from torch_geometric.data import Data  # noqa: PLC0415 - it is loaded already, as data is of it

    require(
        len(data.node_types) == 1,
        f"data must have one node type, got a HeteroData with {_listed(data.node_types)}; several"
        " node types are planned and not supported yet, and data.to_homogeneous() makes one type of"
        " them (PyG fills narrower features with zeros); edges between types are directed: pass"
        " undirected=True.",
    )
    require(bool(data.edge_types), "data must have edges, got a HeteroData without edge types.")
    stores = [data[kind] for kind in data.edge_types]
    if len(stores) > 1:
        notes.append(f"the {len(stores)} edge types of the HeteroData are one type of edges here")
    made = Data(**dict(data[data.node_types[0]].items()))
    for key in dict.fromkeys(key for store in stores for key in store):
        values = [store.get(key) for store in stores]
        if all(isinstance(value, Tensor) for value in values):
            made[key] = torch.cat(values, dim=-1 if key == "edge_index" else 0)
        else:
            require(
                key not in ("edge_index", weight or "edge_weight") and len(stores) > 1,
                f"data.{key} must be a tensor for every edge type.",
            )
    return made


def _edges(
    data: Any, weight: str | None, notes: list[str]
) -> tuple[np.ndarray, np.ndarray | None, dict[str, str]]:
    """Edges, their weights and the names of both; notes which attributes of edges are ignored."""
    adjacency = data.get("adj_t")
    if data.get("edge_index") is None and adjacency is not None:
        require(
            weight is None,
            f"weight must be None for a data.adj_t, which has values, got {weight!r}.",
        )
        if isinstance(adjacency, Tensor):
            entries = adjacency.to_sparse_coo().coalesce()
            targets, sources = entries.indices()
            values = entries.values()
        else:  # torch_sparse.SparseTensor
            require(
                hasattr(adjacency, "coo"),
                f"data.adj_t must be a sparse tensor, got {described(adjacency)}.",
            )
            targets, sources, values = adjacency.coo()
        name = "data.adj_t"
        weights = None if values is None or bool((values == 1).all()) else array_of(name, values)
        edges = array_of(name, torch.stack([sources, targets]))
        return edges, weights, {"edges": name, "edge_weights": name}
    index = data.get("edge_index")
    require(
        isinstance(index, Tensor),
        "data.edge_index must be a tensor of shape (2, E), or data.adj_t a sparse one, got"
        f" {described(index)}"
        f"{'' if index is None else _CONVERTED.format('edge_index')}.",
    )
    require(
        not (index.is_floating_point() or index.is_complex()),
        f"data.edge_index must be integers, got {index.dtype}; data.edge_index.long() converts it.",
    )
    shape = tuple(index.shape)
    call = ""
    if len(shape) == 2 and shape[0] == shape[1]:
        call = "; torch_geometric.utils.dense_to_sparse(data.edge_index)[0] converts an adjacency"
    elif len(shape) == 2 and shape[1] == 2:
        call = "; data.edge_index.t() has it"
    require(
        len(shape) == 2 and shape[0] == 2,
        f"data.edge_index must have shape (2, E), got {shape}{call}.",
    )
    name = weight or "edge_weight"
    found = data.get(name)
    require(
        weight is None or isinstance(found, Tensor),
        f"weight must be the name of a tensor of data, got {weight!r}.",
    )
    count = shape[1]
    weights = None
    if found is not None:
        weights = array_of(f"data.{name}", found)
        require(
            weights.size == count,
            f"data.{name} must have one weight per edge ({count}), got shape {weights.shape}.",
        )
        weights = weights.reshape(-1)
    for key, value in data.to_dict().items():
        rows = value.shape[0] if isinstance(value, Tensor) and value.ndim else 0
        of_edges = "edge" in key or (rows == count != data.num_nodes and key not in _OF_NODES)
        if not of_edges or not rows or key in ("edge_index", name):
            continue
        usable = key == "edge_attr" and found is None and value.numel() == count
        call = "; weight='edge_attr' uses it" if usable else ""
        notes.append(f"data.{key} is ignored: only data.{name} is a weight of edges{call}")
    names = {"edges": "data.edge_index", "edge_weights": f"data.{name}"}
    return array_of("data.edge_index", index), weights, names


def _mask_column(data: Any, field: str, split: int, notes: list[str]) -> np.ndarray | None:
    mask = data.get(field)
    if mask is None:
        return None
    require(
        isinstance(mask, Tensor) and mask.ndim > 0,
        f"data.{field} must be a tensor with one truth value per node, got"
        f" {'a single value' if isinstance(mask, Tensor) else described(mask)}.",
    )
    values = array_of(f"data.{field}", mask)
    other = np.unique(values[(values != 0) & (values != 1)])
    got = f"{'values up to ' if other.size > 1 else ''}{other[-1]}" if other.size else ""
    require(
        other.size == 0,
        f"data.{field} must be true or false for every node, got {got};"
        f" torch_geometric.utils.index_to_mask(data.{field}, data.num_nodes) makes a mask of node ids.",
    )
    if values.ndim == 1:
        return values.astype(np.bool_)
    columns = values.shape[1]
    require(
        0 <= split < columns,
        f"split must be 0..{columns - 1}, as data.{field} has {columns} columns, got {split!r}.",
    )
    notes.append(f"split {split} of the {columns} splits of the masks (columns) is used")
    return np.asarray(values[:, split].astype(np.bool_))


# -- NetworkX and pandas -----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nodes:
    """Nodes with ids and named values, as NetworkX and pandas have them.

    ``column`` returns the values of one name, ``None`` where a node has none.
    """

    ids: list[Any]
    names: list[str]
    column: Callable[[str], list[Any]]

    def positions(self, ids: Sequence[Any], field: str) -> np.ndarray:
        """Rows of nodes by their ids."""
        rows = {node: row for row, node in enumerate(self.ids)}
        unknown = [node for node in ids if not isinstance(node, Hashable) or node not in rows]
        require(
            not unknown, f"{field} must be ids of nodes, got {unknown[0] if unknown else ''!r}."
        )
        return np.array([rows[node] for node in ids], dtype=np.int64)

    def _named(self, field: str, name: str) -> list[Any]:
        require(
            name in self.names,
            f"{field} must be an array or an attribute of the nodes"
            f" ({_listed(self.names) or 'they have none'}), got {name!r}.",
        )
        return self.column(name)

    def features(self, x: Any) -> Any:
        """A matrix of numbers: ``x`` itself, or the values of its names side by side."""
        names = [x] if isinstance(x, str) else x
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return x
        call = f"; x=numpy.eye({len(self.ids)}) {NO_FEATURES}"
        require(
            bool(names) and (x != "x" or x in self.names),
            f"x must be an array or attributes of the nodes"
            f" ({_listed(self.names) or 'they have none'}), got none{call}.",
        )
        blocks = []
        for name in names:
            values = self._named("x", name)
            known = all(value is not None for value in values)  # values may be arrays
            require(known, f"x: {name!r} must be there for every node{call}.")
            try:
                block = np.array([array_of(name, value) for value in values], dtype=np.float32)
            except (TypeError, ValueError):
                raise InputError(f"x: {name!r} must be numbers of equal length.") from None
            blocks.append(block[:, None] if block.ndim == 1 else block)
        return np.concatenate(blocks, axis=1)

    def labels(self, y: Any, notes: list[str]) -> Any:
        """Classes of the nodes; texts are numbered in their order, missing values are -1."""
        if isinstance(y, str):
            given = self._named("y", y)
        else:
            array = array_of("y", y)
            require(array.ndim > 0, f"y must have one class per node, got {described(y)}.")
            given = list(array)
        rows = [value for value in given if np.ndim(value)]
        if rows:
            unknown = np.full(np.shape(rows[0]), -1)
            return array_of("y", [unknown if _missing(value) else value for value in given])
        values = [
            None if _missing(value) else value.item() if isinstance(value, Tensor) else value
            for value in given
        ]
        for value in values:
            hashable = isinstance(value, Hashable)
            require(hashable, f"y must be a class of every node, got {described(value)}.")
        known = {value for value in values if value is not None}
        if any(isinstance(value, str | bool | np.bool_) for value in known):
            classes = sorted(known, key=str)
            notes.append(f"classes 0..{len(classes) - 1} are {_listed(classes)}")
            number: dict[Any, Any] = {value: code for code, value in enumerate(classes)}
        else:
            number = {value: value for value in known}
        return np.array([-1 if value is None else number[value] for value in values])

    def part(self, name: str, given: Any) -> Any:
        """A mask or positions: of the values of a name, of a mask or of ids of nodes."""
        if given is None:
            given = next((one for one in (f"{name}_mask", name) if one in self.names), None)
            if given is None:
                return None
        if isinstance(given, str):
            values = [False if _missing(value) else value for value in self._named(name, given)]
            other = [value for value in values if np.ndim(value) or value not in (False, True)]
            require(
                not other,
                f"{name}: {given!r} must be true or false for every node, got"
                f" {other[0] if other else ''!r}.",
            )
            return np.array(values, dtype=np.bool_)
        array = array_of(name, given)
        return array if array.dtype == np.bool_ else self.positions(list(given), name)

    def parts(
        self, edges: np.ndarray, weights: Any, ignored: list[str], given: _Given
    ) -> ObjectParts:
        """What was given for ``x``, ``y`` and the parts of the split, as arrays."""
        notes: list[str] = []
        arguments = {"edges": edges, "edge_weights": weights, "y": self.labels(given["y"], notes)}
        arguments |= {name: self.part(name, given[name]) for name in SPLITS}
        arguments["x"] = self.features(given["x"])
        warned = [f"attributes that are ignored: {_listed(ignored)}"] if ignored else []
        return arguments, warned, notes, {}


def _missing(value: Any) -> bool:
    """Whether a value is ``None``, NaN or pandas' ``NA``."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ == "NAType"


def read_networkx(graph: Any, given: _Given, weight: str | None) -> ObjectParts:
    """See :meth:`gcsr.Graph.from_networkx`."""
    require(
        hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "is_directed"),
        f"graph must be a NetworkX graph, got {type(graph).__name__}.",
    )
    attributes = [values for _, values in graph.nodes(data=True)]
    names = list(dict.fromkeys(name for values in attributes for name in values))
    nodes = _Nodes(
        list(graph.nodes), names, lambda name: [values.get(name) for values in attributes]
    )
    edges = list(graph.edges(data=True))
    own = list(dict.fromkeys(name for *_, values in edges for name in values))
    require(
        weight is None or weight in own or not edges,
        f"weight must be an attribute of edges ({_listed(own) or 'they have none'}), got {weight!r}.",
    )
    name = weight or "weight"
    weights = [values.get(name, 1) for *_, values in edges] if name in own else None
    pairs = [nodes.positions([edge[end] for edge in edges], "edges") for end in (0, 1)]
    ignored = [one for one in own if one != name]
    found = nodes.parts(np.stack(pairs), weights, ignored, given)
    if not graph.is_directed():
        found[0]["undirected"] = True
    return found


def read_pandas(
    edges: Any,
    nodes: Any,
    given: _Given,
    *,
    source: str,
    target: str,
    node: str,
    weight: str | None,
) -> ObjectParts:
    """See :meth:`gcsr.Graph.from_pandas`."""
    for field, frame in (("edges", edges), ("nodes", nodes)):
        require(
            hasattr(frame, "columns") and hasattr(frame, "index"),
            f"{field} must be a pandas DataFrame, got {type(frame).__name__}.",
        )
    own, names = list(edges.columns), list(nodes.columns)
    for field, name in (("source", source), ("target", target), ("weight", weight)):
        require(
            name is None or name in own,
            f"{field} must be a column of edges ({_listed(own)}), got {name!r}.",
        )
    ids = np.asarray(nodes[node] if node in names else nodes.index).tolist()
    require(
        len(set(ids)) == len(ids),
        f"ids of nodes must differ, got {len(ids) - len(set(ids))} repeated.",
    )
    known = _Nodes(ids, names, lambda name: np.asarray(nodes[name]).tolist())
    pairs = [known.positions(np.asarray(edges[end]).tolist(), end) for end in (source, target)]
    name = weight or "weight"
    weights = np.asarray(edges[name]) if name in own else None
    ignored = [one for one in own if one not in (source, target, name)]
    x = given["x"]
    if x is None:
        used = {node, *SPLITS, *(f"{part}_mask" for part in SPLITS)}
        used |= {name for name in given.values() if isinstance(name, str)}
        rest = [one for one in names if one not in used]
        x = [one for one in rest if np.asarray(nodes[one]).dtype.kind in "iufb"]
        ignored += [one for one in rest if one not in x]
    if isinstance(x, list) and x and all(one in names for one in x):
        kinds = [getattr(nodes[one].dtype, "fill_value", None) for one in x]
        # Columns that store only what is not zero.
        x = nodes[x].sparse.to_coo().astype(np.float32) if set(kinds) == {0} else x
    return known.parts(np.stack(pairs), weights, ignored, {**given, "x": x})
