"""To and from PyTorch Geometric's ``Data``."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gcsr.data.arrays import array_of
from gcsr.data.graph import SPLITS, FeatureScaling, Graph
from gcsr.utils.errors import require


def graph_from_pyg(
    data: Data,
    *,
    split: int,
    undirected: bool,
    inductive: bool,
    name: str,
    features: FeatureScaling,
) -> Graph:
    """See :meth:`gcsr.Graph.from_pyg`."""
    for field in ("x", "edge_index", "y", *(f"{name}_mask" for name in SPLITS)):
        require(
            isinstance(data.get(field), Tensor),
            f"data.{field}: missing; a Data with x, edge_index, y, train_mask, val_mask and"
            " test_mask is needed.",
        )
    weights = data.get("edge_weight")
    if weights is None:
        # Many transforms keep a scalar weight in edge_attr; wider attributes are not weights.
        attributes = data.get("edge_attr")
        if isinstance(attributes, Tensor) and attributes.numel() == _edge_count(data):
            weights = attributes.reshape(-1)
    return Graph.from_arrays(
        data.x,
        array_of("data.edge_index", data.edge_index),
        data.y,
        edge_weights=None if weights is None else array_of("edge weights", weights),
        undirected=undirected,
        name=name,
        inductive=inductive,
        features=features,
        train=_mask(data, "train", split),
        val=_mask(data, "val", split),
        test=_mask(data, "test", split),
    )


def graph_to_pyg(graph: Graph) -> Data:
    """See :meth:`gcsr.Graph.to_pyg`."""
    coo = graph.adjacency.tocoo()
    data = Data(
        x=graph.x.clone(),
        edge_index=torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)),
        y=graph.y.clone(),
    )
    if graph.is_weighted:
        data.edge_weight = torch.from_numpy(coo.data.copy())
    for part in SPLITS:
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        mask[getattr(graph, part)] = True
        data[f"{part}_mask"] = mask
    return data


def _edge_count(data: Data) -> int:
    edges: Tensor = data.edge_index
    return int(edges.shape[-1]) if edges.ndim else 0


def _mask(data: Data, part: str, split: int) -> Tensor:
    mask: Tensor = data[f"{part}_mask"]
    require(mask.ndim > 0, f"data.{part}_mask: must hold one truth value per node.")
    if mask.ndim == 1:
        return mask.bool()
    require(
        0 <= split < mask.shape[1],
        f"split: {split} is outside 0..{mask.shape[1] - 1} of data.{part}_mask.",
    )
    return mask[:, split].bool()
