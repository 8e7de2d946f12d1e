"""Graph folders: the same graph again, and no harm from those of strangers."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcsr
from gcsr import Graph, InputError
from gcsr.data.array_file import ArrayFile, ArrayWriter
from gcsr.data.folder import verify, write_folder
from gcsr.data.stored_graph import StoredGraph, open_folder
from gcsr.data.stored_matrix import edges_among
from helpers import planted_graph


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(
        planted_graph(weighted=True), tmp_path_factory.mktemp("folders") / "planted"
    )


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A folder to spoil."""
    return Path(shutil.copytree(written, tmp_path / "spoilt"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inductive", [False, True])
def test_the_same_graph_again(tmp_path: Path, weighted: bool, inductive: bool) -> None:
    graph = planted_graph(weighted=weighted, inductive=inductive)
    path = graph.to_folder(tmp_path / "planted")
    verify(path)
    loaded = gcsr.load(path)
    stored = gcsr.load(path, memory=1000)
    assert type(loaded) is Graph and isinstance(stored, StoredGraph)
    for one in (loaded, stored):
        assert one.content_hash == graph.content_hash
        assert (one.is_weighted, one.inductive) == (weighted, inductive)
        assert (one.name, one.feature_scaling, one.num_edges) == (
            "planted",
            "keep",
            graph.num_edges,
        )
    assert stored.nbytes == loaded.nbytes
    assert (path / "weights.npy").exists() == weighted
    assert np.array_equal(np.load(path / "features.npy"), graph.x.numpy()), "plain npy files"


@pytest.mark.parametrize("name", ["features", "labels"])
def test_a_damaged_folder_is_not_condensed(folder: Path, name: str) -> None:
    np.save(folder / f"{name}.npy", np.roll(np.load(folder / f"{name}.npy"), 1, axis=0))
    graph = gcsr.load(folder)  # which reads no hash
    sentence = rf"^{folder}: its arrays must have the content hash .*gcsr convert {folder} --verify"
    for features in (None, "standardize"):
        with pytest.raises(InputError, match=sentence):
            gcsr.condense(graph, nodes=6, method="random", features=features)
    with pytest.raises(InputError, match="hash differs"):
        verify(folder)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_intact_folder_is_condensed_whatever_is_made_of_it(tmp_path: Path, sparse: bool) -> None:
    given = planted_graph(weighted=True)
    given = replace(given, x=given.x.to_sparse_csr()) if sparse else given
    folder = given.to_folder(tmp_path / "planted")
    graph = gcsr.load(folder, inductive=True)
    others = (
        graph,
        gcsr.load(folder, features="standardize"),
        graph.renamed("other"),
        replace(graph, train=graph.train[1:], inductive=False),
        graph.subgraph(np.arange(60)),
        pickle.loads(pickle.dumps(graph)),
        copy.deepcopy(graph),
    )
    for one in others:
        assert gcsr.condense(one, nodes=6, method="random").num_nodes == 6


@pytest.mark.parametrize("sparse", [False, True])
def test_a_part_of_a_graph_on_disk_is_in_memory(tmp_path: Path, sparse: bool) -> None:
    graph = planted_graph(weighted=True)
    graph = replace(graph, x=graph.x.to_sparse_csr()) if sparse else graph
    stored = open_folder(graph.to_folder(tmp_path / "planted"), memory=1000)
    some = np.random.default_rng(0).permutation(graph.num_nodes)[:60]
    part = stored.subgraph(some)
    assert type(part) is gcsr.Graph
    assert part.is_sparse == sparse
    assert part.content_hash == graph.subgraph(some).content_hash


def test_rows_by_number(written: Path) -> None:
    graph, stored = planted_graph(weighted=True), open_folder(written, memory=1000)
    ids = np.random.default_rng(0).permutation(graph.num_nodes)[:40]
    assert np.array_equal(stored.disk.features.take(ids), graph.x.numpy()[ids])
    for found, wanted in (
        (stored.disk.adjacency.take(ids), graph.adjacency[ids]),
        (edges_among(stored.disk.adjacency, ids), graph.adjacency[ids][:, ids]),
        (stored.disk.adjacency.rows(3, 50), graph.adjacency[3:50]),
    ):
        assert np.array_equal(found.toarray(), wanted.toarray())
    cuts = list(stored.disk.adjacency.cuts(20, 60))
    assert [a for a, _ in cuts[1:]] == [b for _, b in cuts[:-1]] and cuts[-1][1] == graph.num_nodes


def test_a_scattered_file_is_read_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are read one by one, many with what lies between; both must be the same rows."""
    monkeypatch.setattr("gcsr.data.array_file.WALK_BYTES", 2**17)
    values = np.arange(60000, dtype="<f4").reshape(-1, 3)
    with ArrayWriter(tmp_path / "a.npy", "<f4", 3) as writer:
        writer.append(values[:10000])
        writer.append(values[10000:])
        writer.finish()
    file = ArrayFile.open(tmp_path / "a.npy")
    rng = np.random.default_rng(0)
    for count in (0, 1, 5, 500, 20000):
        ids = rng.integers(20000, size=count)
        assert np.array_equal(file.take(ids), values[ids])


def test_a_folder_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcsr.data.folder.seal", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_folder(planted_graph(), tmp_path / "planted")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(written: Path) -> None:
    with pytest.raises(InputError, match="there already"):
        write_folder(planted_graph(), written)


def changed(folder: Path, **values: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    "values",
    [
        {"format": "gcsr-graph-folder/2"},
        {"nodes": 10**15},
        {"nodes": -1},
        {"nodes": 0},
        {"nodes": True},
        {"edges": 2**60},
        {"edges": "many"},
        {"feature_count": 10**9},
        {"num_classes": 10**12},
        {"num_classes": 2},
        {"scaling": "../../etc"},
        {"weighted": 1},
        {"weighted": False, "nodes": 65},
        {"content_hash": "../" * 20},
        {"sha256": {}},
        {"sha256": {"../../features": "0" * 64}},
        {"name": None},
    ],
)
def test_hostile_manifests(folder: Path, values: dict[str, Any]) -> None:
    changed(folder, **values)
    with pytest.raises(InputError) as caught:
        open_folder(folder, memory=1000)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 40000, b" " * 70000])
def test_manifests_that_are_none(folder: Path, text: bytes) -> None:
    (folder / "manifest.json").write_bytes(text)
    with pytest.raises(InputError):
        open_folder(folder, memory=1000)


@pytest.mark.parametrize("name", ["features", "indptr", "indices", "weights", "labels", "train"])
@pytest.mark.parametrize("how", ["cut", "longer", "gone", "pickle", "empty", "folder", "wide"])
def test_arrays_that_are_not_what_the_manifest_says(folder: Path, name: str, how: str) -> None:
    path = folder / f"{name}.npy"
    blob = path.read_bytes()
    path.unlink()
    if how == "pickle":
        np.save(path, np.array([{}, {}], dtype=object))
    elif how == "folder":
        path.mkdir()
    elif how == "wide":
        np.save(path, np.zeros((10**3, 10**3)))
    elif how != "gone":
        path.write_bytes({"cut": blob[:-4], "longer": blob + b"\0" * 4, "empty": b""}[how])
    with pytest.raises(InputError):
        open_folder(folder, memory=1000)


def spoil(path: Path, place: int, value: int) -> None:
    values = np.load(path)
    values[place] = value
    np.save(path, values)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indices", 5, 10**6),
        ("indices", 5, -1),
        ("indptr", 5, -7),
        ("indptr", 5, 10**9),
        ("indptr", 5, -(2**63)),
    ],
)
def test_edges_that_point_nowhere(folder: Path, name: str, place: int, value: int) -> None:
    """Found when the block is read: nothing outside the arrays is touched."""
    spoil(folder / f"{name}.npy", place, value)
    stored = open_folder(folder, memory=1000)
    with pytest.raises(InputError):
        gcsr.condense(stored, nodes=6, method="gcsr", iterations=1, device="cpu")
    with pytest.raises(InputError):
        stored.to_memory()


@pytest.mark.parametrize("name", ["features", "labels", "test"])
def test_verifying_finds_one_changed_number(folder: Path, name: str) -> None:
    verify(folder)
    path = folder / f"{name}.npy"
    blob = bytearray(path.read_bytes())
    blob[-8] ^= 1
    path.write_bytes(blob)
    with pytest.raises(InputError, match=name):
        verify(folder)
