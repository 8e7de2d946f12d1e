"""SFGC as its own authors ran it: GCN experts, long spans, hundreds of student steps.

Their p and q are epochs of an expert and steps of a student. Experts are looked up every ten epochs,
starts are 0, 10, ... up to ``start`` epochs. On Cora those numbers index the snapshots instead, so
that starts lie 100 epochs apart, and so do our snapshots: p is a multiple of 100 there. The highest
ratio of Reddit is not published; it has the numbers of the middle one.
"""

from __future__ import annotations

from typing import Any

from gcsr.condense.presets.cells import Cell, Table

# Weight decay of the network that embeds training nodes for K-Center.
EMBEDDING = {
    "citeseer": 5e-4,
    "cora": 5e-4,
    "ogbn-arxiv": 0.0,
    "flickr": 5e-3,
    "reddit": 0.0,
}
_Buffer = tuple[str, float, float, int, int]
# Optimiser, rate, weight decay, epochs, epochs between snapshots.
_BUFFERS: dict[str, _Buffer] = {
    "citeseer": ("adam", 1e-3, 5e-4, 800, 10),
    "cora": ("sgd", 0.4, 0.0, 2500, 100),
    "ogbn-arxiv": ("sgd", 1.0, 0.0, 2000, 10),
    "flickr": ("adam", 1e-3, 5e-4, 1000, 10),
    "reddit": ("adam", 1e-3, 5e-4, 1000, 10),
}
# Per size: p, q, student rate, feature rate, last start in snapshots, ridge,
# validation nodes of each class (None: all), draws.
_Numbers = tuple[int, int, float, float, int, float, int | None, int]
_CELLS: dict[str, tuple[_Numbers, _Numbers, _Numbers]] = {
    "citeseer": (
        (500, 200, 1.0, 5e-4, 3, 1.0, None, 1),
        (500, 200, 1.0, 1e-3, 3, 1.0, None, 1),
        (400, 300, 0.6, 1e-3, 3, 1.0, None, 1),
    ),
    "cora": (
        (1500, 400, 0.5, 1e-4, 5, 1.0, None, 1),
        (1200, 500, 0.5, 1e-4, 3, 1.0, None, 1),
        (2000, 500, 0.5, 1e-4, 3, 1.0, None, 1),
    ),
    "ogbn-arxiv": (
        (1800, 600, 0.2, 0.2, 3, 0.1, 50, 1),
        (1900, 1200, 0.1, 0.1, 3, 0.1, 50, 1),
        (1900, 1000, 0.1, 0.1, 1, 1.0, 10, 1),
    ),
    "flickr": (
        (700, 600, 0.3, 0.1, 3, 1.0, 10, 1),
        (900, 600, 0.2, 0.01, 3, 0.01, 10, 5),
        (900, 900, 0.2, 0.02, 3, 0.1, 10, 5),
    ),
    "reddit": (
        (900, 900, 0.5, 0.02, 3, 0.01, 50, 5),
        (900, 900, 0.5, 0.05, 5, 0.01, 50, 1),
        (900, 900, 0.5, 0.05, 5, 0.01, 50, 1),
    ),
}


def _official(cell: Cell, model: str | None) -> dict[str, Any]:
    """GCN, unless the caller's own settings name another model: it is no part of the table."""
    optimiser, expert_rate, decay, epochs, every = _BUFFERS[cell.dataset]
    p, q, student_rate, rate, last_start, ridge, nodes, draws = _CELLS[cell.dataset][cell.ratio]
    return {
        "units": "absolute",
        "model": "gcn",
        "k": 0,
        "iterations": 3000 if cell.dataset == "reddit" else 2000,
        "feature_rate": rate,
        "student_steps": q,
        "student_rate": student_rate,
        "expert_steps": p // every,
        "max_start": last_start + 1,
        "experts": 200,
        "expert_epochs": epochs,
        "expert_rate": expert_rate,
        "expert_weight_decay": decay,
        "expert_optimiser": optimiser,
        "expert_restart": False,
        "snapshot_every": every,
        "iterate": "gntk",
        "score_every": 1,
        "gntk_ridge": ridge,
        "gntk_nodes": nodes,
        "gntk_draws": draws,
        "embedding_weight_decay": EMBEDDING[cell.dataset],
    }


OFFICIAL: dict[str, Table] = {"sfgc": _official}
