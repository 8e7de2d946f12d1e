"""Features that do not fit the memory of a device stay on the host, and their rows are moved."""

from __future__ import annotations

import pytest
import torch

import gcsr
from gcsr import InputError, View
from gcsr.models.gcn import GCN
from gcsr.outofcore import real
from gcsr.outofcore.real import GraphInMemory, real_graph
from gcsr.utils.devices import DEVICE_MEMORY_VARIABLE, device_memory_bytes
from helpers import CPU, planted_graph

# Tensors on it have shapes and no numbers, on every machine.
ELSEWHERE = torch.device("meta")


def test_the_bound_decides_where_features_are(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph(per_class=60)
    visible = View(graph).condensing().visible
    homes = {}
    for bound in ("24GB", "10kB"):
        monkeypatch.setenv(DEVICE_MEMORY_VARIABLE, bound)
        seen = real_graph(visible, ELSEWHERE)
        assert isinstance(seen, GraphInMemory)
        homes[bound] = seen.topology.device
    assert homes == {"24GB": ELSEWHERE, "10kB": CPU}
    # Only the neighborhood of three nodes is moved.
    nodes = torch.tensor([0, 7, 100])
    prepared = seen.prepared(GCN(4), nodes)
    reached = {*nodes.tolist(), *graph.adjacency[nodes.numpy()].indices.tolist()}
    assert prepared.inputs.device == ELSEWHERE
    assert prepared.inputs.shape == (len(reached), graph.num_features)
    assert real_graph(visible, CPU).rows(1).equal(seen.rows(1))


def test_a_bound_that_is_no_size_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICE_MEMORY_VARIABLE, "much")
    with pytest.raises(InputError, match="GCSR_DEVICE_MEMORY must be a size such as 500MB"):
        device_memory_bytes(ELSEWHERE)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_rows_that_are_moved_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted_graph(per_class=200)
    asked = {"nodes": 12, "method": "bilevel", "iterations": 4, "device": "cuda"}
    whole = gcsr.condense(graph, **asked)
    monkeypatch.setattr(real, "device_memory_bytes", lambda device: 0)
    moved = gcsr.condense(graph, **asked)
    torch.testing.assert_close(moved.x, whole.x, rtol=1e-2, atol=1e-2)
    scores = [gcsr.evaluate(small, graph, runs=3, device="cuda").mean for small in (whole, moved)]
    assert abs(scores[0] - scores[1]) < 3
