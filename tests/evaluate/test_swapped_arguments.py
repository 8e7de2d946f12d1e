"""The real graph where a condensed one is needed is one clear sentence."""

from __future__ import annotations

import pytest

import gcsr
from helpers import planted_graph


@pytest.mark.parametrize("call", [gcsr.evaluate, gcsr.report])
def test_a_real_graph_is_not_a_condensed_one(call):
    graph = planted_graph()
    with pytest.raises(gcsr.InputError, match=r"must be .*, got Graph; CondensedGraph.load reads"):
        call(graph, graph)
