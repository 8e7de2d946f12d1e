r"""Where condensed features may start instead of at sampled training rows: class-wise centres.

Every visible node belongs to the class that its teachers put first (training labels are kept), and the
nodes of a class are grouped (:mod:`gcsr.condense.centres`). No test label is read; validation labels
decide when teachers have learned enough and how sure of themselves they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcsr.condense.centres import GROUPINGS, cluster_start
from gcsr.condense.fields import truth_value, whole_number
from gcsr.condense.initialise import Start, propagated_features
from gcsr.condense.teachers import TEACHERS, class_shares
from gcsr.devices import stream
from gcsr.errors import require_one_of
from gcsr.progress import Progress
from gcsr.views import CondensingView, VisibleGraph


@dataclass(frozen=True)
class Clustering:
    """How centres are made: settings of every method that may begin at them, by their names there."""

    k: int
    teacher: str
    tempered: bool
    grouping: str
    soft_labels: bool
    expert_seed: int

    @classmethod
    def of(cls, method: object) -> Clustering:
        """What a method is told; what nobody can cluster by is refused."""
        asked = cls(**{field.name: getattr(method, field.name) for field in fields(cls)})
        require_one_of("teacher", asked.teacher, TEACHERS)
        require_one_of("grouping", asked.grouping, GROUPINGS)
        truth_value(asked, "soft_labels", "tempered")
        whole_number(asked, "k", "expert_seed")
        return asked


def class_centres(
    view: CondensingView,
    budget: Tensor,
    seeds: Sequence[int],
    asked: Clustering,
    *,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress,
) -> list[Start]:
    """A clustered start for every seed; all of them ask the same teachers."""
    taught = class_shares(
        view,
        asked.teacher,
        seed=asked.expert_seed,
        device=device,
        tempered=asked.tempered,
        progress=progress,
    )
    unlabeled = bool((view.visible.labels < 0).any())
    labeler = asked.teacher if unlabeled else None
    # With soft labels and with hard ones the centres are the same.
    same = (replace(asked, soft_labels=False), str(device), dtype, *budget.tolist())
    keys = {seed: (seed, *same) for seed in seeds}
    with _LOCK:
        known = _KNOWN.setdefault(view.visible, {})
    new = [seed for seed, key in keys.items() if key not in known]
    if new:
        features = propagated_features(view.visible, asked.k, device, dtype)
        shares = taught.shares.to(features)
        for seed in new:
            generator = stream(seed, "clusters")
            start = cluster_start(features, shares, budget, generator, asked.grouping)
            known[keys[seed]] = replace(start, temperature=taught.temperature, labeler=labeler)
    return [_handed_out(known[keys[seed]], asked.soft_labels) for seed in seeds]


# Starts of graphs that are still in use: several methods may begin at the same ones.
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
