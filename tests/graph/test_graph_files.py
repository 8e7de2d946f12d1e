"""Graph files: round trips, hostile and broken files."""

from __future__ import annotations

import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gcsr.data.graph import Graph
from gcsr.data.npz import load_arrays
from gcsr.utils.errors import InputError


class _Touches:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.marker,)


def _arrays() -> dict[str, object]:
    return {
        "adj_indptr": np.array([0, 1, 2, 2, 2]),
        "adj_indices": np.array([1, 0]),
        "y": np.array([0, 1, 0, 1]),
        "x": np.ones((4, 2)),
        "train": [0, 1],
        "val": [2],
        "test": [3],
    }


def _sparse_x() -> dict[str, object]:
    return {"x": None, "x_indptr": [0, 1, 1, 2, 2], "x_indices": [1, 0], "x_shape": [4, 2]}


def _file(folder: Path, **changes: object) -> Path:
    path = folder / "g.npz"
    arrays = {key: value for key, value in (_arrays() | changes).items() if value is not None}
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"edge_weights": [2.0, 2.0, 1.0, 1.0, 0.25, 0.25]},
        {"x": np.eye(6, 30)},  # sparse enough to be stored sparsely
        {"y": [0, 1, 2, 0, -1, 2], "test": [5]},
    ],
)
def test_round_trip(make, tmp_path, changes):
    graph = make(**changes)
    path = graph.to_npz(tmp_path / "kept.npz")
    assert list(tmp_path.iterdir()) == [path]
    read = Graph.from_npz(path)
    assert read.content_hash == graph.content_hash
    assert read.name == "kept"
    assert Graph.from_npz(str(path), inductive=True, features="rows").inductive


def test_sparse_features_with_and_without_values(tmp_path):
    ones = Graph.from_npz(_file(tmp_path, **_sparse_x()))
    assert ones.x.tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]
    valued = Graph.from_npz(_file(tmp_path, **_sparse_x(), x_data=[3.0, -2.0]))
    assert valued.x.tolist() == [[0, 3], [0, 0], [-2, 0], [0, 0]]


def test_directed_file_needs_the_callers_word(tmp_path):
    path = _file(tmp_path, adj_indptr=[0, 1, 1, 1, 1], adj_indices=[1])
    with pytest.raises(InputError, match=r"g\.npz: edges must be undirected"):
        Graph.from_npz(path)
    assert Graph.from_npz(path, undirected=True).num_edges == 2


def test_weights_of_a_file(tmp_path):
    assert Graph.from_npz(_file(tmp_path, adj_data=[2.0, 2.0])).is_weighted
    with pytest.raises(InputError, match="edge_weights must be >= 0, got -2"):
        Graph.from_npz(_file(tmp_path, adj_data=[-2.0, -2.0]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"y": None}, "but lacks y; Graph.from_arrays"),
        ({"train": None, "y": None}, "but lacks y, train"),
        ({"x": None}, "must hold the features x"),
        ({"y": 3}, "one class per node"),
        ({"y": list("abab")}, "y must be integers"),
        ({"y": [0, 1, 0]}, r"npz: y must be of 4 nodes, as adj_indptr and x have, got 3\.$"),
        ({"x": np.ones((3, 2))}, r"npz: x must be of 4 nodes, as adj_indptr and y have, got 3\.$"),
        (
            {"adj_indptr": [0, 1, 2, 2]},
            r"npz: adj_indptr must be of 4 nodes, as y and x have, got 4 entries for 3\.$",
        ),
        (
            {"y": [0, 1], "x": np.ones((3, 2))},
            r"npz: adj_indptr, y and x must have the same number of nodes, got 4, 2, 3\.$",
        ),
        ({"x": 3.0}, "x must be a matrix"),
        ({"adj_indptr": [0, 2, 1, 2, 2]}, "must describe"),
        ({"adj_indptr": [0, 1, 2, 2, 9]}, "must describe"),
        # Each is below the one before it, and the difference wraps around to a step forward.
        ({"adj_indptr": [0, 2**63 - 1, -(2**63) + 1, 2, 2]}, "must describe"),
        ({"adj_indptr": []}, "must be lists of integers"),
        ({"adj_indices": [1, 4]}, "must be columns 0..3, got 4"),
        ({"adj_indices": [1, -1]}, "must be columns 0..3, got -1"),
        ({"adj_indices": 1}, "must be lists of integers"),
        ({"adj_indices": [1.0, 0.0]}, "must be lists of integers"),
        ({"adj_data": [1.0]}, "must describe"),
        ({"adj_data": ["a", "b"]}, "adj_data must be numbers"),
        ({"adj_data": [[1.0], [1.0]]}, "must describe"),
        (_sparse_x() | {"x_shape": [3, 2]}, "x_shape must be of 4 nodes, as adj_indptr and y have"),
        (_sparse_x() | {"x_shape": [4.0, 2.0]}, "x_shape"),
        (_sparse_x() | {"x_shape": 4}, "x_shape"),
        (_sparse_x() | {"x_shape": [4, 0]}, "x_shape"),
        (_sparse_x() | {"x_shape": [4, 10**15]}, "may unfold to at most"),
        (_sparse_x() | {"x_data": ["a", "b"]}, "x_data must be numbers"),
        ({"x": np.full((4, 2), np.nan)}, "NaN"),
        ({"test": [2]}, "val and test must be disjoint"),
    ],
)
def test_inconsistent_file_is_one_sentence(tmp_path, changes, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Graph.from_npz(_file(tmp_path, **changes))
    assert str(tmp_path / "g.npz") in str(caught.value)


@pytest.mark.parametrize("field", ["x", "y", "notes"])
def test_pickle_inside_is_refused_and_does_not_run(tmp_path, field):
    marker = tmp_path / "ran"
    path = _file(tmp_path, **{field: np.array([_Touches(marker)] * 4, dtype=object)})
    marker.unlink(missing_ok=True)
    with pytest.raises(InputError, match="holds a pickled object"):
        Graph.from_npz(path)
    assert not marker.exists()
    with np.load(path, allow_pickle=True) as unsafe:
        unsafe[field]
    assert marker.exists(), "the payload is real: it runs where pickles are allowed"


def test_only_asks_for_named_arrays(tmp_path):
    path = _file(tmp_path, notes=np.array([None], dtype=object))
    assert load_arrays(path, only=("y", "absent")).keys() == {"y"}


def test_bare_pickle_and_other_files_are_refused(tmp_path):
    import pickle

    marker = tmp_path / "ran"
    path = tmp_path / "g.npz"
    path.write_bytes(pickle.dumps(_Touches(marker)))
    with pytest.raises(InputError, match=r"g\.npz"):
        Graph.from_npz(path)
    assert not marker.exists()
    np.save(tmp_path / "array.npy", np.ones(3))
    (tmp_path / "array.npy").rename(path)
    with pytest.raises(InputError, match=r"g\.npz must be an npz file"):
        Graph.from_npz(path)


def test_member_that_is_no_array_is_refused(tmp_path):
    path = _file(tmp_path, y=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y", "0101")
    with pytest.raises(InputError, match="y is not an array"):
        Graph.from_npz(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated_file_is_one_sentence(make, tmp_path, share):
    path = make().to_npz(tmp_path / "g.npz")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError, match=r"g\.npz must be an npz file"):
        Graph.from_npz(path)


def test_corrupt_file_is_the_same_graph_or_one_sentence(make, tmp_path):
    graph = make()
    path = graph.to_npz(tmp_path / "g.npz")
    content = path.read_bytes()
    rng = random.Random(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(damaged))
        try:
            assert Graph.from_npz(path).content_hash == graph.content_hash
        except InputError:
            refused += 1
    assert refused > 75


def test_missing_file_and_missing_folder(make, tmp_path):
    with pytest.raises(InputError, match=r"absent\.npz: no such file"):
        Graph.from_npz(tmp_path / "absent.npz")
    with pytest.raises(InputError, match=r"the folder .*absent does not exist"):
        make().to_npz(tmp_path / "absent" / "g.npz")


def test_a_file_that_is_cut_off_is_said_to_be(make, tmp_path):
    path = make().to_npz(tmp_path / "g.npz")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"cannot be read .*; the file may be cut off\.$"):
        Graph.from_npz(path)
    path.write_text("no archive")
    with pytest.raises(InputError, match=r"cannot be read \([^;]*\)\.$"):
        Graph.from_npz(path)


def test_failed_write_keeps_the_old_file(make, tmp_path, monkeypatch):
    path = make().to_npz(tmp_path / "g.npz")
    before = path.read_bytes()

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        make(y=[0, 1, 2, 0, 1, 1]).to_npz(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_real_files(shared_data):
    expected = {"actor": (7600, 53318, 932, 5), "facebook-pagepage": (22470, 341646, 4714, 4)}
    for name, counts in expected.items():
        path = shared_data / "graphs" / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"{shared_data} does not hold {name}")
        graph = Graph.from_npz(path)
        assert counts == (
            graph.num_nodes,
            graph.num_edges,
            graph.num_features,
            graph.num_classes,
        )
