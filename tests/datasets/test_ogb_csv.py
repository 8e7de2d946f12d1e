"""OGB's gzipped tables, as a folder and as the archive, written here in their published layout."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gcsr import datasets
from gcsr.utils.errors import InputError

TABLES = {
    "raw/edge.csv.gz": "0,1\n1,0\n1,2\n3,2\n2,2\n4,0\n4,0\n",
    "raw/node-feat.csv.gz": "".join(f"{i}.5,-{i}.25,1e-3\n" for i in range(6)),
    "raw/node-label.csv.gz": "0\n1\n2\n0\n1\n2\n",
    "raw/num-node-list.csv.gz": "6\n",
    "raw/num-edge-list.csv.gz": "7\n",
    "split/time/train.csv.gz": "0\n1\n2\n",
    "split/time/valid.csv.gz": "3\n",
    "split/time/test.csv.gz": "5\n4\n",
}


def _folder(folder: Path, tables: dict[str, str]) -> None:
    for name, text in tables.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(text.encode()))


def _archive(path: Path, tables: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("arxiv/RELEASE_v1.txt", "")
        for name, text in tables.items():
            archive.writestr(f"arxiv/{name}", gzip.compress(text.encode()))


@pytest.fixture(params=["ogbn_arxiv", "arxiv", "ogbn_arxiv/arxiv.zip", "arxiv.zip"])
def write(request, tmp_path):
    def written(tables: dict[str, str]) -> Path:
        place = tmp_path / request.param
        (_archive if place.suffix == ".zip" else _folder)(place, tables)
        return tmp_path

    return written


def test_reads_folder_and_archive(write):
    root = write(TABLES)
    graph = datasets.load("ogbn-arxiv", root, features="keep")
    assert graph.x.tolist() == [pytest.approx([i + 0.5, -(i + 0.25), 1e-3]) for i in range(6)]
    assert graph.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert (graph.train.tolist(), graph.val.tolist(), graph.test.tolist()) == (
        [0, 1, 2],
        [3],
        [4, 5],
    )
    expected = np.zeros((6, 6))
    for a, b in [(0, 1), (1, 2), (2, 3), (0, 4)]:
        expected[a, b] = expected[b, a] = 1
    assert np.array_equal(graph.adjacency.toarray(), expected)
    assert datasets.load("ogbn-arxiv", root).feature_scaling == "standardize"
    assert (graph.name, graph.inductive) == ("ogbn-arxiv", False)


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("raw/num-node-list.csv.gz", "7\n", "must have one graph of"),
        ("raw/num-edge-list.csv.gz", "8\n", "must have one graph of"),
        ("raw/edge.csv.gz", "0,1\n2\n", "edge.csv.gz: not a readable table"),
        ("raw/edge.csv.gz", "0,a\n", "edge.csv.gz: not a readable table"),
        ("raw/node-label.csv.gz", "0.5\n" * 6, "node-label.csv.gz: not a readable table"),
        ("raw/node-label.csv.gz", "0,1\n" * 6, "one class per node"),
        ("raw/node-feat.csv.gz", "", "node-feat.csv.gz: not a readable table"),
        ("raw/node-feat.csv.gz", "nan,1,1\n" * 6, "NaN"),
        ("split/time/test.csv.gz", "6\n", "test must be node ids 0..5, got 6"),
    ],
)
def test_damaged_table_is_one_sentence(write, table, text, message):
    root = write(TABLES | {table: text})
    with pytest.raises(InputError, match=message):
        datasets.load("ogbn-arxiv", root)


def test_truncated_gzip_is_one_sentence(tmp_path):
    _folder(tmp_path / "ogbn_arxiv", TABLES)
    path = tmp_path / "ogbn_arxiv/raw/node-feat.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"node-feat\.csv\.gz: not a readable"):
        datasets.load("ogbn-arxiv", tmp_path)


def test_archive_without_a_table_is_one_sentence(tmp_path):
    tables = {name: text for name, text in TABLES.items() if "label" not in name}
    _archive(tmp_path / "arxiv.zip", tables)
    with pytest.raises(InputError, match=r"node-label\.csv\.gz is missing"):
        datasets.load("ogbn-arxiv", tmp_path)


def test_file_that_is_no_archive_is_one_sentence(tmp_path):
    (tmp_path / "arxiv.zip").write_bytes(b"PK but not a zip")
    with pytest.raises(InputError, match="not a readable zip"):
        datasets.load("ogbn-arxiv", tmp_path)


def test_published_counts_of_the_real_structure(shared_data):
    """The catalogue's edge count is that of the real graph with reverse edges."""
    from gcsr.data.edges import clean_adjacency
    from gcsr.data.npz import checked_csr, load_arrays

    path = shared_data / "graphs" / "ogbn-arxiv.structure.npz"
    if not path.is_file():
        pytest.skip(f"{shared_data} does not hold the structure of ogbn-arxiv")
    arrays = load_arrays(path)
    nodes = len(arrays["y"])
    adjacency = clean_adjacency(
        checked_csr(path, "adj", arrays, (nodes, nodes)), weighted=False, undirected=True
    )
    info = next(info for info in datasets.catalogue() if info.name == "ogbn-arxiv")
    assert (info.nodes, info.edges) == (nodes, adjacency.nnz)
    assert info.classes == arrays["y"].max() + 1
