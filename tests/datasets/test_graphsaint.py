"""GraphSAINT's four files, written here in their published layout and compared with PyG."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcsr import datasets
from gcsr.utils.errors import InputError

NODES = 12


def _write(folder: Path, *, directed: bool = False, unlabeled: tuple[int, ...] = (11,)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    upper = sp.csr_matrix(np.triu(rng.random((NODES, NODES)) < 0.3, 1))
    sp.save_npz(folder / "adj_full.npz", upper if directed else (upper + upper.T).tocsr())
    np.save(folder / "feats.npy", rng.normal(size=(NODES, 4)))
    classes = {str(node): node % 3 for node in range(NODES) if node not in unlabeled}
    (folder / "class_map.json").write_text(json.dumps(classes))
    roles = {"tr": [0, 1, 2, 3, 4, 5], "va": [6, 7, 8], "te": [9, 10]}
    (folder / "role.json").write_text(json.dumps(roles))
    return folder


@pytest.mark.parametrize(("name", "pyg_class"), [("flickr", "Flickr"), ("reddit", "Reddit2")])
def test_equals_pyg(tmp_path, name, pyg_class):
    from torch_geometric import datasets as pyg

    _write(tmp_path / pyg_class / "raw")
    theirs = getattr(pyg, pyg_class)(str(tmp_path / pyg_class))[0]
    ours = datasets.load(name, tmp_path, features="keep")
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    mine = ours.to_pyg()
    for split in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(mine[split], theirs[split])
    assert mine.edge_index.tolist() == theirs.edge_index.tolist()


@pytest.mark.parametrize("folder", ["Flickr/raw", "flickr/raw", "flickr", "GraphSAINT/flickr"])
def test_defaults_of_an_inductive_dataset(tmp_path, folder):
    _write(tmp_path / folder)
    graph = datasets.load("flickr", tmp_path)
    assert (graph.inductive, graph.feature_scaling, graph.name) == (True, "standardize", "flickr")
    rows = graph.x[graph.train]
    assert torch.allclose(rows.mean(0), torch.zeros(4), atol=1e-6)
    assert torch.allclose(rows.std(0, correction=0), torch.ones(4), atol=1e-5)
    assert datasets.load("flickr", tmp_path, inductive=False).inductive is False


def test_directed_files_need_the_callers_word(tmp_path):
    _write(tmp_path / "reddit", directed=True)
    with pytest.raises(InputError, match="undirected=True"):
        datasets.load("reddit", tmp_path)
    graph = datasets.load("reddit", tmp_path, undirected=True)
    assert (graph.adjacency != graph.adjacency.T).nnz == 0


def test_arxiv_in_graphsaint_files_is_made_undirected(tmp_path):
    _write(tmp_path / "ogbn-arxiv" / "raw", directed=True)
    graph = datasets.load("ogbn-arxiv", tmp_path)
    assert (graph.inductive, graph.name) == (False, "ogbn-arxiv")
    assert (graph.adjacency != graph.adjacency.T).nnz == 0


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "role.json",
            '{"tr": [0], "va": [1]}',
            "tr, va, te must be lists of node ids, but te is not",
        ),
        (
            "role.json",
            '{"tr": [0], "va": [1], "te": ["2"]}',
            "tr, va, te must be lists of node ids, but te is not",
        ),
        ("role.json", '{"tr": [0], "va": [1], "te": [99]}', "test must be node ids 0..11, got 99"),
        ("role.json", '{"tr": [0], "va": [0], "te": [1]}', "train and val must be disjoint"),
        ("role.json", "[1, 2]", "JSON object"),
        ("role.json", '{"tr": [', "not readable JSON"),
        ("class_map.json", '{"0": [0, 1]}', "one integer class"),
        ("class_map.json", '{"zero": 1}', "node ids"),
        ("class_map.json", '{"40": 1}', "node ids 0..11"),
        ("feats.npy", "no array", "must be an array, got a file that cannot be read"),
        ("adj_full.npz", "no archive", "must be an npz file|pickled"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, file, content, message):
    folder = _write(tmp_path / "flickr")
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        datasets.load("flickr", tmp_path)


def test_pickled_features_are_refused(tmp_path):
    folder = _write(tmp_path / "flickr")
    np.save(folder / "feats.npy", np.array([[None]] * NODES), allow_pickle=True)
    with pytest.raises(InputError, match=r"feats\.npy"):
        datasets.load("flickr", tmp_path)


def test_adjacency_of_another_size_is_refused(tmp_path):
    folder = _write(tmp_path / "flickr")
    sp.save_npz(folder / "adj_full.npz", sp.csr_matrix(np.eye(3)))
    with pytest.raises(InputError, match="12 x 12"):
        datasets.load("flickr", tmp_path)
