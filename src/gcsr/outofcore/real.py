"""One interface to a real graph, in memory or on disk: its rows, its edges, and networks on it.

Features that do not fit the device stay on the host, and only rows that are read are moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data import features
from gcsr.data.stored_graph import matrix_bytes
from gcsr.data.stored_matrix import StoredRows
from gcsr.data.views import RowsByNumber, Target, VisibleGraph
from gcsr.equations.prior import ClassCounts, class_correlation
from gcsr.models import base
from gcsr.models.base import Model, Params, Prepared
from gcsr.models.gcn import GCN
from gcsr.models.sgc import SGC
from gcsr.models.sparse import SparseOperator, SparseTopology, limited_rows
from gcsr.models.topology import Limited
from gcsr.outofcore.hops import ENTRIES_AT_ONCE, Propagated, smoothed_in_blocks, sparse_product
from gcsr.outofcore.predict import (
    IN_BLOCKS,
    hops_of,
    prefers_sparse,
    require_blocks,
    scores_in_blocks,
    sparse_features,
)
from gcsr.utils.devices import device_memory_bytes
from gcsr.utils.products import csr_matrix, csr_tensor, is_sparse
from gcsr.utils.progress import Progress, silent


def real_graph(
    graph: VisibleGraph | Target,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    progress: Progress = silent,
    columns: Tensor | None = None,
) -> RealGraph:
    """The graph as it is stored, for work on a device; ``columns`` of its features, or all."""
    if graph.disk is not None:
        return _GraphInBlocks(Propagated(graph.disk, progress), device, progress, columns)
    home = device
    if device.type != "cpu":
        entries = int(graph.adjacency.nnz) + graph.x.shape[0]
        width = features.nbytes(graph.x) // (4 * graph.x.shape[0])
        wanted = matrix_bytes(graph.x.shape[0], width, entries)
        home = device if 2 * wanted <= device_memory_bytes(device) else torch.device("cpu")
    key = (id(graph.adjacency), home, dtype)
    topology = _TOPOLOGIES.get(key)
    if topology is None:
        topology = _TOPOLOGIES[key] = SparseTopology(graph.adjacency, home, dtype)
    x = graph.x if columns is None else features.take_columns(graph.x, columns)
    return GraphInMemory(x, topology, device)


# Gives feature rows by number, as a sparse matrix.
ReadSparse = Callable[[np.ndarray], sp.csr_array]
# Normalized adjacencies that are in use: as long as one lives, so does the matrix that its key names.
_TOPOLOGIES: WeakValueDictionary[tuple[int, torch.device, torch.dtype], SparseTopology] = (
    WeakValueDictionary()
)


@dataclass(frozen=True, eq=False)
class GraphInMemory:
    """A graph in memory; its topology is on the device, or on the host where it does not fit."""

    x: Tensor
    topology: SparseTopology
    device: torch.device

    @cached_property
    def prefers_sparse(self) -> bool:
        """Whether features are so sparse that networks multiply them that way."""
        return is_sparse(self.x) or (base.prefers_sparse(self.x) and self.device.type == "cpu")

    def propagate(self, hops: int) -> None:
        """Compute beforehand what is kept of message passing: files of a graph on disk."""

    def rows(self, hops: int) -> RowsByNumber:
        """Rows of Eq. 3 by number; they may be on the host where the device is another."""
        # Sparse features stay on the host.
        x = self.x.to("cpu" if is_sparse(self.x) else self.topology.device, self.topology.dtype)
        x = features.propagated(self.topology.normalized, x, hops)
        return features.SparseRows(x, self.device) if is_sparse(x) else x

    def ones(self, hops: int) -> Tensor:
        """The same of a column of ones, which carries the biases of a linear network."""
        ones = torch.ones(
            (self.x.shape[0], 1), device=self.topology.device, dtype=self.topology.dtype
        )
        return features.propagated(self.topology.normalized, ones, hops)

    @cached_property
    def _sparse(self) -> sp.csr_array:
        x = self.x.to(self.topology.dtype)
        return csr_matrix(x) if is_sparse(x) else sp.csr_array(x.numpy())

    def sparse_rows(self, hops: int) -> ReadSparse:
        """Features, or those after some hops, as sparse rows by number."""
        x = self._sparse
        for _ in range(hops):
            x = sp.csr_array(self.topology.normalized.matrix.astype(x.dtype) @ x)
        rows: ReadSparse = x.__getitem__
        return rows

    def limited(self, nodes: Tensor) -> Limited:
        """Eq. 2 where only its output at some nodes is wanted."""
        return replace(self.topology.normalized, device=self.device).limited_to(nodes)

    def prepared(self, model: Model, nodes: Tensor | None) -> Prepared:
        """``model.prepare`` for some nodes."""
        topology = self.topology
        if self.topology.device != self.device and not isinstance(model, IN_BLOCKS):
            # Such a network needs the whole graph on the device, whether it fits or not.
            topology = SparseTopology(topology.adjacency, self.device, topology.dtype)
        if topology.device == self.device:
            return model.prepare(self.x.to(self.device, topology.dtype), topology, nodes)
        return prepare_rows(model, self, torch.arange(self.x.shape[0]) if nodes is None else nodes)

    def scores(self, model: Model, params: Params, nodes: Tensor | None) -> Iterator[Tensor]:
        """Class scores at some nodes, or at all, one network after the other."""
        # Where the graph is on the host, the networks are applied there.
        prepared = GraphInMemory(self.x, self.topology, self.topology.device).prepared(model, nodes)
        weights = [p.detach().to(self.topology.device) for p in params]
        for i in range(weights[0].shape[0]):
            with torch.no_grad():
                scores = model.logits(tuple(p[i : i + 1] for p in weights), prepared)[0]
            yield scores.to(self.device)

    def smoothed(
        self, columns: Tensor, hops: int, nodes: Tensor | None, weights: Tensor | None = None
    ) -> Tensor:
        r"""The mean of :math:`X, \hat A X, \dots, \hat A^K X` at some nodes, or at all.

        Of some columns of X, each row of which is multiplied by its weight ``(n, 1)``.
        """
        x = features.dense(features.take_columns(self.x, columns))
        x = x.to(self.topology.device, self.topology.dtype)
        x = x if weights is None else x * weights.to(x)
        total = x.clone()
        for _ in range(hops):
            x = self.topology.normalized(x)
            total += x
        total /= hops + 1
        return (total if nodes is None else total[nodes.to(total.device)]).to(self.device)

    def class_correlation(self, labels: Tensor, num_classes: int) -> Tensor:
        """Eq. 5; nodes of label -1 do not count."""
        adjacency = csr_tensor(self.topology.adjacency, self.topology.device, torch.float32)
        return class_correlation(adjacency, labels, num_classes)


@dataclass(frozen=True, eq=False)
class _GraphInBlocks:
    """A graph on disk, with the methods of :class:`GraphInMemory`."""

    work: Propagated
    device: torch.device
    progress: Progress = silent
    columns: Tensor | None = None

    @property
    def prefers_sparse(self) -> bool:
        return prefers_sparse(self.work.disk, self.device)

    def propagate(self, hops: int) -> None:
        self.work.features(hops)

    def rows(self, hops: int) -> StoredRows:
        return StoredRows(self.work.features(hops), self.columns)

    def ones(self, hops: int) -> StoredRows:
        return StoredRows(self.work.ones(hops))

    def sparse_rows(self, hops: int) -> ReadSparse:

        def rows(nodes: np.ndarray) -> sp.csr_array:
            if hops:
                return sparse_product(self.work.normalized.take(nodes), self.sparse_rows(hops - 1))
            found = sparse_features(self.work.disk, nodes)
            return found if self.columns is None else found[:, self.columns.numpy()]

        return rows

    def limited(self, nodes: Tensor) -> Limited:
        wanted = nodes.cpu().numpy()
        rows = self.work.normalized.matrix(wanted)
        return limited_rows(rows, wanted, self.device, torch.float32)

    def prepared(self, model: Model, nodes: Tensor) -> Prepared:
        require_blocks(model)
        return prepare_rows(model, self, nodes)

    def scores(self, model: Model, params: Params, nodes: Tensor | None) -> Iterator[Tensor]:
        ids = self._ids(nodes)
        for i in range(params[0].shape[0]):
            one = tuple(p[i : i + 1].detach() for p in params)
            with torch.no_grad():
                parts = list(scores_in_blocks(model, one, self.work, ids, self.device))
            yield torch.cat([part.to(self.device) for part in parts])

    def smoothed(
        self, columns: Tensor, hops: int, nodes: Tensor | None, weights: Tensor | None = None
    ) -> Tensor:
        scale = None if weights is None else weights.numpy()
        with smoothed_in_blocks(self.work, columns.numpy(), hops, scale) as rows:
            return torch.from_numpy(rows.take(self._ids(nodes))).to(self.device)

    def _ids(self, nodes: Tensor | None) -> np.ndarray:
        return np.arange(self.work.disk.num_nodes) if nodes is None else nodes.cpu().numpy()

    def class_correlation(self, labels: Tensor, num_classes: int) -> Tensor:
        disk, counts = self.work.disk, ClassCounts(labels, num_classes)
        nodes, room = disk.num_nodes, min(ENTRIES_AT_ONCE, disk.memory // 32)
        for start, stop in disk.adjacency.cuts(nodes, room):
            rows = disk.adjacency.rows(start, stop)
            entries = torch.from_numpy(np.diff(rows.indptr)).long()
            own = torch.repeat_interleave(torch.arange(start, stop), entries)
            counts.add(own, torch.from_numpy(rows.indices).long(), torch.from_numpy(rows.data))
            self.progress("counting edges", stop, nodes)
        return counts.correlation()


RealGraph = GraphInMemory | _GraphInBlocks


def prepare_rows(
    model: Model, real: RealGraph, nodes: Tensor, known: Mapping[int, RowsByNumber] | None = None
) -> Prepared:
    """The features that predicting ``nodes`` reads, on the device, and the operators between them.

    ``known`` are rows by their number of hops.
    """

    def rows(hops: int, ids: Tensor) -> Tensor:
        found = known[hops] if known and hops in known else real.rows(hops)
        return found[ids.to(found.device)].to(real.device)

    ones = None
    if isinstance(model, SGC) and not model.relu:
        ones = real.ones(model.hops)[nodes.cpu()].to(real.device)
        first = real.rows(0)
        if isinstance(first, Tensor) or (isinstance(first, StoredRows) and not first.is_sparse):
            return Prepared(rows(model.hops, nodes), ones=ones)
    if isinstance(model, GCN):
        outer = real.limited(nodes)
        if real.prefers_sparse:
            inner = real.limited(support_of(outer))
            return Prepared(_sparse(real, support_of(inner)), outer=(outer,), inner=inner)
        return Prepared(rows(1, support_of(outer)), outer=(outer,))
    chain: list[Limited] = []
    for _ in range(hops_of(model)):
        chain.append(real.limited(nodes))
        nodes = support_of(chain[-1])
    inputs = _sparse(real, nodes) if real.prefers_sparse else rows(0, nodes)
    return Prepared(inputs, outer=tuple(reversed(chain)), ones=ones)


def _sparse(real: RealGraph, nodes: Tensor) -> SparseOperator:
    return SparseOperator(real.sparse_rows(0)(nodes.cpu().numpy()), real.device)


def support_of(limited: Limited) -> Tensor:
    """The nodes that an operator on a real graph reads from."""
    if limited.support is None:
        raise RuntimeError("a limited operator of a real graph without a support")
    return limited.support
