"""Results to make pages of, and how to read a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import torch

from gcsr import CondensedGraph, Graph, TrainingRecipe, condense
from helpers import planted_graph

EVIL = "<script>alert(1)</script>"
FAST = TrainingRecipe(epochs=4)
TINY: dict[str, Any] = {
    "iterations": 3,
    "experts": 1,
    "expert_epochs": 4,
    "max_start": 3,
    "hidden_channels": 8,
}


def planted() -> Graph:
    return planted_graph(per_class=30)


def result(graph: Graph, nodes: int = 9, **settings: Any) -> CondensedGraph:
    return condense(graph, nodes=nodes, **{"method": "gcsr", "device": "cpu", **TINY, **settings})


def evil(small: CondensedGraph) -> CondensedGraph:
    """The same with markup in every text of its provenance."""

    def spoiled(value: Any) -> Any:
        if isinstance(value, str):
            return f"{EVIL}\"'><img src=x onerror=alert(2)>"
        if isinstance(value, dict):
            return {key: spoiled(one) for key, one in value.items()} | {EVIL: EVIL}
        return value

    made = {key: spoiled(value) for key, value in small.provenance.items()}
    made["dataset"]["name"] = EVIL
    return replace(small, provenance=made | {"notes": [EVIL, "</script><script>alert(3)</script>"]})


def dense_result(nodes: int, classes: int = 40, features: int = 16) -> CondensedGraph:
    """Every weight above zero, so that nothing compresses."""
    generator = torch.Generator().manual_seed(0)
    a = torch.rand(nodes, nodes, generator=generator)
    x = torch.randn(nodes, features, generator=generator)
    y = torch.arange(nodes) % classes
    made = {"method": "gcsr", "dataset": {"name": "many"}, "settings": {"nodes": nodes}}
    return CondensedGraph(x, (a + a.T) / 2, y, classes, made)


def data_of(page: str) -> Any:
    """What the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])
