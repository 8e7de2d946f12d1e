"""The real graph where a condensed one is needed is one clear sentence."""

from __future__ import annotations

import pytest

import gcsr
from helpers import planted_graph

CALLS = [
    gcsr.evaluate,
    gcsr.report,
    gcsr.analyze,
    gcsr.cost,
    gcsr.privacy,
    gcsr.search,
    gcsr.update,
]


@pytest.mark.parametrize("call", CALLS)
def test_a_real_graph_is_not_a_condensed_one(call):
    graph = planted_graph()
    for given, named in ((graph, "gcsr.Graph"), (graph.to_pyg(), "PyG Data")):
        with pytest.raises(
            gcsr.InputError,
            match=rf"must be a gcsr.CondensedGraph, got a {named}.*; gcsr.condense makes one",
        ):
            call(given, given)
