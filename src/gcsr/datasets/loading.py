"""From a name or a file to a :class:`gcsr.Graph`."""

from __future__ import annotations

from pathlib import Path

import torch

from gcsr.data.folder import is_folder
from gcsr.data.graph import FeatureScaling, Graph, scaling_name
from gcsr.data.stored_graph import in_memory_bytes, open_folder
from gcsr.datasets.download import DownloadError, fetch_missing
from gcsr.datasets.layout import DATA_VARIABLE, Layout, RawGraph, data_root
from gcsr.datasets.registry import DATASETS, Dataset
from gcsr.utils.devices import free_memory_bytes
from gcsr.utils.errors import InputError, suggestion
from gcsr.utils.safe_io import expanded, is_file


def load(
    source: str | Path,
    root: str | Path | None = None,
    *,
    features: FeatureScaling | None = None,
    undirected: bool = False,
    inductive: bool | None = None,
    memory: int | None = None,
) -> Graph:
    """Load a registered dataset by name, or a graph file or graph folder by its path.

    Args:
        source: a name that ``gcsr datasets`` lists, the path of an ``.npz`` file, or that of a folder
            that ``gcsr convert`` wrote.
        root: folder of the raw files; by default ``$GCSR_DATA``, else the user's cache folder.
            What is not there is downloaded into it.
        features: ``keep``, ``rows`` or ``standardize``; by default what is usual for the dataset,
            and ``keep`` for a file.
        undirected: add the missing reverse edges of a directed graph.
        inductive: hide validation and test nodes while condensing; by default as is usual for the
            dataset, and not for a file.
        memory: bytes that work on a graph folder may take. Where they are not enough to work on the
            graph in memory, it stays on disk and is worked on in blocks. By default half of what is
            free.
    """
    if features is not None:
        features = scaling_name(features)
    if str(source) not in DATASETS and is_folder(source):
        return _folder(Path(source), features, inductive, memory)
    if _is_file(source):
        return Graph.from_npz(
            expanded(source),
            undirected=undirected,
            inductive=inductive,
            features=features or "keep",
        )
    dataset = _find(str(source))
    return _read(
        dataset,
        data_root(root),
        features=features or dataset.scaling,
        undirected=undirected or dataset.undirected,
        inductive=dataset.inductive if inductive is None else inductive,
    )


def _folder(
    path: Path, features: FeatureScaling | None, inductive: bool | None, memory: int | None
) -> Graph:
    bound = free_memory_bytes(torch.device("cpu")) // 2 if memory is None else memory
    stored = open_folder(path, memory=bound, inductive=inductive)
    graph = stored.to_memory() if in_memory_bytes(stored) <= bound else stored
    if features is None or features == graph.feature_scaling:
        return graph
    return graph.scaled(features)


def _is_file(source: str | Path) -> bool:
    if str(source) in DATASETS:
        return False
    path = expanded(source)
    return path.suffix == ".npz" or is_file(path)


def _find(name: str) -> Dataset:
    if name in DATASETS:
        return DATASETS[name]
    meant = suggestion(name.lower(), list(DATASETS))
    raise InputError(
        f"dataset: {name!r} is not known{meant}; accepted: {', '.join(DATASETS)}, or the path of an"
        " .npz file or of a graph folder."
    )


def _read(
    dataset: Dataset, root: Path, *, features: FeatureScaling, undirected: bool, inductive: bool
) -> Graph:
    if dataset.embedded is not None:
        raw, place = dataset.embedded(), None
    else:
        found = _found(dataset, root)
        if found is None and (file := dataset.graph_file(root)) is not None:
            return Graph.from_npz(
                file, undirected=undirected, inductive=inductive, features=features
            )
        layout, place = found or _downloaded(dataset, root)
        raw = layout.read(place)
    try:
        return _graph(raw, dataset.name, features, undirected, inductive)
    except InputError as error:
        raise InputError(f"{place or dataset.name}: {error}") from None


def _graph(
    raw: RawGraph, name: str, features: FeatureScaling, undirected: bool, inductive: bool
) -> Graph:
    return Graph.from_arrays(
        raw.x,
        raw.edges,
        raw.y,
        weighted=False,
        train=raw.train,
        val=raw.val,
        test=raw.test,
        num_classes=raw.num_classes,
        undirected=undirected,
        inductive=inductive,
        name=name,
        features=features,
    )


def _found(dataset: Dataset, root: Path) -> tuple[Layout, Path] | None:
    for layout in dataset.layouts:
        folder = layout.find(root)
        if folder is not None:
            return layout, folder
    return None


def _downloaded(dataset: Dataset, root: Path) -> tuple[Layout, Path]:
    for layout in dataset.layouts:
        if layout.urls is not None:
            break
    else:
        raise InputError(
            f"{dataset.name}: not in {root}, and there is no address to fetch it from."
        )
    folder = layout.target(root)
    try:
        fetch_missing(layout.urls(), folder)
    except DownloadError as error:
        raise InputError(
            f"{dataset.name}: could not be downloaded ({error}), so put {', '.join(layout.files)}"
            f" into {folder} or name another data folder with root or {DATA_VARIABLE}."
        ) from None
    return layout, folder
