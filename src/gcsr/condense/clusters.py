r"""Where condensed features may start instead of at sampled training rows: class-wise centres.

Every visible node belongs to the class that its teachers put first (training labels are kept). The
nodes of a class are grouped by k-means of their propagated features :math:`\hat A^k X`; a centre is a
condensed node, and the mean of what the teachers say of its nodes is its label. No validation or test
label is read, and nothing is larger than nodes x features or nodes x classes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcsr.condense.initialise import JITTER, Start, propagated_features
from gcsr.condense.teachers import class_shares
from gcsr.devices import stream
from gcsr.progress import Progress
from gcsr.views import CondensingView, VisibleGraph

ROUNDS = 30
# Where rows are many and this much wider, groups are found in a random projection of so many columns.
PROJECTED, WIDER, MANY = 256, 4, 10**7


def class_centres(
    view: CondensingView,
    budget: Tensor,
    seeds: Sequence[int],
    *,
    hops: int,
    teacher: str,
    teacher_seed: int,
    tempered: bool,
    soft: bool,
    draw: int,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
) -> list[Start]:
    """A clustered start for every seed; all of them ask the same teachers.

    K-means ends where it began from leads: another ``draw`` begins elsewhere.
    """
    purpose = f"clusters {draw}" if draw else "clusters"
    taught = class_shares(
        view, teacher, seed=teacher_seed, device=device, tempered=tempered, progress=progress
    )
    asked = (hops, teacher, teacher_seed, tempered, purpose, str(device), dtype)
    keys = {seed: (seed, *asked, *budget.tolist()) for seed in seeds}
    with _LOCK:
        known = _KNOWN.setdefault(view.visible, {})
    if not all(key in known for key in keys.values()):
        features = propagated_features(view.visible, hops, device, dtype)
        shares = taught.shares.to(features)
        for seed, key in keys.items():
            start = cluster_start(features, shares, budget, stream(seed, purpose))
            known[key] = replace(start, temperature=taught.temperature)
    return [_handed_out(known[keys[seed]], soft) for seed in seeds]


# Starts of graphs that are still in use: with soft labels and with hard ones the centres are the same,
# and matching begins where a race has been before.
_Known = dict[tuple[object, ...], Start]
_KNOWN: WeakKeyDictionary[VisibleGraph, _Known] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _handed_out(start: Start, soft: bool) -> Start:
    """A copy, which may be written into; with hard labels every centre has one class."""
    shares = start.targets
    assert shares is not None
    if not soft:
        shares = torch.nn.functional.one_hot(shares.argmax(1), shares.shape[1]).to(shares)
    return replace(start, x=start.x.clone(), targets=shares.clone())


def cluster_start(
    features: Tensor, shares: Tensor, budget: Tensor, generator: torch.Generator
) -> Start:
    """A start whose rows are centres, in blocks by class; labels are the mean shares of their nodes.

    Args:
        features: propagated features of the visible nodes, ``(n, d)``.
        shares: what is known of their classes, ``(n, C)``: one-hot where a label is known.
        budget: condensed nodes of each class.
        generator: decides where k-means begins.
    """
    nearest = shares.argmax(1)
    rows, targets, notes = [], [], []
    for label, wanted in enumerate(budget.tolist()):
        if not wanted:
            continue
        members = (nearest == label).nonzero().flatten()
        x, own = features[members], shares[members]
        centres, groups = k_means(x, min(wanted, members.numel()), generator)
        known = _means(own, groups, centres.shape[0])
        missing = wanted - centres.shape[0]
        if missing:
            again = torch.arange(missing, device=x.device) % centres.shape[0]
            noise = torch.randn((missing, x.shape[1]), generator=generator).to(x)
            size = x.square().mean().sqrt()
            centres = torch.cat([centres, centres[again] + JITTER * size * noise])
            known = torch.cat([known, known[again]])
            notes.append(
                f"{missing} nodes of class {label} repeat another one with jitter, because the"
                " teachers see fewer nodes of it"
            )
        rows.append(centres)
        targets.append(known)
    none = torch.empty(0, dtype=torch.int64)
    return Start(torch.cat(rows), none, tuple(notes), torch.cat(targets))


def k_means(x: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Centres ``(k, d)`` and the group of every row, by Lloyd's rounds from random rows.

    A k-means++ start, which prefers rows far from all others, validated worse: a centre counts as much
    as any other node, however few stand behind it. Sums are products with a one-hot matrix, which give
    the same bytes on CUDA each time. A group that runs empty keeps its centre.

    Many wide rows are grouped by what a random projection keeps of their distances (Boutsidis,
    Zouzias and Drineas, 2010); centres are means of the rows themselves.
    """
    # Distances are differences of large squares unless the rows lie around zero.
    middle = x.mean(0)
    x = x - middle
    begin = torch.randperm(x.shape[0], generator=generator)[:k].to(x.device)
    if x.numel() <= MANY or x.shape[1] <= WIDER * PROJECTED:
        centres, groups = _lloyd(x, x[begin].clone())
        return centres + middle, groups
    directions = torch.randn((x.shape[1], PROJECTED), generator=generator).to(x)
    narrow = x @ directions
    _, groups = _lloyd(narrow, narrow[begin].clone())
    return _centres(x, groups, x[begin]) + middle, groups


def _lloyd(x: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds of nearest centres and means, until nothing moves."""
    squares = x.square().sum(1, keepdim=True)
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    for _ in range(ROUNDS):
        groups = (squares - 2 * x @ centres.T + centres.square().sum(1)).argmin(1)
        moved = _centres(x, groups, centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres, groups


def _centres(x: Tensor, groups: Tensor, otherwise: Tensor) -> Tensor:
    """The mean row of every group; where one is empty, its row of ``otherwise``."""
    inside = torch.nn.functional.one_hot(groups, otherwise.shape[0]).to(x)
    counts = inside.sum(0)[:, None]
    return torch.where(counts > 0, inside.T @ x / counts.clamp_min(1), otherwise)


def _means(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """The mean row of every group; of all rows where a group is empty."""
    return _centres(values, groups, values.mean(0).expand(count, -1))
