"""What a network needs of some nodes of a graph on disk: the same as ``model.prepare`` in memory."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.blocks.hops import Propagated
from gcsr.errors import require
from gcsr.graph.stored import OnDisk
from gcsr.models import Model, Prepared, SparseTopology, base
from gcsr.models.appnp import APPNP
from gcsr.models.gcn import GCN
from gcsr.models.mlp import MLP
from gcsr.models.sgc import SGC
from gcsr.models.sparse import SparseOperator, limited_rows
from gcsr.models.topology import Limited
from gcsr.progress import Progress, silent
from gcsr.views import Target, VisibleGraph

IN_BLOCKS = (GCN, SGC, APPNP, MLP)
NAMES = "gcn, sage, sgc, appnp, mlp and their -linear forms"


def require_blocks(model: Model) -> None:
    """Refuse a network that needs the whole graph at once."""
    require(
        isinstance(model, IN_BLOCKS),
        f"model: {model.name!r} needs the whole graph in memory, and it was opened to stay on disk;"
        f" choose one of {NAMES}, or open it with more memory (command line: --memory).",
    )


def prepare_on(
    model: Model,
    graph: VisibleGraph | Target,
    nodes: Tensor,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    progress: Progress = silent,
) -> Prepared:
    """``model.prepare`` for nodes of a graph in memory or on disk."""
    if graph.disk is not None:
        return prepare_rows(model, Propagated(graph.disk, progress), nodes, device)
    topology = SparseTopology(graph.adjacency, device, dtype)
    return model.prepare(graph.x.to(device, dtype), topology, nodes)


def prepare_rows(model: Model, work: Propagated, nodes: Tensor, device: torch.device) -> Prepared:
    """The features that predicting ``nodes`` reads, in memory, and the operators between them."""
    require_blocks(model)

    def features(hops: int, ids: Tensor) -> Tensor:
        return torch.from_numpy(work.features(hops).take(ids.cpu().numpy())).to(device)

    if isinstance(model, SGC) and not model.relu:
        ones = torch.from_numpy(work.ones(model.hops).take(nodes.cpu().numpy()))
        return Prepared(features(model.hops, nodes), ones=ones.to(device))
    if isinstance(model, GCN):
        outer = _limited(work, nodes, device)
        if prefers_sparse(work.disk, device):
            inner = _limited(work, _support(outer), device)
            inputs = sparse_rows(work.disk, _support(inner), device)
            return Prepared(inputs, outer=(outer,), inner=inner)
        return Prepared(features(1, _support(outer)), outer=(outer,))
    chain: list[Limited] = []
    for _ in range(hops_of(model)):
        chain.append(_limited(work, nodes, device))
        nodes = _support(chain[-1])
    outer_chain = tuple(reversed(chain))
    if prefers_sparse(work.disk, device):
        return Prepared(sparse_rows(work.disk, nodes, device), outer=outer_chain)
    return Prepared(features(0, nodes), outer=outer_chain)


def hops_of(model: Model) -> int:
    """How often the scores of a network are propagated."""
    if isinstance(model, SGC):
        return model.hops
    return model.steps if isinstance(model, APPNP) else 0


def prefers_sparse(disk: OnDisk, device: torch.device) -> bool:
    """As :func:`gcsr.models.base.prefers_sparse` decides for the same features in memory."""
    nodes, width = disk.features.shape
    return (
        device.type == "cpu"
        and nodes >= base.SPARSE_ROWS
        and disk.filled * base.SPARSE_COST < nodes * width
    )


def sparse_rows(disk: OnDisk, nodes: Tensor, device: torch.device) -> SparseOperator:
    """Feature rows of some nodes as a sparse matrix."""
    parts = [
        sp.csr_array(disk.features.take(ids))
        for ids in np.split(
            nodes.numpy(), range(base.ROWS_AT_ONCE, nodes.numel(), base.ROWS_AT_ONCE)
        )
    ]
    return SparseOperator(sp.csr_array(sp.vstack(parts, format="csr")), device)


def _limited(work: Propagated, nodes: Tensor, device: torch.device) -> Limited:
    wanted = nodes.cpu().numpy()
    return limited_rows(work.normalised.matrix(wanted), wanted, device, torch.float32)


def _support(limited: Limited) -> Tensor:
    if limited.support is None:
        raise RuntimeError("an operator without a support")
    return limited.support
