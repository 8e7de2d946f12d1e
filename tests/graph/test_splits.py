"""Splits and labels that are not complete, and graphs that are changed after they were made."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import gcsr
from gcsr import Graph, InputError, InputWarning, View
from helpers import planted_graph

QUICK = {"runs": 1, "recipe": gcsr.TrainingRecipe(epochs=2), "device": "cpu"}


def _data(**changes):
    data = planted_graph().to_pyg()
    for name, value in changes.items():
        if value is None:
            del data[name]
        else:
            data[name] = value
    return data


def test_without_test_nodes_condensing_works_and_testing_is_refused(tmp_path):
    whole, graph = planted_graph(), Graph.from_pyg(_data(test_mask=None))
    assert graph.test.numel() == 0 and graph.notes == ()
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    assert torch.equal(small.x, gcsr.condense(whole, nodes=6, method="random", device="cpu").x)
    for call in (lambda: gcsr.evaluate(small, graph, **QUICK), lambda: View(graph).test()):
        with pytest.raises(
            InputError, match=r"test must have at least one labeled node .*test_mask"
        ):
            call()
    assert gcsr.load(graph.to_npz(tmp_path / "g.npz")).content_hash == graph.content_hash
    assert gcsr.load(graph.to_folder(tmp_path / "g")).content_hash == graph.content_hash


def test_without_validation_nodes_some_training_nodes_are_held_out():
    whole = planted_graph(train_per_class=11)
    data = whole.to_pyg()
    del data.val_mask
    with pytest.warns(
        InputWarning, match="val is not given: 6 of 33 training nodes, always the same"
    ):
        graph = Graph.from_pyg(data)
    assert torch.equal(torch.cat([graph.train, graph.val]).sort().values, whole.train)
    assert graph.y[graph.val].bincount().tolist() == [2, 2, 2]
    assert torch.equal(graph.test, whole.test)
    with pytest.warns(InputWarning):
        assert Graph.from_pyg(data).content_hash == graph.content_hash
    small = gcsr.condense(graph, nodes=6, method="random")
    assert small.provenance["notes"][0].startswith("val is not given: 6 of 33")


def test_validation_nodes_that_cannot_be_used_are_not_said_to_be_missing():
    whole = planted_graph()
    unlabeled = whole.y.clone()
    unlabeled[whole.val] = -1
    none = torch.zeros(whole.num_nodes, dtype=torch.bool)
    for changes, sentence in (
        ({"val_mask": none}, "val is empty: 3 of 21 training nodes"),
        ({"y": unlabeled}, "val has no labeled nodes: 3 of 21 training nodes"),
    ):
        with pytest.warns(InputWarning) as caught:
            Graph.from_pyg(_data(**changes))
        assert str(caught[-1].message).startswith(sentence)


def test_one_training_node_of_a_class_is_not_held_out(make):
    with pytest.warns(InputWarning, match="1 of 4 training nodes"):
        graph = make(train=[0, 1, 2, 3], val=[])
    assert graph.train.numel() == 3 and set(graph.y[graph.train].tolist()) == {0, 1, 2}


def test_without_any_split_every_labeled_node_is_a_training_node():
    y = planted_graph().y.clone()
    y[:5] = -1
    with pytest.warns(InputWarning) as caught:
        graph = Graph.from_pyg(_data(y=y, train_mask=None, val_mask=None, test_mask=None))
    assert "train is not given: all 61 labeled nodes" in str(caught[0].message)
    assert graph.train.numel() + graph.val.numel() == 61 and not graph.test.numel()
    assert caught[0].filename == __file__


def test_labels_that_start_at_one_are_kept_and_said():
    data = _data(y=planted_graph().y + 1)
    with pytest.warns(InputWarning, match="no node has class 0, which stays an empty class"):
        graph = Graph.from_pyg(data)
    small = gcsr.condense(graph, nodes=6, method="random", device="cpu")
    assert graph.num_classes == 4 and set(small.y.tolist()) == {1, 2, 3}
    assert gcsr.evaluate(small, graph, **QUICK).nodes == 6


def test_classes_without_training_nodes_are_said(tmp_path):
    whole = planted_graph()
    data = whole.to_pyg()
    data.train_mask &= data.y != 2
    unseen = [int((whole.y[part] == 2).sum()) for part in (whole.val, whole.test)]
    sentence = (
        f"class 2 has no training nodes: it cannot be learned, and {unseen[0]} validation"
        f" nodes and {unseen[1]} test nodes have it"
    )
    with pytest.warns(InputWarning, match=sentence):
        graph = Graph.from_pyg(data)
    assert graph.notes == (sentence,)
    for path in (graph.to_npz(tmp_path / "g.npz"), graph.to_folder(tmp_path / "g")):
        with pytest.warns(InputWarning, match=sentence):
            assert gcsr.load(path).notes == (sentence,)
    with warnings.catch_warnings():  # graphs that are made from it were warned of
        warnings.simplefilter("error")
        graph.subgraph(graph.y != 0)
    # Nodes that are in no part are not asked for.
    data.val_mask &= data.y != 2
    data.test_mask &= data.y != 2
    assert Graph.from_pyg(data).notes == ()


def test_of_many_classes_without_training_nodes_five_are_named():
    data = _data(y=torch.arange(66) % 9)
    data.train_mask = data.y < 2
    data.val_mask, data.test_mask = data.y == 0, data.y > 1
    data.train_mask &= ~data.val_mask
    data.train_mask[0], data.val_mask[0] = True, False
    with pytest.warns(InputWarning) as caught:
        Graph.from_pyg(data)
    assert str(caught[0].message) == (
        "classes 2, 3, 4, 5, 6 and 2 more have no training nodes: they cannot be learned, and 50 test"
        " nodes have them."
    )


def test_numbers_that_are_no_class_are_said():
    whole = planted_graph()
    with pytest.warns(InputWarning) as caught:
        graph = Graph.from_pyg(_data(y=whole.y * 10))
    (sentence,) = graph.notes
    assert [str(one.message) for one in caught] == [f"{sentence}."]
    advice = "torch.unique(y, return_inverse=True)[1] numbers classes without gaps"
    assert sentence == f"18 of 21 classes have no node (first: 1); {advice}"
    arrays = {part: getattr(whole, part) for part in ("train", "val", "test")}
    edges = whole.adjacency
    with warnings.catch_warnings():  # a number that was given is meant
        warnings.simplefilter("error")
        Graph.from_arrays(whole.x, edges, whole.y * 10, num_classes=40, **arrays)
    stray = whole.y.clone()
    stray[whole.test[0]] = 100_000
    with pytest.raises(InputError) as refused:
        Graph.from_arrays(whole.x, edges, stray, **arrays)
    node = int(whole.test[0])
    assert str(refused.value) == (
        f"y must be classes 0..65, as there are 66 nodes, got 100000 (node {node}); {advice},"
        " and Graph.from_arrays(..., num_classes=100001) keeps the numbers."
    )
    with pytest.warns(InputWarning, match="class 100000 has no training nodes"):
        Graph.from_arrays(whole.x, edges, stray, num_classes=100_001, **arrays)


@pytest.mark.parametrize("missing", [-1, np.nan])
def test_nodes_without_a_label_leave_their_part(missing):
    whole = planted_graph()
    y = whole.y.double()
    parts = {part: int(getattr(whole, part)[0]) for part in ("train", "val", "test")}
    y[list(parts.values())] = missing
    y = y if np.isnan(missing) else y.long()
    with pytest.warns(InputWarning, match="train: 1 node without a label left out"):
        graph = Graph.from_pyg(_data(y=y))
    assert len(graph.notes) == 3
    for part, node in parts.items():
        assert getattr(graph, part).numel() == getattr(whole, part).numel() - 1
        assert graph.y[node] == -1
    assert gcsr.condense(graph, nodes=6, method="random").num_nodes == 6


# -- numbers of NumPy -------------------------------------------------------------------------------


def test_numbers_of_numpy_are_settings(tmp_path):
    graph = planted_graph()
    asked = {"nodes": 6, "seed": 1, "epochs": 3}
    numbers = {name: np.int64(value) for name, value in asked.items()}
    small = gcsr.condense(graph, method="herding", **numbers)
    assert torch.equal(small.x, gcsr.condense(graph, method="herding", **asked).x)
    assert gcsr.CondensedGraph.load(small.save(tmp_path / "s.safetensors")).provenance["seed"] == 1
    assert gcsr.GCSR(ratio=np.float64(0.5)) == gcsr.GCSR(ratio=0.5)
    made = gcsr.condense_many(graph, nodes=6, seeds=np.arange(2), method="random")
    assert [type(one.provenance["seed"]) for one in made] == [int, int]
    recipe = gcsr.TrainingRecipe(epochs=np.int64(2), lr=np.float32(0.5))
    scores = gcsr.evaluate(small, graph, runs=np.int64(1), seed=np.int64(0), recipe=recipe)
    assert type(scores.runs) is int and scores.recipe["lr"] == 0.5
    with pytest.raises(InputError, match=r"nodes must be an integer >= 1, got 6\.5"):
        gcsr.Random(nodes=np.float64(6.5))


# -- changes in place -------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["x", "y", "train"])
def test_a_change_in_place_is_noticed(field):
    graph = planted_graph()
    getattr(graph, field)[0] += 1
    for call in (lambda: gcsr.condense(graph, nodes=6, method="random"), lambda: View(graph)):
        with pytest.raises(
            InputError, match=r"graph must not be changed in place.*dataclasses.replace"
        ):
            call()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_a_copy_that_is_changed_in_place_is_refused(make, copied):
    graph = copied(make())
    gcsr.View(graph)
    graph.x[0] = 5
    with pytest.raises(InputError, match="graph must not be changed in place"):
        gcsr.View(graph)


def test_what_was_changed_before_and_copies_are_fine():
    x = planted_graph().x.clone()
    x[0] = 7
    graph = replace(planted_graph(), x=x)
    with torch.inference_mode():
        inference = replace(graph, x=x.clone())
    for fine in (graph, inference, pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert View(fine).source.content_hash == graph.content_hash
