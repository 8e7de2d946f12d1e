"""The transform: what goes in and comes out, alone and among others."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
import torch
from torch_geometric.transforms import Compose, NormalizeFeatures

import gcsr
from gcsr import InputError
from gcsr.pyg import Condense
from helpers import planted_graph, with_other_test_labels

SETTINGS = {"method": "mtt", "iterations": 2, "experts": 1, "expert_epochs": 4, "max_start": 2}


def test_it_is_the_same_graph_as_the_function_makes():
    graph = planted_graph()
    transform = Condense(nodes=9, seed=4, name="planted", device="cpu", **SETTINGS)
    made = transform(graph.to_pyg())
    small = gcsr.condense(graph, nodes=9, seed=4, device="cpu", **SETTINGS)
    assert torch.equal(made.x, small.x) and torch.equal(made.y, small.y)
    rebuilt = torch.zeros(9, 9).index_put(tuple(made.edge_index), made.edge_weight)
    assert torch.equal(rebuilt, small.adjacency)
    assert transform.condensed_.provenance["dataset"]["content_hash"] == graph.content_hash
    assert gcsr.evaluate(transform.condensed_, graph, runs=1, device="cpu").nodes == 9


def test_masks_say_which_nodes_are_there_to_train():
    made = Condense(nodes=9, method="random")(planted_graph().to_pyg())
    assert made.train_mask.all() and made.train_mask.shape == (9,)
    assert not made.val_mask.any() and not made.test_mask.any()
    made = Condense(nodes=12, method="coarsening")(planted_graph().to_pyg())
    assert torch.equal(made.train_mask, made.y >= 0)
    assert 0 < made.train_mask.sum() < 12


def test_it_stands_among_other_transforms_and_leaves_the_data_alone():
    data = planted_graph(noise=0.1).to_pyg()
    data.x = data.x.abs()
    before = data.clone()
    made = Compose([NormalizeFeatures(), Condense(ratio=0.2, method="random", threshold=0.5)])(data)
    assert made.num_nodes == round(0.2 * data.num_nodes)
    torch.testing.assert_close(made.x.sum(1), torch.ones(made.num_nodes))
    assert torch.equal(data.x, before.x) and data.num_nodes == before.num_nodes


def test_test_labels_have_no_say():
    graph = planted_graph()
    ours, theirs = (
        Condense(nodes=9, device="cpu", **SETTINGS)(each.to_pyg())
        for each in (graph, with_other_test_labels(graph))
    )
    assert torch.equal(ours.x, theirs.x)


def test_it_has_the_options_of_the_function():
    graph = planted_graph()
    data = graph.to_pyg()
    data.cost = torch.full((graph.num_edges,), 2.0)
    transform = Condense(nodes=9, method="random", features="standardize", weight="cost")
    small = gcsr.condense(data, nodes=9, method="random", features="standardize", weight="cost")
    assert torch.equal(transform(data).x, small.x)
    assert small.provenance["dataset"]["features"] == "standardize"


def test_several_splits_and_inductive_graphs():
    data = planted_graph().to_pyg()
    for part in ("train", "val", "test"):
        mask = data[f"{part}_mask"]
        data[f"{part}_mask"] = torch.stack([mask.roll(1), mask], 1)
    transform = Condense(nodes=9, method="random", split=1, inductive=True)
    transform(data)
    told = transform.condensed_.provenance["dataset"]
    assert told["inductive"] is True
    assert told["content_hash"] == planted_graph().content_hash


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "exactly one of nodes and ratio"),
        ({"nodes": 0}, "nodes must be .*, got 0"),
        ({"nodes": 5, "threshold": "a"}, "threshold must be a number >= 0, got 'a'"),
        (
            {"nodes": 5, "method": gcsr.Random(nodes=5)},
            "method must be a name .* instance of random",
        ),
        ({"nodes": 5, "features": "log"}, "features must be one of .*, got 'log'"),
        ({"nodes": 5, "device": "gpu"}, "device must be auto, cpu or cuda, got 'gpu'"),
        ({"nodes": 5, "seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"nodes": 5, "preset": "papers"}, "preset must be one of .*, got 'papers'"),
        ({"nodes": 5, "method": "gone"}, "method must be one of .*, got 'gone'"),
        ({"nodes": 5, "method": "mtt", "experts": 0}, "experts must be .*, got 0"),
        ({"nodes": 5, "method": "random", "alpha": 2}, "alpha is not a setting of random"),
    ],
)
def test_what_cannot_work_is_said_before_any_data(settings, sentence):
    settings = {"method": "random"} | settings
    with pytest.raises(InputError, match=sentence):
        Condense(**settings)


def test_data_that_cannot_be_condensed_is_one_sentence():
    data = planted_graph().to_pyg()
    del data.y
    with pytest.raises(InputError, match=r"data\.y must be a tensor"):
        Condense(nodes=9, method="random")(data)
    with pytest.raises(InputError, match="got dict"):
        Condense(nodes=9, method="random")({})


def test_it_says_what_it_is_and_can_be_sent_elsewhere():
    transform = Condense(nodes=9, method="random", seed=3)
    assert repr(transform) == "Condense(nodes=9, method='random', seed=3)"
    again = pickle.loads(pickle.dumps(transform))
    data = planted_graph().to_pyg()
    assert torch.equal(again(data).x, transform(data).x)


def test_the_module_is_there_when_asked_for_and_not_before():
    program = (
        "import sys, gcsr; assert 'torch_geometric' not in sys.modules;"
        "print(gcsr.pyg.Condense(nodes=3))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "Condense(nodes=3)\n"), done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'gone'"):
        _ = gcsr.gone
