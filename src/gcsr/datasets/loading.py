"""From a name or a file to a :class:`gcsr.Graph`."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

import torch

from gcsr.data.arrays import SPLITS, FeatureScaling, class_notes, scaling_name
from gcsr.data.folder import MANIFEST, is_folder
from gcsr.data.graph import Graph
from gcsr.data.interop import graph_of, options_of_objects
from gcsr.data.stored_graph import in_memory_bytes, open_folder
from gcsr.datasets import readers
from gcsr.datasets.download import DownloadError, fetch_missing
from gcsr.datasets.registry import DATA_VARIABLE, DATASETS, Dataset, Layout, data_root
from gcsr.utils.devices import free_memory_bytes
from gcsr.utils.errors import (
    InputError,
    argument_names,
    checks_arguments,
    plain_number,
    require,
    require_known,
    require_truth,
    suggestion,
)
from gcsr.utils.safe_io import expanded, is_file, is_number, naming

logger = logging.getLogger(__name__)
_PICKLE = (
    "a pickle can run code. If you trust it: data = torch.load('{path}', weights_only=False);"
    " gcsr.load(data).to_npz('{npz}')"
)
_EDGES = (
    "gcsr convert makes a folder of a list of edges, and gcsr.Graph.from_pandas a graph of frames"
)
# What to do with files that are no graph files.
OTHER_FILES = {
    **dict.fromkeys((".pt", ".pth", ".pkl", ".pickle"), _PICKLE),
    **dict.fromkeys((".csv", ".parquet", ".npy"), _EDGES),
    ".safetensors": "gcsr.CondensedGraph.load reads condensed graphs",
}
_FILE_SUFFIX = re.compile(r"\.[a-zA-Z]\w*")


@checks_arguments
def load(
    source: object,
    root: str | Path | None = None,
    *,
    features: FeatureScaling | None = None,
    undirected: bool = False,
    inductive: bool | None = None,
    memory: int | None = None,
    download: bool = True,
    **options: Any,
) -> Graph:
    """Load a registered dataset by name, a graph file or folder by its path, or convert an object.

    Args:
        source: a name that ``gcsr datasets`` lists, in any case; the path of an ``.npz`` file, or that
            of a folder that ``gcsr convert`` wrote; or a PyG ``Data``, ``HeteroData`` or dataset, a
            NetworkX graph, ``(edges, nodes)`` as pandas frames, or ``(edge_index, x, y)`` as arrays.
        root: folder of the raw files; by default ``$GCSR_DATA``, else the user's cache folder.
        features: ``keep``, ``rows`` or ``standardize``; by default what is usual for the dataset,
            and ``keep`` for a file.
        undirected: add the missing reverse edges of a directed graph.
        inductive: hide validation and test nodes while condensing; by default as is usual for the
            dataset, and not for a file.
        memory: bytes that work on a graph folder may take. Where they are not enough to work on the
            graph in memory, it stays on disk and is worked on in blocks. By default half of what is
            free.
        download: whether a dataset whose files are not in the folder is downloaded.
        options: for objects, those of :meth:`Graph.from_pyg`, :meth:`Graph.from_networkx`,
            :meth:`Graph.from_pandas` or :meth:`Graph.from_arrays`.
    """
    require_truth("undirected", undirected)
    if inductive is not None:
        require_truth("inductive", inductive)
    if features is not None:
        features = scaling_name(features)
    if not isinstance(source, str | os.PathLike):
        for option, given in (("root", root), ("memory", memory)):
            require(given is None, f"{option} must be None for an object in memory, got {given}.")
        if isinstance(source, Graph):
            for option in options:
                require_known(option, "an option for a gcsr.Graph", ["features"])
            require(
                inductive in (None, source.inductive),
                f"inductive must be {source.inductive} for this gcsr.Graph, got {inductive};"
                f" dataclasses.replace(graph, inductive={inductive}) makes another graph.",
            )
            return source.scaled(features or "keep")
        options |= {"undirected": undirected, "inductive": inductive is not None and inductive}
        return graph_of(source, features=features or "keep", **options)
    for option in options:
        if option in options_of_objects():
            raise InputError(
                f"{option} is an option for objects such as PyG's Data, not for {source!r}."
            )
        require_known(option, "an argument of gcsr.load", argument_names(load))
    memory = plain_number(memory)
    require(
        memory is None or (is_number(memory) and memory >= 1),
        f"memory must be a number of bytes >= 1, got {memory!r}.",
    )
    name = os.fsdecode(source)
    path = expanded(name)
    if name.lower() in DATASETS and not (is_folder(path) or is_file(path)):
        name = name.lower()
    if name not in DATASETS:
        if is_folder(path):
            free = free_memory_bytes(torch.device("cpu"))
            bound = free // 2 if memory is None else int(memory)
            stored = open_folder(path, memory=bound, inductive=inductive)
            notes = class_notes(stored.y, {part: getattr(stored, part) for part in SPLITS})
            stored = stored.with_notes(*notes, warn=True)
            graph = stored.to_memory() if in_memory_bytes(stored) <= bound else stored
            return graph if features in (None, graph.feature_scaling) else graph.scaled(features)
        if path.suffix == ".npz" or is_file(path):
            require(
                path.suffix not in OTHER_FILES,
                f"{path}: must be an .npz file or a graph folder;"
                f" {OTHER_FILES.get(path.suffix, '').format(path=path, npz=path.with_suffix('.npz'))}.",
            )
            return Graph.from_npz(
                path, undirected=undirected, inductive=inductive, features=features or "keep"
            )
        require(
            not path.is_dir(),
            f"{path}: must be a graph folder, which gcsr convert or Graph.to_folder writes, but has no"
            f" {MANIFEST}.",
        )
        require(_FILE_SUFFIX.fullmatch(path.suffix) is None, f"{path}: no such file.")
        raise InputError(
            f"dataset must be one of {', '.join(DATASETS)}, or the path of an .npz file or of a graph"
            f" folder, got {name!r}{suggestion(name.lower(), list(DATASETS))}."
        )
    dataset = DATASETS[name]
    return _read(
        dataset,
        data_root(root),
        download,
        features=features or dataset.scaling,
        undirected=undirected or dataset.undirected,
        inductive=dataset.inductive if inductive is None else inductive,
    )


def _read(dataset: Dataset, root: Path, download: bool, **options: Any) -> Graph:
    found = ((layout, place) for layout in dataset.layouts if (place := layout.find(root)))
    layout, place = next(found, (None, None))
    if layout is None or place is None:
        if (file := dataset.graph_file(root)) is not None:
            graph = Graph.from_npz(file, **options)
            # Versions of WordNet differ by a few words.
            if 100 * abs(graph.num_features - dataset.features_count) <= dataset.features_count:
                return graph
            return graph.with_notes(
                f"{dataset.name} is read from {file.name}, which has {graph.num_features:,} features;"
                f" the dataset has {dataset.features_count:,}"
            )
        layout, place = _downloaded(dataset, root, download)
    raw: readers.RawGraph = getattr(readers, layout.reader)(place, *layout.arguments)
    with naming(place):
        return Graph.from_arrays(**vars(raw), weighted=False, name=dataset.name, **options)


def _downloaded(dataset: Dataset, root: Path, download: bool) -> tuple[Layout, Path]:
    layout = next((one for one in dataset.layouts if one.urls is not None), None)
    if layout is None or layout.urls is None:
        raise InputError(
            f"{dataset.name}: its files ({', '.join(dataset.layouts[0].files)}) are not in {root} and"
            f" cannot be downloaded, so name their folder with root=FOLDER or {DATA_VARIABLE}; source:"
            f" {dataset.source}."
        )
    folder = layout.target(root)
    require(
        download,
        f"{dataset.name}: its files ({', '.join(layout.files)}) are not in {folder}, and downloads are"
        f" turned off; name another data folder with root=FOLDER or {DATA_VARIABLE}.",
    )
    logger.warning("downloading %s into %s", dataset.name, folder)
    try:
        fetch_missing(layout.urls(), folder)
    except DownloadError as error:
        raise InputError(
            f"{dataset.name}: could not be downloaded ({error}), so put {', '.join(layout.files)}"
            f" into {folder} or name another data folder with root=FOLDER or {DATA_VARIABLE}."
        ) from None
    return layout, folder
