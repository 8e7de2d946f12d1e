"""Names, files, folders, the catalogue and what happens without a network."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gcsr import datasets
from gcsr.data.graph import Graph
from gcsr.datasets.readers import per_class_split
from gcsr.datasets.registry import data_root
from gcsr.utils.errors import InputError
from helpers import planted_graph

NAMES = [
    "digits",
    "cora",
    "citeseer",
    "pubmed",
    "amazon-computers",
    "amazon-photo",
    "coauthor-cs",
    "coauthor-physics",
    "flickr",
    "reddit",
    "ogbn-arxiv",
    "wordnet",
]


def _graph() -> Graph:
    edges = [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    return Graph.from_arrays(x, edges, [0, 1, 0, 1], train=[0, 1], val=[2], test=[3])


def test_names():
    assert sorted(datasets.names()) == sorted(NAMES)


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("corra", "cora"), ("Corra", "cora"), ("ogbn_arxiv", "ogbn-arxiv")]
)
def test_unknown_name_lists_and_suggests(wrong, nearest):
    with pytest.raises(InputError) as caught:
        datasets.load(wrong)
    message = str(caught.value)
    assert repr(wrong) in message
    assert all(name in message for name in NAMES)
    assert message.startswith("dataset must be one of digits, ")
    assert message.endswith(f"graph folder, got {wrong!r} (did you mean {nearest}?).")


def test_names_are_known_in_any_case(tmp_path, monkeypatch):
    lower, pyg = datasets.load("digits"), datasets.load("Digits")
    assert (pyg.name, pyg.content_hash) == (lower.name, lower.content_hash)
    # A folder of one's own by that name comes first, unless it is no graph folder.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "DIGITS").mkdir()
    assert datasets.load("DIGITS").name == "digits"
    planted_graph().to_folder(tmp_path / "Digits")
    assert datasets.load("Digits").name == "planted"


@pytest.mark.parametrize("name", ["mine.pt", "gone/mine.csv", "cora.tar", "mine.npz"])
def test_a_file_that_is_not_there_is_said_to_be_missing(name):
    with pytest.raises(InputError, match=rf"^{name}: no such file\.$"):
        datasets.load(name)


def test_unknown_name_far_from_all_suggests_nothing():
    with pytest.raises(InputError, match=r"digits, cora.*, got 'zzz'\.$"):
        datasets.load("zzz")


def test_other_paths_name_what_writes_a_graph(tmp_path):
    (tmp_path / "edges.csv").write_text("0,1\n")
    for path in (tmp_path / "edges.csv", tmp_path):
        with pytest.raises(InputError, match="gcsr convert"):
            datasets.load(path)


@pytest.mark.parametrize(
    ("name", "call"),
    [("g.pt", r"torch.load.*to_npz.*g\.npz"), ("small.safetensors", "CondensedGraph.load")],
)
def test_files_of_other_kinds_name_the_call_that_reads_them(tmp_path, name, call):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=f"must be an .npz file or a graph folder.*{call}"):
        datasets.load(tmp_path / name)


def test_unknown_scaling_is_refused_before_anything_is_read(closed_network):
    with pytest.raises(InputError, match=r"features.*'minmax'"):
        datasets.load("reddit", "nowhere", features="minmax")
    assert closed_network == []


def test_file_is_read_with_keep_and_transductive(tmp_path):
    path = _graph().to_npz(tmp_path / "mine.npz")
    for source in (path, str(path)):
        graph = datasets.load(source)
        assert (graph.name, graph.feature_scaling, graph.inductive) == ("mine", "keep", False)
        assert graph.content_hash == _graph().content_hash
    assert datasets.load(path, inductive=True).inductive
    assert datasets.load(path, features="rows").feature_scaling == "rows"


class Place:
    """A path of another library."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


def test_any_object_that_is_a_path_is_read(tmp_path):
    path = _graph().to_npz(tmp_path / "mine.npz")
    with os.scandir(tmp_path) as entries:
        for source in (Place(path), *entries):
            assert datasets.load(source).content_hash == _graph().content_hash


@pytest.mark.parametrize("memory", ["1GB", 0, float("nan"), True])
def test_memory_is_a_number_of_bytes(tmp_path, memory):
    folder = _graph().to_folder(tmp_path / "mine")
    with pytest.raises(InputError, match="memory must be a number of bytes >= 1, got"):
        datasets.load(folder, memory=memory)
    for fine in (10.0, np.int64(10)):
        assert isinstance(datasets.load(folder, memory=fine).disk.memory, int)


def test_file_with_another_ending_is_read(tmp_path):
    path = _graph().to_npz(tmp_path / "mine.graph")
    assert datasets.load(path).content_hash == _graph().content_hash


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz: no such file"):
        datasets.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("folder", ["", "graphs"])
def test_registered_name_from_a_graph_file(tmp_path, folder, closed_network):
    (tmp_path / folder).mkdir(exist_ok=True)
    _graph().to_npz(tmp_path / folder / "flickr.npz")
    graph = datasets.load("flickr", tmp_path)
    assert any("features; the dataset has 500" in note for note in graph.notes)
    assert (graph.name, graph.feature_scaling, graph.inductive) == ("flickr", "standardize", True)
    assert _availability(tmp_path)["flickr"]
    assert closed_network == []


def test_real_graph_file_of_a_registered_name(shared_data, monkeypatch):
    if not (shared_data / "graphs" / "amazon-computers.npz").is_file():
        pytest.skip(f"{shared_data} does not hold amazon-computers")
    monkeypatch.setenv("GCSR_DATA", str(shared_data))
    graph = datasets.load("amazon-computers")
    info = next(info for info in datasets.catalogue() if info.name == "amazon-computers")
    assert (graph.num_nodes, graph.num_edges) == (info.nodes, info.edges)
    assert (graph.num_features, graph.num_classes) == (info.features_count, info.classes)
    assert (len(graph.train), len(graph.val)) == (200, 300)
    assert info.available


@pytest.mark.parametrize(
    ("name", "folder", "files"),
    [
        ("cora", "Cora/raw", ["ind.cora.x", "ind.cora.graph", "ind.cora.test.index"]),
        ("citeseer", "CiteSeer/raw", ["ind.citeseer.allx"]),
        ("amazon-photo", "Photo/raw", ["amazon_electronics_photo.npz"]),
        ("coauthor-physics", "Physics/raw", ["ms_academic_phy.npz"]),
        ("flickr", "Flickr/raw", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"]),
        ("reddit", "Reddit2/raw", ["adj_full.npz", "feats.npy", "class_map.json", "role.json"]),
        ("ogbn-arxiv", "ogbn_arxiv", ["arxiv.zip"]),
    ],
)
def test_closed_network_is_one_sentence(tmp_path, closed_network, name, folder, files):
    begin = time.monotonic()
    with pytest.raises(InputError) as caught:
        datasets.load(name, tmp_path)
    message = str(caught.value)
    assert str(tmp_path / folder) in message
    assert all(file in message for file in files)
    assert "the network is closed" in message
    assert "\n" not in message
    assert message.endswith(".")
    assert len(re.findall(r"\. [A-Z]", message)) == 0
    assert len(closed_network) == 1
    assert closed_network[0].startswith("https://")
    assert list(tmp_path.iterdir()) == []
    assert time.monotonic() - begin < 20


def test_missing_files_belong_beside_those_that_are_there(tmp_path, closed_network):
    folder = tmp_path / "planetoid" / "cora" / "raw"
    folder.mkdir(parents=True)
    (folder / "ind.cora.x").write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(str(folder))):
        datasets.load("cora", tmp_path)
    assert closed_network[0].endswith("ind.cora.tx")


def test_download_is_read_by_the_safe_reader(tmp_path, monkeypatch):
    """What the network sends is as little trusted as what lies in the folder."""
    from gcsr.datasets import download

    def fake(url: str, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"6\n" if url.endswith("index") else b"cos\nsystem\n(Vtrue\ntR.")

    monkeypatch.setattr(download, "fetch", fake)
    with pytest.raises(InputError, match=r"ind\.cora\.allx.*os\.system"):
        datasets.load("cora", tmp_path)


def test_root_order(tmp_path, monkeypatch):
    monkeypatch.setenv("GCSR_DATA", str(tmp_path / "variable"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root(None) == tmp_path / "variable"
    monkeypatch.setenv("GCSR_DATA", "")
    assert data_root(None) == tmp_path / "cache" / "gcsr"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_root(None) == tmp_path / "home" / ".cache" / "gcsr"


def _availability(root: Path) -> dict[str, bool]:
    return {info.name: info.available for info in datasets.catalogue(root)}


def test_catalogue(tmp_path):
    found = datasets.catalogue(tmp_path)
    assert [info.name for info in found] == list(datasets.names())
    assert [info.name for info in found if info.available] == ["digits"]
    assert {info.name for info in found if info.setting == "inductive"} == {"flickr", "reddit"}
    scalings = {info.name: info.scaling for info in found}
    assert {name for name in NAMES if scalings[name] == "rows"} == {
        "cora", "citeseer", "pubmed", "coauthor-cs", "coauthor-physics"
    }  # fmt: skip
    assert scalings["digits"] == "keep"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found[0].name = "other"


def test_catalogue_of_digits_is_true(tmp_path):
    info = datasets.catalogue(tmp_path)[0]
    graph = datasets.load("digits")
    assert (info.nodes, info.edges) == (graph.num_nodes, graph.num_edges)
    assert (info.features_count, info.classes) == (graph.num_features, graph.num_classes)


def test_import_is_light():
    code = (
        "import sys, gcsr.datasets;"
        "print([m for m in ('torch_geometric', 'sklearn', 'ogb') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_per_class_split_of_small_and_unlabeled_classes():
    y = np.array([-1] * 5 + [0] * 60 + [1] * 25 + [2] * 3)
    train, val, test = per_class_split(y)
    assert np.bincount(y[train]).tolist() == [20, 20, 3]
    assert np.bincount(y[val]).tolist() == [30, 5]
    assert np.bincount(y[test]).tolist() == [10]
    together = np.concatenate([train, val, test])
    assert sorted(together) == list(range(5, 93))
    assert not np.array_equal(per_class_split(y, seed=1)[0], train)
