"""``gcsr convert``: whatever a graph comes from, the folder holds the graph that memory would hold."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from test_ogb_csv import TABLES

import gcsr
from gcsr import InputError
from gcsr.cli.app import main
from gcsr.data import edges as edge_blocks
from gcsr.data.edges import EdgeBlocks
from gcsr.datasets.convert import convert_tables, from_ogb, list_of
from helpers import planted_graph


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, object]:
    code = main(["convert", *map(str, words), "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    found: dict[str, object] = json.loads(captured.out)
    return found


@pytest.fixture
def lists(tmp_path: Path) -> dict[str, Path]:
    """A graph as separate files, its edges in one direction and some of them twice."""
    graph = planted_graph()
    upper = np.stack(np.triu(graph.adjacency.toarray()).nonzero(), 1)
    edges = np.concatenate([upper, upper[:9], [[4, 4]]])
    np.savetxt(tmp_path / "edges.csv", edges, "%d", ",")
    np.save(tmp_path / "edges.npy", edges)
    np.save(tmp_path / "x.npy", graph.x.numpy())
    np.savetxt(tmp_path / "y.csv", graph.y.numpy(), "%d")
    for split in ("train", "val", "test"):
        np.save(tmp_path / f"{split}.npy", getattr(graph, split).numpy()[::-1])
    return {
        "--node-features": tmp_path / "x.npy",
        "--node-labels": tmp_path / "y.csv",
        **{f"--{split}": tmp_path / f"{split}.npy" for split in ("train", "val", "test")},
    }


def words(lists: dict[str, Path]) -> list[str]:
    return [str(word) for pair in lists.items() for word in pair]


@pytest.mark.parametrize(
    "kind",
    ["csv", "npy", "named csv", pytest.param("parquet", marks=pytest.mark.needs("pyarrow"))],
)
@pytest.mark.parametrize("features", ["keep", "rows", "standardize"])
def test_lists_of_edges(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    lists: dict[str, Path],
    kind: str,
    features: str,
) -> None:
    source = tmp_path / f"edges.{kind.rsplit(maxsplit=1)[-1]}"
    if kind == "named csv":
        source.write_text("source,target\n" + source.read_text())
    if kind == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        sources, targets = np.load(tmp_path / "edges.npy").T
        parquet.write_table(arrow.table({"source": sources, "target": targets}), source)
    out = tmp_path / "folder"
    found = run(capsys, source, out, *words(lists), "--undirected", "--features", features)
    expected = planted_graph().scaled(features)  # type: ignore[arg-type]
    assert found["content_hash"] == expected.content_hash
    assert gcsr.load(out).content_hash == expected.content_hash
    assert not [path for path in out.iterdir() if path.suffix != ".npy" and path.suffix != ".json"]


def test_parquet_without_pyarrow(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    lists: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "edges.parquet").write_bytes(b"PAR1")
    words_given = [str(tmp_path / "edges.parquet"), str(tmp_path / "out"), *words(lists)]
    assert main(["convert", *words_given]) == 2
    assert "gcsr[parquet]" in capsys.readouterr().err


def test_weights(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, lists: dict[str, Path]
) -> None:
    graph = planted_graph(weighted=True)
    coo = graph.adjacency.tocoo()
    rows = np.stack([coo.row, coo.col, coo.data.astype(np.float64)], 1)
    np.savetxt(tmp_path / "edges.csv", rows, ["%d", "%d", "%.17g"], ",")
    found = run(capsys, tmp_path / "edges.csv", tmp_path / "folder", *words(lists))
    assert found["weighted"] is True
    loaded = gcsr.load(tmp_path / "folder")
    assert np.array_equal(loaded.adjacency.toarray(), graph.adjacency.toarray())


def test_npz_and_names(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    graph = planted_graph(inductive=True)
    graph.to_npz(tmp_path / "planted.npz")
    found = run(capsys, tmp_path / "planted.npz", tmp_path / "one", "--verify")
    assert (found["content_hash"], found["inductive"]) == (graph.content_hash, True)
    found = run(capsys, "digits", tmp_path / "two", "--name", "numbers")
    assert found["name"] == "numbers"
    assert found["content_hash"] == gcsr.load("digits").content_hash


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_ogb(capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str) -> None:
    for name, text in TABLES.items():
        path = tmp_path / "root" / "arxiv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    source = tmp_path / "root" / "arxiv"
    expected = gcsr.load("ogbn-arxiv", tmp_path / "root", features="keep")
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "any.zip", "w") as archive:
            for name in TABLES:
                archive.write(source / name, f"any/{name}")
        source = tmp_path / "any.zip"
    found = run(capsys, source, tmp_path / "out", "--undirected")
    assert found["content_hash"] == expected.content_hash


def test_ogb_without_test_nodes(tmp_path: Path) -> None:
    for name, text in {**TABLES, "split/time/test.csv.gz": ""}.items():
        path = tmp_path / "ogb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    tables = from_ogb(tmp_path / "ogb")
    graph = gcsr.load(convert_tables(tables, tmp_path / "out", name="ogb", undirected=True))
    assert graph.val.tolist() == [3]
    assert graph.test.tolist() == []


def test_verify_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, "digits", tmp_path / "digits")
    assert run(capsys, tmp_path / "digits", "--verify")["verified"] is True
    labels = tmp_path / "digits" / "labels.npy"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\1")
    assert main(["convert", str(tmp_path / "digits"), "--verify"]) == 2
    assert "labels.npy" in capsys.readouterr().err


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_edges_in_blocks_follow_the_rules_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weighted: bool, undirected: bool
) -> None:
    """Loops, zeros, repeats and missing reverse edges, in many blocks and buckets."""
    monkeypatch.setattr(edge_blocks, "BUCKETS", 7)
    rng = np.random.default_rng(3)
    sources, targets = rng.integers(40, size=(2, 500))
    # Multiples of 1/8 add up exactly in any order.
    weights = rng.integers(0, 9, 500) / 8 if weighted else None
    if not undirected:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
        weights = None if weights is None else np.concatenate([weights, weights])
    blocks = EdgeBlocks(tmp_path, 40)
    for part in np.array_split(np.arange(sources.size), 9):
        blocks.add(sources[part], targets[part], None if weights is None else weights[part])
    blocks.finish(undirected=undirected)
    expected = gcsr.data.edges.adjacency_from_edges(
        sources, targets, 40, weights, undirected=undirected
    )
    assert np.array_equal(np.load(tmp_path / "indptr.npy"), expected.indptr)
    assert np.array_equal(np.load(tmp_path / "indices.npy"), expected.indices)
    if weighted:
        assert np.array_equal(np.load(tmp_path / "weights.npy"), expected.data)
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}


def test_what_cannot_be_converted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, lists: dict[str, Path]
) -> None:
    def refused(*given: str | Path) -> str:
        assert main(["convert", *map(str, given)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error:") and error.count("\n") == 1
        return error

    edges, out = tmp_path / "edges.csv", tmp_path / "out"
    assert "directed" in refused(edges, out, *words(lists))
    assert "--node-features, --node-labels, --train, --val, --test are needed" in refused(
        edges, out
    )
    kept = {option: file for option, file in lists.items() if option != "--val"}
    assert "error: --val is needed with a list of edges" in refused(edges, out, *words(kept))
    assert "--train" in refused("digits", out, "--train", tmp_path / "train.npy")
    assert "OUT" in refused("digits")
    assert "no such file" in refused(edges, out, *words({**lists, "--val": tmp_path / "gone.npy"}))
    edges.write_text("0,1\n1,a\n")
    assert "edges.csv" in refused(edges, out, *words(lists), "--undirected")
    edges.write_text("0,1\n1,999\n")
    assert "999" in refused(edges, out, *words(lists), "--undirected")
    edges.write_text("0,1,2,3\n")
    assert "columns" in refused(edges, out, *words(lists), "--undirected")
    edges.write_text("0,1\n")
    overlapping = {**lists, "--val": lists["--train"]}
    assert "both" in refused(edges, out, *words(overlapping), "--undirected")
    assert "NaN" in _with_nan(refused, edges, out, lists)
    assert not out.exists() and not list(tmp_path.glob(".out*"))


def _with_nan(refused, edges: Path, out: Path, lists: dict[str, Path]) -> str:
    x = planted_graph().x.numpy().copy()
    x[3, 3] = np.nan
    np.save(lists["--node-features"], x)
    return refused(edges, out, *words(lists), "--undirected")


@pytest.mark.parametrize(
    "name", ["raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz"]
)
@pytest.mark.parametrize("how", ["cut", "noise", "text", "gone"])
def test_spoilt_archives(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, how: str
) -> None:
    packed = {table: gzip.compress(text.encode()) for table, text in TABLES.items()}
    spoilt = {"cut": packed[name][:-9], "noise": b"\x1f\x8b\x08" + b"?" * 40, "text": b"1,2"}
    packed = {t: spoilt.get(how, b"") if t == name else blob for t, blob in packed.items()}
    with zipfile.ZipFile(tmp_path / "any.zip", "w") as archive:
        for table, blob in packed.items():
            if (table, how) != (name, "gone"):
                archive.writestr(f"any/{table}", blob)
    assert main(["convert", str(tmp_path / "any.zip"), str(tmp_path / "out"), "--undirected"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error:") and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["any.zip"]


@pytest.mark.parametrize(
    "blob", [b"", b"PK\3\4", b"\x93NUMPY\1\0" + b"v\0" + b"{" * 118, b"PAR1PAR1"]
)
@pytest.mark.parametrize("suffix", ["npy", "parquet", "csv"])
def test_spoilt_lists(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    lists: dict[str, Path],
    suffix: str,
    blob: bytes,
) -> None:
    source = tmp_path / f"spoilt.{suffix}"
    source.write_bytes(blob)
    for given in (lists, {**lists, "--node-labels": source}):
        edges = source if given is lists else tmp_path / "edges.csv"
        words_given = [str(edges), str(tmp_path / "out"), *words(given)]
        assert main(["convert", *words_given, "--undirected"]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error:") and error.count("\n") == 1


def test_headers_cannot_promise_more_than_a_file_has(tmp_path: Path) -> None:
    head = repr({"descr": "<i8", "fortran_order": False, "shape": (10**13,)}).encode().ljust(117)
    path = tmp_path / "huge.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + b"v\0" + head + b"\n" + b"\0" * 64)
    with pytest.raises(InputError):
        list_of(path, "labels")
