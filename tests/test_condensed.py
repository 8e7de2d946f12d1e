from __future__ import annotations

import json
import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save, save_file
from torch_geometric.nn import GCNConv

from gcsr import CondensedGraph, InputError

N, D, C = 4, 3, 3


def parts(**changes):
    y = torch.tensor([0, 0, 1, 2])
    values = {
        "x": torch.randn(N, D, generator=torch.Generator().manual_seed(0)),
        "adjacency": torch.tensor(
            [[1.0, 0.5, 0, 0], [0.5, 2.0, 0.001, 0], [0, 0.001, 0, 0], [0, 0, 0, 1.0]]
        ),
        "y": y,
        "num_classes": C,
        "provenance": {"method": "gcsr", "dataset": {"name": "cora"}, "settings": {"alpha": 1.0}},
    }
    return values | changes


def made(**changes) -> CondensedGraph:
    return CondensedGraph(**parts(**changes))


SOFT = torch.tensor([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7], [0, 1.0, 0], [0.2, 0.2, 0.6]])


# -- what it is --------------------------------------------------------------------------------------


def test_hard_labels():
    small = made()
    assert small.num_nodes == 4
    assert small.targets.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert torch.equal(small.classes, small.y)
    assert small.nbytes == 4 * (N * D + N * N) + 8 * N
    assert repr(small) == "CondensedGraph(4 nodes by gcsr from cora)"


def test_soft_labels():
    small = made(y=SOFT)
    assert torch.equal(small.targets, SOFT)
    assert small.classes.tolist() == [0, 2, 1, 2]
    assert small.describe()["labels"] == "soft"


def test_nodes_without_a_label(tmp_path):
    small = made(y=torch.tensor([0, -1, 1, -1]))
    assert small.targets.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert small.classes.tolist() == [0, -1, 1, -1]
    assert small.labeled.tolist() == [True, False, True, False]
    assert small.describe()["nodes_per_class"] == [1, 1, 0]
    assert small.describe()["unlabeled_nodes"] == 2
    data = small.to_pyg()
    assert data.train_mask.tolist() == [True, False, True, False]
    assert made().to_pyg().train_mask.all()
    again = CondensedGraph.load(small.save(tmp_path / "small.safetensors"))
    assert torch.equal(again.y, small.y)


def test_describe():
    described = made().describe()
    assert described["nodes_per_class"] == [2, 1, 1]
    assert described["edges_above_0.01"] == 1
    assert described["density_above_0.01"] == pytest.approx(2 / 12)
    assert described["mean_diagonal"] == pytest.approx(1.0)
    assert described["leaks_test_labels"] is False
    json.dumps(described)


def test_leak_is_said():
    assert made(provenance={"leaks_test_labels": True}).leaks_test_labels
    assert not made(provenance={}).leaks_test_labels


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"x": torch.zeros(3)}, "x must be a matrix"),
        ({"x": torch.tensor(1.0)}, "x must be a matrix"),
        ({"x": torch.zeros(0, 3)}, "x must be a matrix"),
        ({"x": torch.full((N, D), torch.nan)}, "x must be finite"),
        ({"x": torch.zeros(N, D, dtype=torch.long)}, "x must be finite floating-point"),
        ({"adjacency": torch.eye(3)}, r"adjacency must have shape \(4, 4\), got \(3, 3\)"),
        ({"adjacency": torch.full((N, N), torch.inf)}, "adjacency must be finite"),
        ({"adjacency": -torch.eye(N)}, "adjacency must be >= 0, got -1"),
        ({"y": torch.tensor([0, 1])}, "y must be 4 int64 classes"),
        ({"y": torch.tensor([0.0, 1, 2, 0])}, "y must be 4 int64 classes"),
        ({"y": torch.tensor([0, 1, 2, 3])}, r"y must be 0..2 .*, got 3"),
        ({"y": torch.tensor([0, -2, 2, 1])}, r"y must be 0..2 .*, got -2"),
        ({"y": torch.full((N,), -1)}, "y must have a label for at least one node"),
        ({"y": torch.ones(N, 2) / 2}, r"y must be class shares of shape \(4, 3\)"),
        ({"y": torch.ones(N, C)}, "sum to one"),
        ({"y": SOFT * torch.nan}, "sum to one"),
        ({"y": torch.tensor([[2.0, -1, 0]] * 4)}, "class shares >= 0"),
    ],
)
def test_what_cannot_be_a_condensed_graph_is_refused(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        made(**changes)


# -- PyG ---------------------------------------------------------------------------------------------


def dense(data) -> torch.Tensor:
    """A' from edges: what a node receives is in its row."""
    return torch.zeros(N, N).index_put((data.edge_index[1], data.edge_index[0]), data.edge_weight)


def test_to_pyg_with_every_entry():
    small = made(adjacency=parts()["adjacency"].clone().index_put(*ASYMMETRIC))
    data = small.to_pyg(threshold=0)
    assert torch.equal(dense(data), small.adjacency + torch.eye(N))
    assert torch.equal(data.x, small.x)
    assert torch.equal(data.y, small.y)
    data.x.zero_()
    assert small.x.any()


ASYMMETRIC = (torch.tensor([0]), torch.tensor([3])), torch.tensor(0.25)


def test_to_pyg_leaves_out_what_is_at_or_below_the_threshold():
    kept = dense(made().to_pyg(threshold=0.1))
    assert kept[0, 1] == 0.5 and kept[1, 2] == 0
    for wrong in (-1, float("nan"), "a", True):
        with pytest.raises(InputError, match=f"^threshold must be a number >= 0, got {wrong!r}"):
            made().to_pyg(wrong)
    assert made().to_pyg(float("inf")).num_edges == made().to_pyg(threshold=9).num_edges


@pytest.mark.parametrize(
    ("chosen", "edges"),
    [({}, 0), ({"threshold": None}, 0), ({"threshold": 0.1}, 2), ({"threshold": 0.0}, 4), (7, 0)],
)
def test_to_pyg_has_the_edges_that_were_chosen_for_unweighted_layers(chosen, edges):
    """A weighted file without a choice has no edges but self-loops."""
    data = made(provenance={"unweighted_edges": chosen} if chosen != {} else {}).to_pyg()
    loops = data.edge_index[0] == data.edge_index[1]
    assert (int(loops.sum()), int((~loops).sum())) == (N, edges)
    if not edges:
        assert data.edge_weight.tolist() == [1.0] * N


def test_to_pyg_of_an_unweighted_graph_has_its_edges_and_a_loop_where_a_node_has_none():
    # SAGEConv adds no self-loops: without neighbors the weights for them would not be trained.
    adjacency = torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    data = made(adjacency=adjacency).to_pyg()
    assert data.edge_index.tolist() == [[0, 1, 2, 3], [1, 0, 2, 3]]
    assert data.edge_weight.tolist() == [1, 1, 2, 1]


def test_a_gcn_of_pyg_with_every_entry_is_the_gcn_of_this_library():
    small = made()
    data, conv = small.to_pyg(threshold=0), GCNConv(D, C, bias=False)
    looped = small.adjacency + torch.eye(N)
    scale = looped.sum(1).rsqrt()
    wanted = (scale[:, None] * looped * scale) @ small.x @ conv.lin.weight.T
    torch.testing.assert_close(conv(data.x, data.edge_index, data.edge_weight), wanted)


def test_soft_targets_are_beside_the_classes():
    data = made(y=SOFT).to_pyg()
    assert torch.equal(data.y, SOFT.argmax(1)) and torch.equal(data.y_soft, SOFT)
    assert "y_soft" not in made().to_pyg()


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [torch.tensor([0, 0, 1, 2]), SOFT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip(tmp_path, y, dtype):
    path = tmp_path / "small.safetensors"
    small = made(y=y, x=torch.randn(N, D, dtype=dtype))
    assert small.save(path) == path
    again = CondensedGraph.load(str(path))
    for name in ("x", "adjacency", "y"):
        assert torch.equal(getattr(small, name), getattr(again, name))
        assert getattr(small, name).dtype == getattr(again, name).dtype
    assert again.provenance == small.provenance
    assert again.num_classes == C


def test_same_graph_same_bytes(tmp_path):
    paths = (tmp_path / f"{name}.safetensors" for name in ("a", "b"))
    first, second = (made().save(path).read_bytes() for path in paths)
    assert first == second


@pytest.mark.parametrize("name", ["c14.pt", "c14"])
def test_files_have_the_suffix_of_their_format(tmp_path, name):
    with pytest.raises(InputError, match=rf"^path must end with \.safetensors, got .*{name}\.$"):
        made().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_views_of_larger_tensors_are_saved(tmp_path):
    wide = torch.randn(N, 2 * D)
    small = made(x=wide[:, ::2], adjacency=torch.eye(N).expand(2, N, N)[0])
    again = CondensedGraph.load(small.save(tmp_path / "a.safetensors"))
    assert torch.equal(again.x, wide[:, ::2])


def test_saving_replaces_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "small.safetensors"
    path.write_bytes(b"older")
    made().save(path)
    assert CondensedGraph.load(path).num_nodes == N
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o044 == 0o044 & ~umask()


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@pytest.mark.parametrize("broken", ["fsync", "replace"])
@pytest.mark.parametrize("kind", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_write_that_fails_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch, broken, kind):
    path = tmp_path / "small.safetensors"
    path.write_bytes(b"older")

    def fail(*_: object) -> None:
        raise kind

    monkeypatch.setattr(*((os, "fsync") if broken == "fsync" else (Path, "replace")), fail)
    expected = InputError if isinstance(kind, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        made().save(path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"the folder .*nowhere does not exist"):
        made().save(tmp_path / "nowhere" / "small.safetensors")


def metadata(**changes):
    values = {"format": "gcsr-condensed-graph/1", "num_classes": "3", "provenance": "{}"}
    return {k: v for k, v in (values | changes).items() if v is not None}


def tensors(**changes):
    values = {name: parts()[name] for name in ("x", "adjacency", "y")} | changes
    return {k: v for k, v in values.items() if v is not None}


FINE = save(tensors(), metadata())
FILES = {
    "empty": b"",
    "garbage": b"\x93NUMPY" + bytes(range(256)),
    "text": b"hello, this is not a tensor file at all",
    "zip": b"PK\x03\x04" + bytes(100),
    "truncated header": FINE[:40],
    "truncated data": FINE[:-5],
    "huge header": struct.pack("<Q", 2**62) + FINE[8:],
    "header beyond file": struct.pack("<Q", len(FINE) * 2) + FINE[8:],
    "header not JSON": FINE[:8] + b"!" * (len(FINE) - 8),
    "no metadata": save(tensors()),
    "other format": save(tensors(), metadata(format="weights/1")),
    "later format": save(tensors(), metadata(format="gcsr-condensed-graph/3")),
    "missing tensor": save(tensors(y=None), metadata()),
    "extra tensor": save(tensors(z=torch.zeros(1)), metadata()),
    "wrong shape": save(tensors(adjacency=torch.eye(5)), metadata()),
    "scalar": save(tensors(x=torch.tensor(1.0)), metadata()),
    "empty x": save(tensors(x=torch.zeros(0, 3)), metadata()),
    "NaN": save(tensors(x=torch.full((N, D), torch.nan)), metadata()),
    "integers": save(tensors(x=torch.ones(N, D, dtype=torch.int64)), metadata()),
    "no classes": save(tensors(), metadata(num_classes=None)),
    "classes not a number": save(tensors(), metadata(num_classes="many")),
    "too few classes": save(tensors(), metadata(num_classes="2")),
    "negative classes": save(tensors(), metadata(num_classes="-3")),
    "no provenance": save(tensors(), metadata(provenance=None)),
    "provenance not JSON": save(tensors(), metadata(provenance="{")),
    "provenance a list": save(tensors(), metadata(provenance="[1]")),
    "dataset not an object": save(tensors(), metadata(provenance='{"dataset": "cora"}')),
    "provenance nested": save(tensors(), metadata(provenance="[" * 100_000)),
}


@pytest.mark.parametrize("kind", FILES)
def test_broken_and_foreign_files_are_one_sentence(tmp_path, kind):
    path = tmp_path / "broken.safetensors"
    path.write_bytes(FILES[kind])
    with pytest.raises(InputError) as caught:
        CondensedGraph.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_file_that_the_broken_ones_come_from_is_fine(tmp_path):
    path = tmp_path / "fine"
    save_file(tensors(), path, metadata())
    assert CondensedGraph.load(path).num_nodes == N


def test_missing_file_and_folder_are_one_sentence(tmp_path):
    with pytest.raises(InputError, match="nothing: no such file"):
        CondensedGraph.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="must be the file of a condensed graph, got a folder"):
        CondensedGraph.load(tmp_path)
