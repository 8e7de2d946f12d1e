"""Folders: graphs that stay on disk, lists that become one, and the state of a run that was ended."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from fuzz.containers import Array, Bundle, Lines, Safetensors
from fuzz.target import Target
from fuzz.targets.small import small_graph, written
from gcsr.data.folder import FILES, MANIFEST, verify, write_folder
from gcsr.data.stored_graph import open_folder
from gcsr.data.stored_matrix import SPARSE_FILES
from gcsr.datasets.convert import convert_tables, from_lists
from gcsr.outofcore.hops import Propagated
from gcsr.utils.checkpoint import Checkpoint, State, opened, packed

_CPU = torch.device("cpu")


def _folder(*absent: str) -> Bundle:
    arrays = tuple(f"{name}.npy" for name in FILES if name not in ("weights", *absent))
    return Bundle((MANIFEST, *arrays), tuple((name, Array()) for name in arrays))


_FOLDER, _SPARSE = _folder(*SPARSE_FILES), _folder("features")
_LISTS = Bundle(
    ("edges.csv", "features.npy", "labels.csv", "train.csv", "val.csv", "test.csv"),
    (("edges.csv", Lines()), ("features.npy", Array()), ("labels.csv", Lines())),
)
_STATE = Bundle(("run.json", "one.part"), (("one.part", Safetensors()),))
_RUN = {"method": "gcsr", "seed": 0}


def _folder_seeds(bundle: Bundle) -> list[bytes]:
    graph = small_graph(fill=0.0 if bundle is _SPARSE else 0.5)
    if bundle is _SPARSE:
        graph = replace(graph, x=graph.x.to_sparse_csr())
    with tempfile.TemporaryDirectory() as place:
        folder = write_folder(graph, Path(place) / "graph")
        return [bundle.joined([(folder / name).read_bytes() for name in bundle.names])]


def _read_folder(bundle: Bundle, data: bytes, folder: Path) -> object:
    """Opened as a user would, read whole, a hop computed, and held against its hashes."""
    for name, part in zip(bundle.names, bundle.parts(data), strict=True):
        written(folder / "graph", name, part)
    graph = open_folder(folder / "graph", memory=1 << 20)
    rows = graph.adjacency.rows(0, graph.num_nodes)
    hop = Propagated(graph.disk).features(1).read() if bundle is _SPARSE else None
    return rows, hop, graph.to_memory(), verify(folder / "graph")


def _list_seeds() -> list[bytes]:
    graph = small_graph()
    coo = graph.adjacency.tocoo()
    edges = "".join(f"{a},{b}\n" for a, b in zip(coo.row, coo.col, strict=True))
    with tempfile.TemporaryDirectory() as place:
        whole = write_folder(graph, Path(place) / "graph")
        features = (whole / "features.npy").read_bytes()
    columns = [
        "".join(f"{value}\n" for value in values.tolist()).encode()
        for values in (graph.y, graph.train, graph.val, graph.test)
    ]
    return [
        _LISTS.joined([head + edges.encode(), features, *columns])
        for head in (b"", b"source,target\n")
    ]


def _read_lists(data: bytes, folder: Path) -> object:
    paths = [
        written(folder, name, part)
        for name, part in zip(_LISTS.names, _LISTS.parts(data), strict=True)
    ]
    edges, features, labels, train, val, test = paths
    tables = from_lists(edges, features=features, labels=labels, train=train, val=val, test=test)
    return convert_tables(tables, folder / "graph", name="some", undirected=True)


@functools.cache
def _state_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "state"
        with opened(Checkpoint(folder, every=0, keep=True), _RUN) as journal:
            if journal is None:
                raise RuntimeError("a checkpoint has a journal")
            state = State({"x": torch.ones(2, 3)}, {"seconds": 1.5, "losses": [1.0, 0.5]})
            journal.part("one", _CPU).save(state)
            # It wrote down how long the run took; seeds are always the same.
            written(folder, "one.part", packed(state, journal.digest))
        return [_STATE.joined([(folder / name).read_bytes() for name in _STATE.names])]


def _read_state(data: bytes, folder: Path) -> object:
    for name, part in zip(_STATE.names, _STATE.parts(data), strict=True):
        written(folder / "state", name, part)
    with opened(Checkpoint(folder / "state", keep=True), _RUN) as journal:
        return None if journal is None else journal.part("one", _CPU).load()


TARGETS = (
    *(
        Target(name, reads, partial(_folder_seeds, one), partial(_read_folder, one), one)
        for name, reads, one in (
            ("graph-folder", "graph folders", _FOLDER),
            ("sparse-folder", "graph folders with sparse features", _SPARSE),
        )
    ),
    Target("edge-lists", "lists of edges, `gcsr convert`", _list_seeds, _read_lists, _LISTS),
    Target("checkpoint", "the state of an ended run", _state_seeds, _read_state, _STATE),
)
