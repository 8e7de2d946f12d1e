"""What was wrong with the readers of datasets once."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import time
import tracemalloc

import numpy as np
import pytest
from hostile_arrays import npy

from fuzz.targets import TARGETS
from fuzz.targets.datasets import _PLANETOID, _SAINT, _TABLES
from gcsr import InputError
from gcsr.datasets.pickles import read_array, read_neighbor_lists
from gcsr.datasets.readers import per_class_split

MIB = 2**20


def bench_file(**changes: object) -> bytes:
    with np.load(io.BytesIO(TARGETS["gnnbench"].seeds()[1])) as archive:
        arrays = dict(archive) | changes
    made = io.BytesIO()
    np.savez(made, **{name: value for name, value in arrays.items() if value is not None})
    return made.getvalue()


def _wrapped() -> np.ndarray:
    """Row pointers whose differences wrap around, so that each looks like a step forward."""
    with np.load(io.BytesIO(TARGETS["gnnbench"].seeds()[1])) as archive:
        pointers = archive["adj_indptr"].astype(np.int64)
    pointers[1:3] = 2**63 - 1, -(2**63) + 1
    return pointers


WRAPPED = _wrapped()


@pytest.mark.parametrize(
    "changes",
    [
        {"adj_shape": [-1, 5], "adj_indptr": np.zeros(0, int), "adj_indices": np.zeros(0, int)},
        {"attr_shape": np.array([110, 2**64 - 1], np.uint64)},
        {"attr_shape": [110, 10**12]},
        {"attr_matrix": np.array([["a"] * 3] * 110)},
        {"attr_matrix": np.ones(110)},
        {"adj_indptr": WRAPPED},
    ],
)
def test_benchmark_files_with_impossible_shapes(refused, changes):
    refused("gnnbench", bench_file(**changes), r"some\.npz: ")


@pytest.mark.slow
def test_a_class_per_node_is_split_in_one_look():
    start = time.perf_counter()
    train, val, test = per_class_split(np.arange(200_000))
    assert (train.size, val.size, test.size) == (200_000, 0, 0)
    assert time.perf_counter() - start < 20


def test_the_split_is_what_it_always_was():
    y = np.random.default_rng(3).integers(-1, 4, 500)
    rng = np.random.default_rng(0)
    expected = np.concatenate(
        [rng.permutation(np.flatnonzero(y == label))[:20] for label in range(4)]
    )
    np.testing.assert_array_equal(per_class_split(y)[0], np.sort(expected))


def saint(place: int, content: bytes) -> bytes:
    parts = _SAINT.parts(TARGETS["graphsaint"].seeds()[0])
    parts[place] = content
    return _SAINT.joined(parts)


@pytest.mark.parametrize(
    ("place", "content"),
    [
        (1, npy("(99999999999, 3)", b"")),
        (1, npy("(" * 3000 + "8", b"")),
        (1, npy("(0, 3)", b"")),
        (2, json.dumps({"0": 2**70}).encode()),
        (2, json.dumps({str(2**70): 0}).encode()),
        (2, b"[" * 100_000),
        (3, json.dumps({"tr": [2**70], "va": [1], "te": [2]}).encode()),
    ],
)
def test_graphsaint_files_with_impossible_numbers(refused, place, content):
    refused("graphsaint", saint(place, content), "feats.npy|class_map.json|role.json|adj_full.npz")


PICKLES = {
    "gigabytes in the memo": b"\x80\x02}r\xff\xff\xff\x07.",
    "tuples in tuples, as a key": b"\x80\x02})" + b"\x85" * 1_000_000 + b"]s.",
    "one list for many nodes": b"\x80\x02}](" + b"K\x01" * 3000 + b"eq\x000"
    + b"".join(struct.pack("<cH", b"M", i) + b"h\x00s" for i in range(3000)) + b".",
    "lists in lists": b"\x80\x02}K\x00]" + b"".join(
        b"q%c](h%ch%ce" % (i, i, i) for i in range(60)
    ) + b"s.",
    "sets": pickle.dumps({0: [{1}]}, protocol=4),
    "bytes that are not there": b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b".",
}  # fmt: skip


@pytest.mark.parametrize("what", PICKLES)
def test_pickles_that_claim_more_than_they_hold(tmp_path, what):
    path = tmp_path / "ind.cora.graph"
    path.write_bytes(PICKLES[what])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"ind\.cora\.graph: "):
            read_neighbor_lists(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


def test_a_shape_with_more_dimensions_than_arrays_have(tmp_path):
    """The product of so many so large numbers would take hours."""
    path = tmp_path / "f"
    content = pickle.dumps(np.zeros(8, np.uint8), protocol=3)
    big = b"\x8b" + struct.pack("<i", 10_000) + b"\x7f" * 10_000 + b"q\x40"
    path.write_bytes(content.replace(b"K\x08\x85", b"(" + big + b"h\x40" * 20_000 + b"t"))
    start = time.perf_counter()
    with pytest.raises(InputError):
        read_array(path)
    assert time.perf_counter() - start < 5


def test_planetoid_features_do_not_unfold_without_bound(refused):
    parts = _PLANETOID.parts(TARGETS["planetoid"].seeds()[1])
    wide = [part.replace(b"K\x03\x86", b"J\xff\xff\xff\x7f\x86") for part in parts]
    assert wide[:3] != parts[:3]
    refused("planetoid", _PLANETOID.joined(wide), "may unfold to at most|must have matching sizes")


def test_tables_that_unpack_without_bound(tmp_path):
    bomb = gzip.compress(b"1,1\n" * 10_000_000, 1)
    parts = [bomb, *(b"1\n" for _ in range(7))]
    with pytest.raises(InputError, match="unpacks to far more"):
        TARGETS["ogb-tables"].attempt(_TABLES.joined(parts), tmp_path)


def test_an_encrypted_archive_is_a_sentence(refused):
    data = bytearray(TARGETS["ogb-archive"].seeds()[0])
    for signature, place in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = data.find(signature)
        while at >= 0:
            data[at + place] |= 1
            at = data.find(signature, at + 1)
    refused("ogb-archive", bytes(data), "encrypted")
