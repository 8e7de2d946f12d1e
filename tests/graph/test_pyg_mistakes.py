"""What users of PyG get wrong: each sentence names the field, what it is and what it must be."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.loader import DataLoader

import gcsr
from gcsr.reporting.report import known_dataset
from helpers import planted_graph, tiny

DATA = planted_graph().to_pyg()
NODES = DATA.num_nodes
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "float edges": (
        {"edge_index": DATA.edge_index.float()},
        r"^data\.edge_index must be integers, got torch\.float32; data\.edge_index\.long\(\)",
    ),
    "complex edges": (
        {"edge_index": DATA.edge_index + 0j},
        r"^data\.edge_index must be integers, got torch\.complex64",
    ),
    "no edges": (
        {"edge_index": None},
        r"^data\.edge_index must be a tensor of shape \(2, E\), or data\.adj_t a sparse one, got None",
    ),
    "rows of edges": (
        {"edge_index": DATA.edge_index.t()},
        r"^data\.edge_index must have shape \(2, E\), got \(\d+, 2\); data\.edge_index\.t\(\) has it",
    ),
    "dense adjacency": (
        {"edge_index": torch.zeros(NODES, NODES, dtype=torch.long)},
        r"^data\.edge_index must have shape \(2, E\), .*dense_to_sparse\(data\.edge_index\)",
    ),
    "list of nodes": (
        {"edge_index": torch.arange(NODES)},
        rf"^data\.edge_index must have shape \(2, E\), got \({NODES},\)\.$",
    ),
    "edges from one": (
        {"edge_index": DATA.edge_index + 1},
        rf"^data\.edge_index must be node ids 0\.\.{NODES - 1}, got {NODES}",
    ),
    "edges one way": (
        {"edge_index": DATA.edge_index[:, DATA.edge_index[0] < DATA.edge_index[1]]},
        r"^data\.edge_index must be undirected, .*pass undirected=True",
    ),
    "adjacency one way": (
        {"edge_index": None, "adj_t": torch.eye(NODES).roll(1, 0).to_sparse()},
        r"^data\.adj_t must be undirected",
    ),
    "negative weights": (
        {"edge_weight": -torch.ones(DATA.num_edges)},
        r"^data\.edge_weight must be >= 0, got -1",
    ),
    "weights without an end": (
        {"edge_weight": torch.full((DATA.num_edges,), torch.inf)},
        r"^data\.edge_weight must be finite.*numpy\.nan_to_num\(data\.edge_weight,",
    ),
    "no labels": (
        {"y": None},
        r"^data\.y must be a tensor, got None; it holds the class of every node, -1 where",
    ),
    "one class": ({"y": DATA.y * 0}, r"^data\.y must have at least two classes, got 1"),
    "features that are no numbers": (
        {"x": DATA.x * torch.nan},
        r"^data\.x must be finite, .*torch\.nan_to_num\(data\.x, 0, 0, 0\) replaces",
    ),
    "mask of fewer nodes": (
        {"train_mask": DATA.train_mask[:-1]},
        rf"^data\.train_mask must have {NODES} entries as a mask, got {NODES - 1}\.$",
    ),
    "empty mask": (
        {"train_mask": DATA.train_mask & False},
        r"^data\.train_mask must have at least one node, got none\.$",
    ),
    "nodes in two masks": (
        {"val_mask": DATA.train_mask},
        r"^data\.train_mask and data\.val_mask must be disjoint, got \d+ nodes in both \(first: \d+\);"
        r" data\.val_mask & ~data\.train_mask drops them from data\.val_mask\.$",
    ),
    "validation nodes that cannot be held out": (
        {
            "train_mask": torch.arange(NODES) == int(DATA.train_mask.nonzero()[0]),
            "val_mask": None,
        },
        r"^data\.val_mask must have at least one node, got none, and no class has two training nodes,"
        r" of which one could be held out\.$",
    ),
    "single feature": ({"x": torch.tensor(1.0)}, r"^data\.x must have one row per node"),
    "array of features": (
        {"x": DATA.x.numpy()},
        r"^data\.x must be a tensor, got a NumPy ndarray; torch\.as_tensor\(data\.x\)",
    ),
    "list of labels": (
        {"y": DATA.y.tolist()},
        r"^data\.y must be a tensor, got a list with an int",
    ),
    "texts as labels": (
        {"y": ["a", "b"] * (NODES // 2)},
        r"^data\.y must be a tensor, got a list with the text 'a'; torch\.as_tensor\(numpy\.unique\(",
    ),
    "labels of fewer nodes": (
        {"y": DATA.y[:-1]},
        r"^data\.y must have one class per row of data\.x",
    ),
    "node ids as a mask": (
        {"train_mask": torch.arange(20)},
        r"^data\.train_mask must be true or false for every node, got values up to 19; .*index_to_mask",
    ),
    "negative ids as a mask": (
        {"train_mask": torch.full((NODES,), -1)},
        r"^data\.train_mask must be true or false for every node, got -1; .*index_to_mask",
    ),
    "sparse mask": (
        {"train_mask": DATA.train_mask.to_sparse()},
        r"^data\.train_mask must be a dense tensor .*to_dense\(\)",
    ),
    "quantized features": (
        {"x": torch.quantize_per_tensor(DATA.x, 0.1, 0, torch.qint8)},
        r"^data\.x must be real numbers, got torch\.qint8; data\.x\.dequantize\(\) converts it",
    ),
    "features without values": (
        {"x": DATA.x.to("meta")},
        r"^data\.x must be real numbers, got torch\.float32 on the device meta",
    ),
    "text in place of edges": (
        {"edge_index": None, "adj_t": "x"},
        r"^data\.adj_t must be a sparse tensor, got the text 'x'",
    ),
    "array as a mask": (
        {"train_mask": np.ones(NODES, bool)},
        r"^data\.train_mask must be a tensor with one truth value per node, got a NumPy ndarray",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_field_is_named(mistake: str) -> None:
    changes, sentence = MISTAKES[mistake]
    data = DATA.clone()
    for field, value in changes.items():
        data[field] = value
    with pytest.raises(gcsr.InputError, match=sentence):
        gcsr.condense(data, nodes=6, method="random")


@pytest.mark.parametrize(
    ("split", "accepted"),
    [("a", "an integer"), (1.0, "an integer"), (-1, r"0\.\.1"), (2, r"0\.\.1")],
)
def test_a_split_is_the_number_of_a_column(split: Any, accepted: str) -> None:
    data = DATA.clone()
    data.train_mask = torch.stack([data.train_mask, data.train_mask], 1)
    with pytest.raises(gcsr.InputError, match=rf"^split must be {accepted}, .*got {split!r}"):
        gcsr.load(data, split=split)
    assert gcsr.load(data, split=np.int64(1)).train.tolist()


def test_the_column_that_was_chosen_may_be_the_only_one_later() -> None:
    several, one = DATA.clone(), DATA.clone()
    for part in ("train_mask", "val_mask", "test_mask"):
        several[part] = torch.stack([DATA[part].roll(1), DATA[part]], 1)
    small = gcsr.condense(several, nodes=6, method="random", split=1)
    recipe = gcsr.TrainingRecipe(epochs=2)
    assert gcsr.evaluate(small, one, runs=1, recipe=recipe).graphs == 1


def test_a_split_with_other_names_is_not_ignored_silently() -> None:
    data = DATA.clone()
    data.train_idx, data.valid_mask = data.train_mask, data.val_mask
    del data.train_mask, data.val_mask
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gcsr.load(data)
    found = [str(one.message) for one in caught]
    for name, mask in (("train_idx", "train_mask"), ("valid_mask", "val_mask")):
        sentence = f"data.{name} is ignored: this part of the nodes is read from data.{mask}."
        assert sentence in found


@pytest.mark.parametrize("name", ["train_idx", "valid_index", "test_idx"])
@pytest.mark.parametrize("kind", [torch.as_tensor, list])
def test_node_ids_in_place_of_a_mask_are_refused(name: str, kind: Any) -> None:
    data = DATA.clone()
    part = name.partition("_")[0].replace("valid", "val")
    data[name] = kind(data[f"{part}_mask"].nonzero().ravel().tolist())
    gcsr.load(data)  # the mask says it
    del data[f"{part}_mask"]
    sentence = rf"^data\.{part}_mask must be given, got data\.{name}; .*index_to_mask\(.*{name}"
    with pytest.raises(gcsr.InputError, match=sentence):
        gcsr.load(data)


def test_other_objects_are_named() -> None:
    with pytest.raises(
        gcsr.InputError, match=r"got a PyG DataLoader; give the graph that it loads"
    ):
        gcsr.load(DataLoader([DATA, DATA]))
    with pytest.raises(gcsr.InputError, match=r"got the text 'digits'.*gcsr\.load\('digits'\)"):
        gcsr.condense("digits", nodes=20)
    with pytest.raises(gcsr.InputError, match=r"^recipe must be a gcsr\.TrainingRecipe\("):
        gcsr.evaluate_full(DATA, recipe={"epochs": 3})


def test_sparse_features_of_scipy_are_read() -> None:
    data = DATA.clone()
    data.x = sp.csr_matrix(DATA.x.numpy())
    data.edge_index = DATA.edge_index[:, (DATA.edge_index < NODES - 1).all(0)]  # one is isolated
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = gcsr.load(data)
    assert graph.num_nodes == NODES and torch.equal(graph.x, DATA.x)
    assert isinstance(data.x, sp.csr_matrix) and "num_nodes" not in data
    small = gcsr.pyg.Condense(nodes=6, method="random", device="cpu")(data)
    assert tuple(small.x.shape) == (6, DATA.x.shape[1])
    data.x = sp.csr_matrix(DATA.x.numpy() + 0j)
    with pytest.raises(gcsr.InputError, match=r"^data\.x must be real numbers, got complex"):
        gcsr.load(data)


def test_functions_without_options_of_reading_name_the_one_that_has_them() -> None:
    data = DATA.clone()
    data.edge_index = data.edge_index[:, ::2]
    sentence = r"give gcsr\.load\(graph, undirected=True\) to add the reverse edges\.$"
    small = gcsr.condense(DATA, nodes=6, method="random", device="cpu")
    for action in (
        lambda: gcsr.evaluate(small, data),
        lambda: gcsr.evaluate_full(data),
        lambda: gcsr.update(small, data),
        lambda: gcsr.robustness(data, nodes=6, method="random"),
        lambda: gcsr.Replay(10_000).observe(data),
        lambda: gcsr.Random(nodes=6).fit(data),
    ):
        with pytest.raises(gcsr.InputError, match=sentence):
            action()
    with pytest.raises(gcsr.InputError, match="; pass undirected=True to add"):
        gcsr.condense(data, nodes=6, method="random")


def test_a_graph_without_a_name_is_said_to_have_none() -> None:
    with pytest.raises(gcsr.InputError, match="for preset 'paper', got a graph without a name"):
        gcsr.condense(DATA, nodes=6, method="gcsr", preset="paper")
    small = gcsr.condense(DATA, nodes=6, method="random", device="cpu")
    name, why = known_dataset(small, None)
    assert name is None and why.startswith("The result was made from a graph without a name; give")


def test_a_known_dataset_without_files_says_what_to_name(tmp_path) -> None:
    small = gcsr.condense(DATA, nodes=6, method="random", device="cpu", name="cora")
    name, why = known_dataset(small, tmp_path)
    assert name is None and why == (
        "The files of cora are not here; name their folder with --root FOLDER or GCSR_DATA, or"
        " give --data cora to have them downloaded."
    )


def test_data_can_be_tuned() -> None:
    pytest.importorskip("optuna")
    found = gcsr.tune(
        DATA, nodes=9, method="gcsr", trials=1, device="cpu", **tiny("gcsr"), alpha="1,2"
    )
    assert len(found.trials) == 1
