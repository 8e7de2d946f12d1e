"""Hostile pickles are refused and never run."""

from __future__ import annotations

import builtins
import collections
import os
import pickle
import pickletools
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gcsr.datasets.pickles import read_array, read_neighbor_lists
from gcsr.utils.errors import InputError


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


class _Calls:
    """Pickles as a call of ``function``."""

    def __init__(self, function: object, *args: object) -> None:
        self.call = (function, args)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call


def _payloads(marker: Path) -> dict[str, bytes]:
    code = f"open({str(marker)!r}, 'w').close()"
    shell = f"touch '{marker}'"
    return {
        "os.system": pickle.dumps(_Calls(os.system, shell), protocol=4),
        "os.system, protocol 0": pickle.dumps(_Calls(os.system, shell), protocol=0),
        "eval": pickle.dumps(_Calls(builtins.eval, code), protocol=4),
        "exec, python 2": b"c__builtin__\nexec\n(V" + code.encode() + b"\ntR.",
        "getattr": b"cbuiltins\ngetattr\n(cos\nVsystem\ntR(V" + shell.encode() + b"\ntR.",
        "dotted name": b"\x80\x04\x8c\x08builtins\x8c\x0elist.__class__\x93.",
        "dotted module": b"\x80\x04\x8c\x05numpy\x8c\x09os.system\x93(V"
        + shell.encode()
        + b"\ntR.",
        "numpy helper": b"cnumpy.testing._private.utils\nrunstring\n(V" + code.encode() + b"\n}tR.",
        "defaultdict of a call": b"\x80\x02ccollections\ndefaultdict\ncos\nabort\n\x85R.",
        "inside an array": pickle.dumps(
            np.array([_Calls(os.system, shell)], dtype=object), protocol=4
        ),
        "inside a dictionary": pickle.dumps({0: [_Calls(os.system, shell)]}, protocol=2),
        "state of a record": pickle.dumps(
            {0: _Calls(os.system, shell), "data": np.ones(2)}, protocol=4
        ),
        "persistent id": b"Psystem\n.",
        "instance opcode": b"(Vtouch\nios\nsystem\n.",
        "truncated": pickle.dumps(np.ones(9), protocol=4)[:-20],
        "empty": b"",
        "text": b"not a pickle at all",
    }


@pytest.mark.parametrize("reader", [read_array, read_neighbor_lists])
@pytest.mark.parametrize("attack", list(_payloads(Path("x"))))
def test_hostile_pickle_is_refused_and_does_not_run(tmp_path, attack, reader):
    marker = tmp_path / "ran"
    path = _written(tmp_path / "ind.cora.graph", _payloads(marker)[attack])
    with pytest.raises(InputError, match=r"ind\.cora\.graph"):
        reader(path)
    assert not marker.exists()


def test_payloads_are_real(tmp_path):
    """Guards the test above: an ordinary unpickler does run them."""
    marker = tmp_path / "ran"
    pickle.loads(_payloads(marker)["os.system"])
    assert marker.exists()
    marker.unlink()
    pickle.loads(_payloads(marker)["eval"])
    assert marker.exists()


@pytest.mark.parametrize(
    "name",
    ["collections defaultdict", "builtins list", "numpy dtype", "scipy.sparse.csr csr_matrix"],
)
def test_admitted_classes_cannot_be_changed_by_a_pickle(tmp_path, name):
    module, attribute = name.split()
    # GLOBAL, then BUILD with (None, {"args": 1}): sets attributes of whatever the global is.
    content = f"c{module}\n{attribute}\n(N(dVargs\nI1\nstb.".encode()
    assert [opcode.name for opcode, _, _ in pickletools.genops(content)][-2:] == ["BUILD", "STOP"]
    with pytest.raises(InputError, match="refused"):
        read_array(_written(tmp_path / "f", content))


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int32).reshape(3, 4),
        np.asfortranarray(np.arange(12, dtype=np.float64).reshape(3, 4)),
        np.arange(4, dtype=">f4"),
        np.array([[True, False]]),
        np.empty((0, 3), dtype=np.float32),
    ],
)
def test_arrays_come_back_as_written(tmp_path, array, protocol):
    read = read_array(_written(tmp_path / "f", pickle.dumps(array, protocol=protocol)))
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


def test_sparse_matrix_comes_back_as_written(tmp_path):
    matrix = sp.random(7, 5, density=0.4, format="csr", random_state=0, dtype=np.float32)
    content = pickle.dumps(sp.csr_matrix(matrix), protocol=4)
    read = read_array(_written(tmp_path / "f", content))
    assert isinstance(read, sp.csr_array)
    np.testing.assert_array_equal(read.toarray(), matrix.toarray())


@pytest.mark.parametrize("damage", ["index", "pointer", "shape", "missing"])
def test_inconsistent_sparse_matrix_is_refused(tmp_path, damage):
    matrix = sp.csr_matrix(np.eye(4, dtype=np.float32))
    if damage == "index":
        matrix.indices[0] = 1000
    elif damage == "pointer":
        matrix.indptr[-1] = 10**6
    elif damage == "shape":
        matrix._shape = (4, -4)
    else:
        del matrix.indices
    with pytest.raises(InputError, match="f: "):
        read_array(_written(tmp_path / "f", pickle.dumps(matrix, protocol=4)))


def test_array_with_a_lying_shape_is_refused(tmp_path):
    content = pickle.dumps(np.zeros(8, dtype=np.uint8), protocol=3)
    assert content.count(b"K\x08\x85") == 1
    lying = content.replace(b"K\x08\x85", b"K\x09\x85")
    with pytest.raises(InputError, match="shape"):
        read_array(_written(tmp_path / "f", lying))


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1 + 2j]), np.array([None])])
def test_array_of_other_things_than_numbers_is_refused(tmp_path, array):
    with pytest.raises(InputError, match="f: "):
        read_array(_written(tmp_path / "f", pickle.dumps(array, protocol=4)))


def test_neighbor_lists(tmp_path):
    lists = collections.defaultdict(list, {0: [1, 2], 1: [0], 2: [0], 5: []})
    for protocol in (2, 4):
        edges = read_neighbor_lists(_written(tmp_path / "f", pickle.dumps(lists, protocol)))
        assert edges.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]


@pytest.mark.parametrize(
    "content", [{0: ["a"]}, {0: [[1]]}, {0: [1.5]}, {"a": [1]}, {0: 1}, [1], {0: [2**70]}]
)
def test_neighbor_lists_of_anything_else_are_refused(tmp_path, content):
    with pytest.raises(InputError, match="node ids"):
        read_neighbor_lists(_written(tmp_path / "f", pickle.dumps(content, protocol=2)))
