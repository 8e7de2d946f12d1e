"""What was wrong with the readers of arrays once: each defect that an audit or the fuzzer found."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile_arrays import npy

from fuzz.target import survives
from fuzz.targets import TARGETS
from fuzz.targets.small import file_bytes, small_graph
from gcsr import Graph

MIB = 2**20
FOUND = Path(__file__).parent / "found"


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=f"{p.parent.name}/{p.name}") for p in sorted(FOUND.glob("*/*"))]
)
def test_what_the_fuzzer_found_is_a_sentence_now(path):
    survives(TARGETS[path.parent.name], path.read_bytes())


def npz(method: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """A valid graph file with some members replaced by these bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file_bytes(small_graph()))) as valid:
        content = {name: valid.read(name) for name in valid.namelist()}
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in {**content, **{f"{n}.npy": b for n, b in members.items()}}.items():
            changed = name.removesuffix(".npy") in members
            archive.writestr(zipfile.ZipInfo(name), data, method if changed else zipfile.ZIP_STORED)
    return made.getvalue()


def array(values: object) -> bytes:
    made = io.BytesIO()
    np.save(made, np.asarray(values))
    return made.getvalue()


HEADERS = {
    "a shape far beyond the bytes": npy("(8, 999999999)", b"1234"),
    "a shape of negative numbers": npy("(-8, -4)", b"\0" * 128),
    "a shape whose product overflows": npy(f"({2**62}, 4)", b""),
    "numbers of no width": npy("(8, 3)", b"", "'<U0'"),
    "an array inside each number": npy("(8,)", b"", "('<f4', (999999999,))"),
    "fields": npy("(8,)", b"\0" * 64, "[('a', '<f4'), ('b', '<f4')]"),
    "brackets without end": npy("(" * 3000 + "8", b""),
    "a header that is cut": b"\x93NUMPY\x01\x00\xff\xff",
    "another version": b"\x93NUMPY\x09\x00\x00\x00",
}


@pytest.mark.parametrize("what", HEADERS)
def test_headers_that_do_not_describe_their_bytes(refused, what):
    refused("graph-npz", npz(x=HEADERS[what]), r"graph\.npz must be an npz file")


def test_compression_without_bound_is_refused_before_it_is_unpacked(refused):
    bomb = npy("(8, 937500)", bytes(30_000_000))
    refused("graph-npz", npz(zipfile.ZIP_BZIP2, x=bomb), "must be compressed with deflate")


def test_members_that_share_their_bytes_are_counted_each(refused, tmp_path):
    """One megabyte of zeros, listed a hundred times: a directory that is larger than its content."""
    inner = npy("(300000000,)", bytes(1), "'|u1'")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.npy", inner)
        first = archive.infolist()[0]
        for number in range(100):
            other = zipfile.ZipInfo(f"b{number}.npy")
            other.header_offset, other.CRC = first.header_offset, first.CRC
            other.compress_size, other.file_size = first.compress_size, 300_000_000
            archive.filelist.append(other)
    refused("graph-npz", made.getvalue(), "may unfold to at most")


def test_a_member_twice_is_refused(refused):
    made = io.BytesIO(file_bytes(small_graph()))
    with zipfile.ZipFile(made, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("y.npy", array([0]))
    refused("graph-npz", made.getvalue(), "y is there twice")


@pytest.mark.parametrize("kind", [">f4", "<f2", "f16", ">i8", "?"])
def test_weights_of_any_number_type_are_read(tmp_path, kind):
    graph = small_graph()
    path = tmp_path / "g.npz"
    path.write_bytes(npz(adj_data=array(np.ones(graph.num_edges, kind))))
    assert Graph.from_npz(path).content_hash == graph.content_hash


@pytest.mark.parametrize("width", [10**9, 2**63 - 1, 2**64 - 1])
def test_sparse_features_do_not_unfold_without_bound(refused, width):
    graph = small_graph()
    sparse = {
        "x_indptr": array(np.arange(graph.num_nodes + 1)),
        "x_indices": array(np.zeros(graph.num_nodes, int)),
        "x_shape": array(np.array([graph.num_nodes, width], np.uint64)),
    }
    data = npz(**sparse)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        kept = {n.removesuffix(".npy"): archive.read(n) for n in archive.namelist()}
    del kept["x"]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in kept.items():
            archive.writestr(f"{name}.npy", content)
    refused("graph-npz", made.getvalue(), "may unfold to at most|must describe")


def test_features_that_a_reader_would_refuse_are_written_densely(tmp_path):
    """What is written can be read, however few entries there are."""
    x = np.zeros((8, 2_600_000), np.float32)
    x[0, 5] = 1
    graph = small_graph()
    ids = {name: getattr(graph, name) for name in ("train", "val", "test")}
    wide = Graph.from_arrays(x, graph.adjacency, graph.y, **ids)
    path = wide.to_npz(tmp_path / "g.npz")
    with zipfile.ZipFile(path) as archive:
        assert "x.npy" in archive.namelist()
    again = Graph.from_npz(path)
    assert torch.equal(again.x, wide.x)
