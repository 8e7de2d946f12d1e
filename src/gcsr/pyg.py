"""Condensing as a transform of PyTorch Geometric; ``import gcsr`` does not import PyG."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from gcsr.api import chosen_method, condense
from gcsr.data.arrays import FEATURE_SCALINGS
from gcsr.data.condensed import CondensedGraph, require_threshold
from gcsr.methods.base import Condenser
from gcsr.methods.presets import PRESETS
from gcsr.methods.registry import build
from gcsr.utils.devices import pick_device
from gcsr.utils.errors import InputError, plain_number, require, require_integer, require_one_of


class Condense(BaseTransform):  # type: ignore[misc]
    """A ``Data`` with three masks in, a small ``Data`` with weighted edges out.

    ``Condense(nodes=70)`` or ``Condense(ratio=0.01)``; every argument of :func:`gcsr.condense`
    (``method``, ``preset``, ``features``, ``seed``, ``device``) and every setting of the method can
    follow. The result has ``x``, ``edge_index``, ``edge_weight`` and ``y``; its ``train_mask`` are its
    labeled nodes, ``val_mask`` and ``test_mask`` are empty, as networks are tested on the real graph.
    Test labels are not read. ``condensed_`` is the last result with its provenance.

    Args:
        nodes, ratio: the size, as one of the two.
        split: which column of masks that hold several splits; by default the first, with a warning.
        weight: the attribute with one weight per edge; by default ``edge_weight``.
        undirected: add missing reverse edges instead of refusing a directed graph.
        inductive: hide validation and test nodes while condensing.
        name: of the data, for the provenance.
        threshold: entries of A' above it become edges; by default those that layers without edge
            weights can use, 0 for all (see :meth:`gcsr.CondensedGraph.to_pyg`).
        settings: of :func:`gcsr.condense` and of the method.
    """

    def __init__(
        self,
        nodes: int | None = None,
        ratio: float | None = None,
        *,
        split: int | None = None,
        weight: str | None = None,
        undirected: bool = False,
        inductive: bool = False,
        name: str = "graph",
        threshold: float | None = None,
        **settings: Any,
    ) -> None:
        self.size: dict[str, Any] = {"nodes": nodes, "ratio": ratio}
        self.reading: dict[str, Any] = {
            "split": split,
            "weight": weight,
            "undirected": undirected,
            "inductive": inductive,
            "name": name,
        }
        self.threshold = threshold
        self.settings = settings
        self.condensed_: CondensedGraph | None = None
        # Errors that do not depend on data are raised here.
        known = inspect.signature(condense).parameters
        own = {key: value for key, value in settings.items() if key not in known}
        require_threshold(threshold)
        preset = settings.get("preset", "default")
        require_one_of("preset", preset, PRESETS)
        require_one_of("features", settings.get("features"), (None, "auto", *FEATURE_SCALINGS))
        pick_device(settings.get("device", "auto"))
        require_integer("seed", plain_number(settings.get("seed", 0)), 0)
        method = chosen_method(settings.get("method"), preset, nodes, ratio)
        if isinstance(method, Condenser):
            raise InputError(
                f"method must be a name or a class here, got an instance of {method.name}; give its"
                " settings beside it."
            )
        build(method, {**self.size, **own})

    def forward(self, data: Data) -> Data:
        """The condensed graph, on the device that the features are on."""
        require(
            isinstance(data, Data),
            f"data must be a torch_geometric.data.Data, got {type(data).__name__}.",
        )
        small = condense(data, **self.size, **self.reading, **self.settings)
        self.condensed_ = small
        made = small.to_pyg(self.threshold)
        made.val_mask = torch.zeros_like(small.labeled)
        made.test_mask = torch.zeros_like(small.labeled)
        return made.to(data.x.device if isinstance(data.x, torch.Tensor) else "cpu")

    def __repr__(self) -> str:
        given = {key: value for key, value in self.size.items() if value is not None}
        pairs = ", ".join(f"{key}={value!r}" for key, value in {**given, **self.settings}.items())
        return f"{type(self).__name__}({pairs})"
