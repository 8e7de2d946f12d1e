"""Herding, K-Center and Coarsening as their authors and those who compared with them ran them."""

from __future__ import annotations

from typing import Any

from gcsr.condense.presets.cells import Cell, Table

# Weight decay of the network whose embeddings are compared.
_WEIGHT_DECAY = {
    "cora": 5e-4,
    "citeseer": 5e-4,
    "flickr": 5e-3,
    "reddit": 0.0,
    "ogbn-arxiv": 0.0,
}


def _embedded(cell: Cell, model: str | None) -> dict[str, Any]:
    return {"weight_decay": _WEIGHT_DECAY[cell.dataset], "epochs": 600, "hidden": 256}


def _coarsening(cell: Cell, model: str | None) -> dict[str, Any]:
    return {"directions": 10, "levels": 10, "reduction": 0.99, "labels": "pure", "weights": False}


SELECTION: dict[str, Table] = {
    "herding": _embedded,
    "kcenter": _embedded,
    "coarsening": _coarsening,
}
