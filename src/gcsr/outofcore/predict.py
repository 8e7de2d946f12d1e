"""Predictions of networks on a graph on disk, some nodes at a time: the same classes as in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial, reduce

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcsr.data.stored_graph import OnDisk
from gcsr.data.stored_matrix import StoredFeatures
from gcsr.data.views import Target, VisibleGraph
from gcsr.models import base
from gcsr.models.base import Model, Params, Prepared, linear
from gcsr.models.gcn import GCN
from gcsr.models.mlp import MLP, affine_relu_affine
from gcsr.models.sgc import APPNP, SGC
from gcsr.models.sparse import SparseOperator
from gcsr.outofcore.hops import BlockSizes, Propagated, cut_at
from gcsr.outofcore.products import DenseRows, DenseSide, stored
from gcsr.utils.errors import require
from gcsr.utils.parallel import run_jobs
from gcsr.utils.progress import Progress, silent

IN_BLOCKS = (GCN, SGC, APPNP, MLP)
NAMES = "gcn, sage-paper, sgc, appnp, mlp and their -linear forms"


def require_blocks(model: Model) -> None:
    """Refuse a network that cannot predict some nodes from parts of the real graph."""
    require(
        isinstance(model, IN_BLOCKS),
        f"model must be one of {NAMES} where parts of the real graph are read (a graph on disk, bilevel"
        f" condensation), got {model.name!r}; a graph on disk that is loaded with a larger memory=BYTES"
        " works with every model.",
    )


def hops_of(model: Model) -> int:
    """How often the scores of a network are propagated."""
    if isinstance(model, SGC):
        return model.hops
    return model.steps if isinstance(model, APPNP) else 0


def prefers_sparse(disk: OnDisk, device: torch.device) -> bool:
    """As :func:`gcsr.models.base.prefers_sparse` decides for the same features in memory."""
    nodes, width = disk.features.shape
    return isinstance(disk.features, StoredFeatures) or (
        device.type == "cpu"
        and nodes >= base.SPARSE_ROWS
        and disk.filled * base.SPARSE_COST < nodes * width
    )


def sparse_features(disk: OnDisk, nodes: np.ndarray) -> sp.csr_array:
    """Feature rows of some nodes as a sparse matrix."""
    stored = disk.features
    if isinstance(stored, StoredFeatures):
        return stored.matrix.take(nodes)
    parts = [sp.csr_array(stored.take(ids)) for ids in _parts(nodes)]
    return sp.csr_array(sp.vstack(parts, format="csr"))


def accuracy_in_blocks(
    model: Model, params: Params, target: Target, device: torch.device, progress: Progress = silent
) -> Tensor:
    """Accuracy of every network, one after the other."""
    if target.disk is None:
        raise RuntimeError("this graph is in memory")
    require_blocks(model)
    work = Propagated(target.disk, progress)
    shares = []
    networks, count = params[0].shape[0], target.nodes.numel()
    for i in range(networks):
        one = tuple(p[i : i + 1].detach() for p in params)
        right, seen = 0, 0
        with torch.no_grad():
            for scores in scores_in_blocks(model, one, work, target.nodes.numpy(), device):
                labels = target.labels[seen : seen + scores.shape[0]].to(scores.device)
                right += int((scores.argmax(-1) == labels).sum())
                seen += scores.shape[0]
                progress(f"testing {model.name}", i * count + seen, networks * count)
        shares.append(right / max(1, seen))
    return torch.tensor(shares, dtype=torch.float64)


def scores_in_blocks(
    model: Model, params: Params, work: Propagated, nodes: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """Class scores of the nodes, in order, some at a time."""
    linear_sgc = isinstance(model, SGC) and not model.relu
    if linear_sgc and not isinstance(work.disk.features, StoredFeatures):
        for ids in _parts(nodes):
            prepared = Prepared(
                torch.from_numpy(work.features(hops_of(model)).take(ids)).to(device),
                ones=torch.from_numpy(work.ones(hops_of(model)).take(ids)).to(device),
            )
            yield model.logits(params, prepared)[0]
        return
    hops = 1 if isinstance(model, GCN) else hops_of(model)
    if not hops:
        yield from _first_scores(model, params, work, nodes, device)
        return
    classes = int(params[2].shape[-1])
    supports = [nodes]
    for _ in range(hops):
        supports.append(_reached(work, supports[-1]))
    with ExitStack() as stack:

        def kept(count: int, parts: Iterator[Tensor]) -> DenseRows:
            arrays = (part.cpu().numpy() for part in parts)
            return stack.enter_context(stored(work.disk, count, classes, arrays))

        def hop(
            wanted: np.ndarray, at: np.ndarray, current: DenseRows
        ) -> Iterator[tuple[np.ndarray, Tensor]]:
            """The ``wanted`` nodes some at a time, with scores of the nodes ``at`` after one hop."""
            for ids, part in _products(work, wanted, at, current):
                if isinstance(model, APPNP):
                    own = torch.from_numpy(began.take(np.searchsorted(supports[-1], ids)))
                    yield ids, (1 - model.teleport) * part + model.teleport * own
                else:
                    yield ids, part

        at = supports[-1]
        began = current = kept(at.size, _first_scores(model, params, work, at, device))
        for wanted in reversed(supports[1:-1]):
            found = hop(wanted, at, current)
            at, current = wanted, kept(wanted.size, (part for _, part in found))
        for ids, part in hop(nodes, at, current):
            if isinstance(model, GCN):
                yield part + params[3][0].cpu()
            elif linear_sgc:
                bias = (params[1] @ params[2] + params[3])[0].cpu()
                yield part + torch.from_numpy(work.ones(hops).take(ids)) * bias
            else:
                yield part


def _first_scores(
    model: Model, params: Params, work: Propagated, support: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """Scores of the perceptron inside a network, in the chunks that the computation in memory uses."""
    sparse = prefers_sparse(work.disk, device)
    if isinstance(model, GCN):
        if sparse:
            yield from _scores_of_sparse(model, params, work, support, device)
            return
        for ids in _parts(support):
            inputs = torch.from_numpy(work.features(1).take(ids)).to(device)
            yield model.scores(params, Prepared(inputs))[0]
        return
    relu = not isinstance(model, APPNP) or model.relu
    for ids in _parts(support):
        given: Tensor | SparseOperator
        if sparse:
            given = SparseOperator(sparse_features(work.disk, ids), device)
        else:
            given = torch.from_numpy(work.disk.features.take(ids)).to(device)
        if isinstance(model, SGC) and not model.relu:
            yield linear(given, params[0] @ params[2])[0]
        else:
            yield affine_relu_affine(params, given, None, relu=relu)[0]


def _scores_of_sparse(
    model: GCN, params: Params, work: Propagated, support: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """Sparse features: hidden units are propagated instead of features."""
    w1, b1, w2, _ = params
    reached = _reached(work, support)
    parts = (
        SparseOperator(sparse_features(work.disk, ids), device)(w1)[0].numpy()
        for ids in _parts(reached)
    )
    with stored(work.disk, reached.size, model.hidden_channels, parts) as dense:
        for ids in _parts(support):
            hidden = torch.cat([part for _, part in _products(work, ids, reached, dense)])[None]
            yield (base.activated(hidden, b1, relu=model.relu) @ w2)[0]


def _products(
    work: Propagated, wanted: np.ndarray, at: np.ndarray, dense: DenseRows
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """The wanted nodes some at a time, with their rows of Eq. 2 times a signal on the nodes ``at``."""
    sizes = BlockSizes.of(work.disk, dense.shape[1])
    side = DenseSide(dense, sizes.columns)
    renumbered = at if at.size < work.disk.num_nodes else None
    for ids in _by_entries(work, wanted, sizes):
        yield ids, side.times(work.normalized.take(ids, renumbered))


def _by_entries(work: Propagated, nodes: np.ndarray, sizes: BlockSizes) -> Iterator[np.ndarray]:
    """The nodes in groups within both bounds."""
    pointers = work.disk.adjacency.indptr
    for ids in _parts(nodes):
        ends = np.cumsum(pointers.take(ids + 1) - pointers.take(ids) + 1)
        for start, stop in cut_at(ends, sizes.entries, sizes.rows):
            yield ids[start:stop]


def _reached(work: Propagated, nodes: np.ndarray) -> np.ndarray:
    """The nodes and all their neighbors, in order."""
    marked = np.zeros(work.disk.num_nodes, bool)
    marked[nodes] = True
    if nodes.size == marked.size:
        return np.flatnonzero(marked)
    for ids in _by_entries(work, nodes, BlockSizes.of(work.disk, 1)):
        marked[work.disk.adjacency.take(ids).indices] = True
    return np.flatnonzero(marked)


def _parts(ids: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, ids.size, base.ROWS_AT_ONCE):
        yield ids[start : start + base.ROWS_AT_ONCE]


class ClassesInBlocks:
    """The class with the highest mean prediction of experts, for every node of a graph on disk.

    Called as each expert finishes, like :class:`~gcsr.training.experts.MeanPrediction`. It keeps only
    weights, so nothing grows with nodes times classes.
    """

    def __init__(self, model: Model, visible: VisibleGraph, device: torch.device) -> None:
        require(
            isinstance(model, SGC) and not model.relu,
            f"model must be 'sgc' with prior 'predicted' for a graph that stays on disk, got"
            f" {model.name!r}; choose it or prior 'train'.",
        )
        self._model, self._visible, self._device = model, visible, device
        self._trained: dict[int, Params] = {}
        self._lock = threading.Lock()

    def __call__(self, experts: range, params: Params) -> None:
        """Keep the last weights of a group of experts."""
        with self._lock:
            for place, number in enumerate(experts):
                self._trained[number] = tuple(p[place : place + 1].detach().clone() for p in params)

    def classes(self, progress: Progress = silent) -> Tensor:
        """One class per node."""
        disk, model = self._visible.disk, self._model
        if disk is None or not isinstance(model, SGC):
            raise RuntimeError("this graph is in memory")
        work = Propagated(disk, progress)
        features, ones = work.features(model.hops), work.ones(model.hops)
        experts = [self._trained[number] for number in sorted(self._trained)]
        found = torch.empty(disk.num_nodes, dtype=torch.long)
        step = base.ROWS_AT_ONCE
        if isinstance(disk.features, StoredFeatures):
            # Rows after some hops may be dense.
            step = max(64, min(step, disk.memory // (8 * disk.features.shape[1])))

        def predict(start: int, report: Progress) -> None:
            stop = min(disk.num_nodes, start + step)
            prepared = Prepared(
                torch.from_numpy(features.read(start, stop)).to(self._device),
                ones=torch.from_numpy(ones.read(start, stop)).to(self._device),
            )
            with torch.no_grad():
                predictions = (model.logits(one, prepared)[0].softmax(-1) for one in experts)
                total = reduce(torch.add, predictions)
                found[start:stop] = (total / len(experts)).argmax(1).cpu()
            report("asking experts", 1, 1)

        run_jobs([partial(predict, start) for start in range(0, disk.num_nodes, step)], progress)
        return found
