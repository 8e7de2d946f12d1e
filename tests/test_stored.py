"""What a file holds: the smaller layout, half precision, and nothing hostile."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save

from gcsr import CondensedGraph, InputError, InputWarning
from gcsr.data.condensed import MOST_SPARSE_NODES

N, D = 20, 3


def random_graph(adjacency: torch.Tensor, *, half: bool = False) -> CondensedGraph:
    x = torch.randn(N, D, generator=torch.Generator().manual_seed(0))
    small = CondensedGraph(x, adjacency, torch.arange(N) % 4, 4, {"dataset": {"name": "some"}})
    return small.stored_as("float16") if half else small


def full() -> torch.Tensor:
    return torch.rand(N, N, generator=torch.Generator().manual_seed(1)) + 0.1


def ring() -> torch.Tensor:
    """Not symmetric on purpose: the layout does not rely on it."""
    return 0.3 * torch.eye(N).roll(1, 0) + 0.7 * torch.eye(N).roll(3, 0)


def tensor_names(path) -> set[str]:
    with safe_open(path, framework="pt") as archive:
        return set(archive.keys())


def test_a_file_is_known_by_what_it_holds(tmp_path):
    small = random_graph(full())
    path = small.save(tmp_path / "small.safetensors").rename(tmp_path / "small.npz")
    assert torch.equal(CondensedGraph.load(path).x, small.x)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("make", [full, ring, lambda: torch.eye(N), lambda: torch.zeros(N, N)])
def test_round_trip_in_the_smaller_layout(tmp_path, make, half):
    small = random_graph(make(), half=half)
    path = small.save(tmp_path / "a.safetensors")
    again = CondensedGraph.load(path)
    for part in ("x", "adjacency", "y"):
        assert torch.equal(getattr(small, part), getattr(again, part))
    assert again.x.dtype == again.adjacency.dtype == torch.float32
    assert again.half is half
    sparse = make is not full
    assert ("adjacency.values" in tensor_names(path)) is sparse
    described = again.describe()
    assert described["stored_adjacency"] == ("sparse" if sparse else "dense")
    assert described["stored_dtype"] == ("float16" if half else "float32")
    # The same bytes when it is saved again.
    assert again.save(tmp_path / "b.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("make", [full, ring])
def test_stored_bytes_are_those_of_the_tensors_in_the_file(tmp_path, make, half):
    small = random_graph(make(), half=half)
    blob = small.save(tmp_path / "a.safetensors").read_bytes()
    header = int.from_bytes(blob[:8], "little")
    assert small.stored_bytes == len(blob) - 8 - header
    number = 2 if half else 4
    entries = N * N * number if make is full else 2 * N * (number + 2) + 4 * (N + 1)
    assert small.stored_bytes == N * D * number + entries + 8 * N


def test_a_dense_file_is_what_it_always_was(tmp_path):
    path = random_graph(full()).save(tmp_path / "a.safetensors")
    with safe_open(path, framework="pt") as archive:
        assert archive.metadata()["format"] == "gcsr-condensed-graph/1"


def test_files_of_the_first_format_load(tmp_path):
    path = tmp_path / "old.safetensors"
    tensors = {"x": torch.ones(N, D), "adjacency": torch.eye(N), "y": torch.zeros(N).long()}
    told = {"format": "gcsr-condensed-graph/1", "num_classes": "2", "provenance": "{}"}
    path.write_bytes(save(tensors, told))
    assert torch.equal(CondensedGraph.load(path).adjacency, torch.eye(N))


def words(n: int = N, width: int = 50) -> torch.Tensor:
    """Bag-of-words features: one in ten is not zero, and one zero is negative."""
    x = torch.rand(n, width, generator=torch.Generator().manual_seed(2))
    x = x * (x > 0.9)
    x[0, 0] = -0.0
    return x


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("make", [full, ring])
@pytest.mark.parametrize("width", [50, 2**15 + 1])
def test_features_with_many_zeros_are_stored_sparsely(tmp_path, make, half, width):
    small = CondensedGraph(words(width=width), make(), torch.arange(N) % 4, 4)
    small = small.stored_as("float16") if half else small
    path = small.save(tmp_path / "a.safetensors")
    again = CondensedGraph.load(path)
    for part in ("x", "adjacency", "y"):
        before, after = (getattr(one, part).numpy().tobytes() for one in (small, again))
        assert before == after
    assert again.half is half and again.describe()["stored_features"] == "sparse"
    assert ("adjacency.values" in tensor_names(path)) is (make is ring)
    blob = path.read_bytes()
    assert small.stored_bytes == len(blob) - 8 - int.from_bytes(blob[:8], "little")
    number = 2 if half else 4
    assert small.stored_bytes < number * (small.x.numel() / 2 + N * N) + 8 * N
    assert again.save(tmp_path / "b.safetensors").read_bytes() == blob
    with safe_open(path, framework="pt") as archive:
        assert archive.metadata()["format"] == "gcsr-condensed-graph/3"


def test_a_file_of_a_newer_version_is_told_so(tmp_path):
    with pytest.raises(InputError, match="got one of a newer version"):
        CondensedGraph.load(written(tmp_path, sparse_parts(), "gcsr-condensed-graph/4"))


def test_saving_more_bytes_than_the_original_warns(tmp_path):
    small = replace(random_graph(full()), provenance={"bytes": {"original": 100}})
    with pytest.warns(InputWarning, match="the graph that it replaces, stored sparsely, 100:"):
        small.save(tmp_path / "a.safetensors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace(small, provenance={"bytes": {"original": 10**6}}).save(tmp_path / "a.safetensors")


def test_rounding_is_the_nearest_number_and_is_not_done_twice():
    small = random_graph(full())
    rounded = small.stored_as("float16")
    assert not torch.equal(rounded.x, small.x)
    torch.testing.assert_close(rounded.x, small.x, rtol=2**-11, atol=0)
    torch.testing.assert_close(rounded.adjacency, small.adjacency, rtol=2**-11, atol=0)
    assert torch.equal(rounded.stored_as("float16").x, rounded.x)
    assert rounded.stored_as("float32").half is False
    assert rounded.provenance == small.provenance


def test_double_precision_can_be_stored_in_single():
    small = CondensedGraph(torch.rand(4, 2).double(), torch.eye(4).double(), torch.arange(4), 4)
    assert small.stored_as("float32").x.dtype == torch.float32


def test_what_float16_cannot_hold_is_said():
    small = CondensedGraph(torch.full((2, 2), 7e4), torch.eye(2), torch.arange(2), 2)
    with pytest.raises(InputError, match=r"dtype must be float32, .* float16 ends at 65504"):
        small.stored_as("float16")
    with pytest.raises(InputError, match=r"dtype must be one of .*, got 'int8'"):
        small.stored_as("int8")
    with pytest.raises(InputError, match="x must fit float16"):
        CondensedGraph(torch.full((2, 2), 0.1), torch.eye(2), torch.arange(2), 2, half=True)


# -- files from strangers ----------------------------------------------------------------------------


def sparse_parts(**changes) -> dict[str, torch.Tensor]:
    values = {
        "x": torch.ones(3, 2),
        "y": torch.tensor([0, 1, 1]),
        "adjacency.pointers": torch.tensor([0, 2, 2, 3], dtype=torch.int32),
        "adjacency.columns": torch.tensor([0, 2, 1], dtype=torch.int16),
        "adjacency.values": torch.tensor([0.5, 1.5, 2.5]),
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def written(tmp_path, tensors, kind="gcsr-condensed-graph/2", **more):
    path = tmp_path / "file.safetensors"
    told = {"format": kind, "num_classes": "2", "provenance": json.dumps({}), **more}
    path.write_bytes(save(tensors, told))
    return path


def test_the_file_that_the_broken_ones_come_from_is_fine(tmp_path):
    small = CondensedGraph.load(written(tmp_path, sparse_parts()))
    assert small.adjacency.tolist() == [[0.5, 0, 1.5], [0, 0, 0], [0, 2.5, 0]]


def ints(values, dtype) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


MANY = MOST_SPARSE_NODES + 1
HOSTILE = {
    "column too large": {"adjacency.columns": ints([0, 3, 1], torch.int16)},
    "negative column": {"adjacency.columns": ints([-1, 2, 1], torch.int16)},
    "column twice": {"adjacency.columns": ints([2, 2, 1], torch.int16)},
    "columns descend": {"adjacency.columns": ints([2, 0, 1], torch.int16)},
    "wide columns": {"adjacency.columns": ints([0, 2, 1], torch.int64)},
    "pointers too few": {"adjacency.pointers": ints([0, 3], torch.int32)},
    "pointers start late": {"adjacency.pointers": ints([1, 2, 2, 3], torch.int32)},
    "pointers end late": {"adjacency.pointers": ints([0, 2, 2, 2**31 - 1], torch.int32)},
    "pointers end early": {"adjacency.pointers": ints([0, 1, 1, 2], torch.int32)},
    "pointers descend": {"adjacency.pointers": ints([0, 3, 2, 3], torch.int32)},
    "pointers negative": {"adjacency.pointers": ints([0, -(2**31), 2, 3], torch.int32)},
    "pointers in two dimensions": {"adjacency.pointers": ints([[0, 2], [2, 3]], torch.int32)},
    "values too few": {"adjacency.values": torch.ones(2)},
    "values in two dimensions": {"adjacency.values": torch.ones(3, 1)},
    "integer values": {"adjacency.values": torch.ones(3, dtype=torch.int32)},
    "NaN": {"adjacency.values": torch.tensor([0.5, torch.nan, 1])},
    "infinity in half": {"adjacency.values": torch.tensor([0.5, torch.inf, 1]).half()},
    "negative value": {"adjacency.values": torch.tensor([0.5, -1.0, 1])},
    "scalar x": {"x": torch.tensor(1.0)},
    "no values": {"adjacency.values": None},
    "both layouts": {"adjacency": torch.eye(3)},
    # Kilobytes that would unfold to gigabytes, were they allowed to.
    "too many nodes": {
        "x": torch.ones(MANY, 1, dtype=torch.float16),
        "y": torch.zeros(MANY).long(),
        "adjacency.pointers": torch.zeros(MANY + 1, dtype=torch.int32),
        "adjacency.columns": torch.zeros(0, dtype=torch.int16),
        "adjacency.values": torch.zeros(0),
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_one_sentence(tmp_path, kind):
    path = written(tmp_path, sparse_parts(**HOSTILE[kind]))
    with pytest.raises(InputError) as caught:
        CondensedGraph.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ") and sentence.endswith(".") and "\n" not in sentence


SPARSE_X = {
    "x": None,
    "x.pointers": torch.tensor([0, 1, 1, 2], dtype=torch.int32),
    "x.columns": torch.tensor([4, 0], dtype=torch.int16),
    "x.values": torch.tensor([2.0, 3.0]),
}


@pytest.mark.parametrize(
    ("changed", "width"),
    [
        ({}, "4"),
        ({}, "0"),
        ({}, "-5"),
        ({}, "five"),
        ({}, "9999999999999"),
        ({"x.columns": ints([4, 0], torch.int32)}, str(2**31 - 1)),
        ({"x.columns": ints([4, 0], torch.int32)}, "5"),
        ({"x.pointers": ints([0, 1, 2], torch.int32)}, "5"),
        ({"x.pointers": ints([], torch.int32)}, "5"),
        ({"x.pointers": torch.tensor(3, dtype=torch.int32)}, "5"),
        ({"x.values": torch.tensor([2.0, torch.nan])}, "5"),
        ({"x": torch.ones(3, 5)}, "5"),
    ],
)
def test_hostile_sparse_features_are_one_sentence(tmp_path, changed, width):
    kind = "gcsr-condensed-graph/3"
    fine = CondensedGraph.load(written(tmp_path, sparse_parts(**SPARSE_X), kind, num_features="5"))
    assert fine.x.tolist() == [[0, 0, 0, 0, 2], [0] * 5, [3, 0, 0, 0, 0]]
    path = written(tmp_path, sparse_parts(**(SPARSE_X | changed)), kind, num_features=width)
    with pytest.raises(InputError) as caught:
        CondensedGraph.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ") and sentence.endswith(".") and "\n" not in sentence


def test_the_first_format_has_no_sparse_layout(tmp_path):
    with pytest.raises(InputError, match="must be a condensed graph of this library"):
        CondensedGraph.load(written(tmp_path, sparse_parts(), "gcsr-condensed-graph/1"))


def test_a_file_with_one_part_in_half_precision_is_read_in_single(tmp_path):
    path = written(tmp_path, sparse_parts(x=torch.ones(3, 2).half()))
    small = CondensedGraph.load(path)
    assert small.x.dtype == torch.float32 and not small.half
