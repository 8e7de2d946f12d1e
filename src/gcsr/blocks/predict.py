"""What networks predict on a graph on disk, some nodes at a time: the same classes as in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import torch
from torch import Tensor

from gcsr.blocks.hops import Plan, Propagated
from gcsr.blocks.prepare import hops_of, prefers_sparse, require_blocks, sparse_rows
from gcsr.blocks.product import ArrayRows, DenseRows, product_rows
from gcsr.blocks.signal import signal
from gcsr.graph.array_file import ArrayFile
from gcsr.models import Model, Params, Prepared, base
from gcsr.models.appnp import APPNP
from gcsr.models.gcn import GCN
from gcsr.models.mlp import affine_relu_affine
from gcsr.models.sgc import SGC
from gcsr.products import Table
from gcsr.progress import Progress, silent
from gcsr.views import Target


def accuracy_in_blocks(
    model: Model,
    params: Params,
    target: Target,
    device: torch.device,
    progress: Progress = silent,
) -> Tensor:
    """Share of right predictions of every network, one after the other, as ``accuracy`` gives it."""
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
            for scores in _scores(model, one, work, target.nodes.numpy(), device):
                labels = target.labels[seen : seen + scores.shape[0]].to(scores.device)
                right += int((scores.argmax(-1) == labels).sum())
                seen += scores.shape[0]
                progress(f"testing {model.name}", i * count + seen, networks * count)
        shares.append(right / max(1, seen))
    return torch.tensor(shares, dtype=torch.float64)


def _scores(
    model: Model, params: Params, work: Propagated, nodes: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """Class scores of the nodes, in order, some at a time."""
    if isinstance(model, SGC) and not model.relu:
        for ids in _parts(nodes):
            prepared = Prepared(
                torch.from_numpy(work.features(model.hops).take(ids)).to(device),
                ones=torch.from_numpy(work.ones(model.hops).take(ids)).to(device),
            )
            yield model.logits(params, prepared)[0]
        return
    classes = int(params[2].shape[-1])
    hops = 1 if isinstance(model, GCN) else hops_of(model)
    supports = [nodes]
    for _ in range(hops):
        supports.append(_reached(work, supports[-1]))
    with ExitStack() as stack:
        at = supports[-1]
        first = stack.enter_context(signal(work.disk, at.size, classes))
        done = 0
        for part in _first_scores(model, params, work, at, device):
            first.write(done, part.cpu().numpy())
            done += part.shape[0]
        # Only the perceptron's own scores are told apart from those on their way.
        began = current = first.rows()
        for wanted in reversed(supports[1:-1]):
            after = stack.enter_context(signal(work.disk, wanted.size, classes))
            done = 0
            for part in _hop(model, work, wanted, at, current, supports[-1], began):
                after.write(done, part.numpy())
                done += part.shape[0]
            at, current = wanted, after.rows()
        if not hops:
            yield from (torch.from_numpy(current.read(i, j)) for i, j in _cuts(nodes.size))
            return
        for part in _hop(model, work, nodes, at, current, supports[-1], began):
            yield part + params[3][0].cpu() if isinstance(model, GCN) else part


def _first_scores(
    model: Model, params: Params, work: Propagated, support: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """What the perceptron inside a network says of the support, in the chunks that memory uses."""
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
        if sparse:
            given = sparse_rows(work.disk, torch.from_numpy(ids), device)
            yield affine_relu_affine(params, given, None, relu=relu)[0]
        else:
            inputs = torch.from_numpy(work.disk.features.take(ids)).to(device)
            yield affine_relu_affine(params, inputs, None, relu=relu)[0]


def _scores_of_sparse(
    model: GCN, params: Params, work: Propagated, support: np.ndarray, device: torch.device
) -> Iterator[Tensor]:
    """Sparse features: hidden units are propagated instead of features."""
    w1, b1, w2, _ = params
    reached = _reached(work, support)
    with signal(work.disk, reached.size, model.hidden) as products:
        done = 0
        for ids in _parts(reached):
            part = sparse_rows(work.disk, torch.from_numpy(ids), device)(w1)[0]
            products.write(done, part.numpy())
            done += ids.size
        dense = products.rows()
        for ids in _parts(support):
            hidden = torch.cat(list(_products(work, ids, reached, dense))).unsqueeze(0)
            yield (base.activated(hidden, b1, relu=model.relu) @ w2)[0]


def _hop(
    model: Model,
    work: Propagated,
    wanted: np.ndarray,
    at: np.ndarray,
    current: DenseRows,
    first: np.ndarray,
    began: DenseRows,
) -> Iterator[Tensor]:
    """Scores on the nodes ``at``, after one hop, at the ``wanted`` ones."""
    done = 0
    for part in _products(work, wanted, at, current):
        ids = wanted[done : done + part.shape[0]]
        done += part.shape[0]
        if isinstance(model, APPNP):
            own = torch.from_numpy(began.take(np.searchsorted(first, ids)))
            yield (1 - model.teleport) * part + model.teleport * own
        else:
            yield part


def _products(
    work: Propagated, wanted: np.ndarray, at: np.ndarray, dense: DenseRows
) -> Iterator[Tensor]:
    """Rows of Eq. 2 for the wanted nodes times a signal on the nodes ``at``."""
    plan = work.plan(dense.shape[1])
    table = None
    if dense.shape[0] <= plan.columns:
        whole = dense.map() if isinstance(dense, ArrayFile) else dense.read(0, dense.shape[0])
        dense = ArrayRows(whole)
    else:
        table = Table(plan.columns, dense.shape[1])
    renumbered = at if at.size < work.disk.num_nodes else None
    for ids in _by_entries(work, wanted, plan):
        rows = work.normalised.take(ids, renumbered)
        yield product_rows(rows, dense, plan.columns, table)


def _by_entries(work: Propagated, nodes: np.ndarray, plan: Plan) -> Iterator[np.ndarray]:
    """The nodes in groups within both bounds of a plan."""
    pointers = work.disk.adjacency.indptr
    for ids in _parts(nodes):
        entries = np.cumsum(pointers.take(ids + 1) - pointers.take(ids) + 1)
        start = 0
        while start < ids.size:
            before = int(entries[start - 1]) if start else 0
            room = int(np.searchsorted(entries, before + plan.entries, "right"))
            stop = max(start + 1, min(room, start + plan.rows))
            yield ids[start:stop]
            start = stop


def _reached(work: Propagated, nodes: np.ndarray) -> np.ndarray:
    """The nodes and all their neighbours, in order."""
    marked = np.zeros(work.disk.num_nodes, bool)
    marked[nodes] = True
    if nodes.size == marked.size:
        return np.flatnonzero(marked)
    for ids in _by_entries(work, nodes, work.plan(1)):
        marked[work.disk.adjacency.take(ids).indices] = True
    return np.flatnonzero(marked)


def _cuts(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, base.ROWS_AT_ONCE):
        yield start, min(count, start + base.ROWS_AT_ONCE)


def _parts(ids: np.ndarray) -> Iterator[np.ndarray]:
    for start, stop in _cuts(ids.size):
        yield ids[start:stop]
