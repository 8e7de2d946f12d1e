r"""Where condensed features may start instead of at sampled training rows: class-wise centres.

Every visible node belongs to the class that its teachers put first (training labels are kept). The
nodes of a class are grouped by k-means of their propagated features :math:`\hat A^k X`; a centre is a
condensed node, and the mean of what the teachers say of its nodes is its label. No validation or test
label is read, and nothing is larger than nodes x features or nodes x classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from gcsr.condense.initialise import JITTER, Start, propagated_features
from gcsr.condense.teachers import class_shares
from gcsr.devices import stream
from gcsr.progress import Progress
from gcsr.views import CondensingView

ROUNDS = 30


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
    features = propagated_features(view.visible, hops, device, dtype)
    shares = taught.shares.to(features)
    starts = [
        cluster_start(features, shares, budget, stream(seed, purpose), soft=soft) for seed in seeds
    ]
    return [replace(start, temperature=taught.temperature) for start in starts]


def cluster_start(
    features: Tensor, shares: Tensor, budget: Tensor, generator: torch.Generator, *, soft: bool
) -> Start:
    """A start whose rows are centres, in blocks by class.

    Args:
        features: propagated features of the visible nodes, ``(n, d)``.
        shares: what is known of their classes, ``(n, C)``: one-hot where a label is known.
        budget: condensed nodes of each class.
        generator: decides where k-means begins.
        soft: whether labels are the mean shares of the grouped nodes, or their class.
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
    shared = torch.cat(targets)
    if not soft:
        shared = torch.nn.functional.one_hot(shared.argmax(1), shares.shape[1]).to(shares)
    return Start(torch.cat(rows), torch.empty(0, dtype=torch.int64), tuple(notes), shared)


def k_means(x: Tensor, k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Centres ``(k, d)`` and the group of every row, by Lloyd's rounds from random rows.

    A k-means++ start, which prefers rows far from all others, validated worse: a centre counts as much
    as any other node, however few stand behind it. Sums are products with a one-hot matrix, which give
    the same bytes on CUDA each time. A group that runs empty keeps its centre.
    """
    # Distances are differences of large squares unless the rows lie around zero.
    middle = x.mean(0)
    x = x - middle
    begin = torch.randperm(x.shape[0], generator=generator)[:k]
    centres = x[begin.to(x.device)].clone()
    squares = x.square().sum(1, keepdim=True)
    groups = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
    for _ in range(ROUNDS):
        groups = (squares - 2 * x @ centres.T + centres.square().sum(1)).argmin(1)
        inside = torch.nn.functional.one_hot(groups, k).to(x)
        counts = inside.sum(0)[:, None]
        moved = torch.where(counts > 0, inside.T @ x / counts.clamp_min(1), centres)
        if torch.equal(moved, centres):
            break
        centres = moved
    return centres + middle, groups


def _means(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """The mean row of every group; of all rows where a group is empty."""
    inside = torch.nn.functional.one_hot(groups, count).to(values)
    counts = inside.sum(0)[:, None]
    sums = inside.T @ values
    return torch.where(counts > 0, sums / counts.clamp_min(1), values.mean(0))
