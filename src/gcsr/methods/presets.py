"""The settings that authors published, by method, dataset and size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gcsr.utils.errors import require

# -- The datasets and sizes of the published tables --------------------------------------------------


# Condensed nodes of the low, middle and high ratio.
SIZES: dict[str, tuple[int, int, int]] = {
    "citeseer": (30, 60, 120),
    "cora": (35, 70, 140),
    "ogbn-arxiv": (90, 454, 909),
    "flickr": (44, 223, 446),
    "reddit": (76, 153, 307),
}


@dataclass(frozen=True)
class Cell:
    """One dataset at one published size."""

    dataset: str
    nodes: int

    @classmethod
    def nearest(cls, dataset: str, nodes: int, *, preset: str = "paper") -> Cell:
        """The published size that is nearest in ratio."""
        require(
            dataset in SIZES,
            f"dataset must be one of {', '.join(SIZES)} for preset {preset!r}, got {dataset!r}.",
        )
        return cls(dataset, min(SIZES[dataset], key=lambda size: abs(math.log(size / nodes))))

    @property
    def ratio(self) -> int:
        """0, 1 or 2 for the low, middle or high ratio."""
        return SIZES[self.dataset].index(self.nodes)

    def __str__(self) -> str:
        return f"{self.dataset}, {self.nodes} nodes"


# From a cell and the condensing model, if one was asked for, to a method's settings.
Table = Callable[[Cell, str | None], dict[str, Any]]

# -- Herding, K-Center and Coarsening, as in the published comparisons -------------------------------


# Weight decay of the network that embeds training nodes.
EMBEDDING = {
    "citeseer": 5e-4,
    "cora": 5e-4,
    "ogbn-arxiv": 0.0,
    "flickr": 5e-3,
    "reddit": 0.0,
}


def _embedded(cell: Cell, model: str | None) -> dict[str, Any]:
    return {"weight_decay": EMBEDDING[cell.dataset], "epochs": 600, "hidden_channels": 256}


def _coarsening(cell: Cell, model: str | None) -> dict[str, Any]:
    return {"directions": 10, "levels": 10, "reduction": 0.99, "labels": "pure", "weights": False}


SELECTION: dict[str, Table] = {
    "herding": _embedded,
    "kcenter": _embedded,
    "coarsening": _coarsening,
}

# -- DCG, GCond-X, GCond and SGDD, from the scripts that were released for them ----------------------


# model, rate of X' and of the generator, (outer, inner), epochs, threshold, width of the generator.
_GCOND: dict[str, tuple[str, float, tuple[int, int], int, float, int]] = {
    "cora": ("sgc", 1e-4, (20, 15), 600, 0.05, 128),
    "citeseer": ("sgc", 1e-4, (20, 15), 600, 0.05, 128),
    "ogbn-arxiv": ("sgc-relu", 1e-2, (20, 3), 1000, 0.01, 256),
    "flickr": ("sgc-relu", 5e-3, (10, 1), 1000, 0.01, 256),
    "reddit": ("sgc", 0.1, (10, 1), 1000, 0.01, 256),
}
# model, rate, (outer, inner), epochs, distance.
_GCOND_X: dict[str, tuple[str, float, tuple[int, int], int, str]] = {
    "cora": ("sgc", 1e-4, (20, 15), 600, "cosine"),
    "citeseer": ("sgc", 1e-4, (20, 15), 600, "cosine"),
    "ogbn-arxiv": ("sgc2", 0.1, (5, 3), 1000, "squared"),
    "flickr": ("gcn", 1e-2, (10, 1), 1000, "squared"),
    "reddit": ("sgc", 0.1, (10, 1), 400, "cosine"),
}
# rate of X', of the generator, weight of the structure loss, (outer, inner), epochs, sampled nodes.
_SGDD: dict[str, tuple[float, float, float, tuple[int, int], int, int]] = {
    "cora": (1e-4, 1e-4, 1e-10, (20, 15), 2000, 1000),
    "citeseer": (1e-4, 1e-4, 1e-10, (20, 15), 2000, 1000),
    "ogbn-arxiv": (1e-2, 1e-2, 1e-12, (20, 3), 500, 1000),
    "flickr": (1e-4, 1e-4, 1e-9, (20, 15), 500, 1000),
    "reddit": (0.1, 1e-3, 1e-12, (20, 3), 200, 100),
}
_WIDE_FANS = ("flickr", "reddit")


def _gradient_matching(
    cell: Cell, model: str, rate: float, steps: tuple[int, int], epochs: int, **more: Any
) -> dict[str, Any]:
    fans = (15, 8) if cell.dataset in _WIDE_FANS else (10, 5)
    return {
        "units": "absolute",
        "iterate": "last",
        "model": model,
        "hidden_channels": 256,
        "num_hops": 0,
        "model_lr": 0.01,
        "batch": 256,
        "fan_out": fans[0],
        "second_fan_out": fans[1],
        "feature_lr": rate,
        "outer": steps[0],
        "inner": steps[1],
        "epochs": epochs,
        "distance": "cosine",
    } | more


def _dcg(cell: Cell, model: str | None) -> dict[str, Any]:
    own, rate, steps, *_ = _GCOND[cell.dataset]
    return _gradient_matching(cell, model or own, rate, steps, 400, iterate="best-val")


def _gcond_x(cell: Cell, model: str | None) -> dict[str, Any]:
    own, rate, steps, epochs, distance = _GCOND_X[cell.dataset]
    more = {"iterate": "best-val", "distance": distance}
    return _gradient_matching(cell, model or own, rate, steps, epochs, **more)


def _gcond(cell: Cell, model: str | None) -> dict[str, Any]:
    own, rate, steps, epochs, threshold, width = _GCOND[cell.dataset]
    return _gradient_matching(
        cell,
        model or own,
        rate,
        steps,
        epochs,
        structure_lr=rate,
        threshold=threshold,
        generator_hidden_channels=width,
        smoothness=0.0,
    )


def _sgdd(cell: Cell, model: str | None) -> dict[str, Any]:
    own, _, _, _, threshold, _ = _GCOND[cell.dataset]
    rate, structure_lr, weight, steps, epochs, samples = _SGDD[cell.dataset]
    return _gradient_matching(
        cell,
        model or own,
        rate,
        steps,
        epochs,
        structure_lr=structure_lr,
        threshold=threshold,
        generator_hidden_channels=128,
        smoothness=0.5,
        structure_loss="stabilized",
        structure_weight=weight,
        samples=samples,
        sinkhorn=5,
    )


GRADIENT: dict[str, Table] = {"dcg": _dcg, "gcond-x": _gcond_x, "gcond": _gcond, "sgdd": _sgdd}

# -- SFGC with SGC, MTT and GCSR, from the scripts that the paper's authors released -----------------


# Per dataset: what all sizes share, then by number of condensed nodes
# (max_start, N, M) | MTT (iterations, rate) | k | GCSR (iterations, rate, alpha, beta, tau).
_Numbers = tuple[
    tuple[int, int, int],
    tuple[int, float],
    int,
    tuple[int, float, float, float, float],
]
_SHARED: dict[str, dict[str, Any]] = {"ogbn-arxiv": {"expert_lr": 5e-2}}
_CELLS: dict[str, dict[int, _Numbers]] = {
    "citeseer": {
        30: ((60, 5, 2), (3000, 1e-6), 4, (6000, 5e-7, 1.0, 0.999, 0.9)),
        60: ((60, 5, 2), (6000, 5e-7), 4, (1000, 1e-6, 1.0, 0.999, 0.9)),
        120: ((60, 5, 2), (3000, 5e-7), 4, (100, 5e-8, 10.0, 0.999, 0.99)),
    },
    "cora": {
        35: ((50, 5, 2), (8000, 1e-6), 3, (8000, 1e-6, 1.0, 0.9, 0.9)),
        70: ((60, 5, 2), (7000, 1e-6), 2, (7000, 1e-6, 1.0, 1.0, 0.9)),
        140: ((60, 5, 2), (7000, 1e-6), 2, (5000, 1e-6, 0.1, 0.999, 0.9)),
    },
    "ogbn-arxiv": {
        90: ((60, 100, 1), (15000, 1e-2), 2, (3000, 1e-2, 0.1, 1.0, 0.9)),
        454: ((60, 100, 1), (20000, 5e-3), 2, (25000, 5e-3, 10.0, 0.9, 0.99)),
        909: ((90, 100, 1), (20000, 5e-3), 1, (20000, 5e-3, 10.0, 1.0, 0.9)),
    },
    "flickr": {
        44: ((50, 50, 1), (15000, 5e-5), 2, (20000, 5e-5, 1.0, 0.999, 0.9)),
        223: ((95, 50, 2), (15000, 1e-4), 2, (10000, 5e-5, 500.0, 1.0, 0.9)),
        446: ((95, 100, 1), (3000, 1e-4), 2, (10000, 1e-4, 1000.0, 1.0, 0.9)),
    },
    "reddit": {
        76: ((50, 20, 1), (15000, 5e-3), 3, (14000, 1e-3, 500.0, 0.1, 0.99999)),
        153: ((95, 20, 1), (20000, 5e-3), 3, (10000, 5e-3, 1.0, 0.1, 0.99999)),
        307: ((95, 20, 1), (20000, 5e-3), 3, (10000, 1e-2, 1.0, 0.1, 0.99999)),
    },
}
# Condensing Cora to 70 nodes with another model: iterations and k (the paper's Table 3).
_CORA_MODELS = {
    "sgc": (7000, 2),
    "gcn": (7000, 3),
    "appnp": (4000, 4),
    "sage-paper": (8000, 3),
    "cheby-paper": (7000, 4),
}


def _matching(cell: Cell, model: str | None) -> dict[str, Any]:
    (max_start, n, m), *_ = _CELLS[cell.dataset][cell.nodes]
    return {
        "units": "absolute",
        "iterate": "last",
        "model": model or "sgc",
        "max_start": max_start,
        "student_steps": n,
        "expert_steps": m,
        "student_lr": 0.01,
        "experts": 100,
        "expert_lr": 1e-3,
        **_SHARED.get(cell.dataset, {}),
    }


def _mtt(cell: Cell, model: str | None) -> dict[str, Any]:
    _, (iterations, rate), _, _ = _CELLS[cell.dataset][cell.nodes]
    return _matching(cell, model) | {"iterations": iterations, "feature_lr": rate, "num_hops": 0}


def _gcsr(cell: Cell, model: str | None) -> dict[str, Any]:
    _, _, k, (iterations, rate, alpha, beta, tau) = _CELLS[cell.dataset][cell.nodes]
    if (cell.dataset, cell.nodes) == ("cora", 70) and model in _CORA_MODELS:
        iterations, k = _CORA_MODELS[model]
    return _matching(cell, model) | {
        "iterations": iterations,
        "feature_lr": rate,
        "num_hops": k,
        "alpha": alpha,
        "beta": beta,
        "tau": tau,
        "gamma": 0.5,
        "prior": "all",
    }


def _sfgc(cell: Cell, model: str | None) -> dict[str, Any]:
    """MTT's numbers; how SFGC was run for the paper's table is not published."""
    return _mtt(cell, model) | {
        "iterate": "gntk",
        "embedding_weight_decay": EMBEDDING[cell.dataset],
    }


TRAJECTORY: dict[str, Table] = {"sfgc": _sfgc, "mtt": _mtt, "gcsr": _gcsr}

# -- SFGC as its own authors ran it: GCN experts, long spans, hundreds of student steps --------------


_Buffer = tuple[str, float, float, int, int]
# Optimizer, rate, weight decay, epochs, epochs between snapshots.
_BUFFERS: dict[str, _Buffer] = {
    "citeseer": ("adam", 1e-3, 5e-4, 800, 10),
    "cora": ("sgd", 0.4, 0.0, 2500, 100),
    "ogbn-arxiv": ("sgd", 1.0, 0.0, 2000, 10),
    "flickr": ("adam", 1e-3, 5e-4, 1000, 10),
    "reddit": ("adam", 1e-3, 5e-4, 1000, 10),
}
# Per size: p, q, student rate, feature rate, last start in snapshots, ridge,
# validation nodes of each class (None: all), draws.
_SfgcNumbers = tuple[int, int, float, float, int, float, int | None, int]
_SFGC_CELLS: dict[str, tuple[_SfgcNumbers, _SfgcNumbers, _SfgcNumbers]] = {
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
    optimizer, expert_lr, decay, epochs, every = _BUFFERS[cell.dataset]
    p, q, student_lr, rate, last_start, ridge, nodes, draws = _SFGC_CELLS[cell.dataset][cell.ratio]
    return {
        "units": "absolute",
        "model": "gcn",
        "num_hops": 0,
        "iterations": 3000 if cell.dataset == "reddit" else 2000,
        "feature_lr": rate,
        "student_steps": q,
        "student_lr": student_lr,
        "expert_steps": p // every,
        "max_start": last_start + 1,
        "experts": 200,
        "expert_epochs": epochs,
        "expert_lr": expert_lr,
        "expert_weight_decay": decay,
        "expert_optimizer": optimizer,
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


# "paper": as the GCSR paper ran a method; "official": as the method's own authors did, where that is
# something else.
PRESETS = ("default", "paper", "official")
_TABLES: dict[str, Table] = {**SELECTION, **GRADIENT, **TRAJECTORY}


def paper_settings(
    method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The authors' settings of the nearest published size, and a name for that cell.

    ``model`` is the condensing model that was asked for, if any.
    """
    if method == "random":
        return {}, "paper"
    require(
        method in _TABLES,
        f"method must be one of {', '.join(sorted([*_TABLES, 'random']))} for preset 'paper', got"
        f" {method!r}.",
    )
    cell = Cell.nearest(dataset, nodes)
    return _TABLES[method](cell, model), f"paper ({cell})"


def preset_settings(
    preset: str, method: str, dataset: str, nodes: int, *, model: str | None = None
) -> tuple[dict[str, Any], str]:
    """The settings of a preset other than ``default``, and a name for its cell."""
    if preset == "paper":
        return paper_settings(method, dataset, nodes, model=model)
    require(
        method in OFFICIAL,
        f"method must be one of {', '.join(OFFICIAL)} for preset {preset!r}, got {method!r}; preset"
        " 'paper' has the published settings of other methods.",
    )
    cell = Cell.nearest(dataset, nodes, preset=preset)
    return OFFICIAL[method](cell, model), f"{preset} ({cell})"
