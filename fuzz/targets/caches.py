"""Files that this library wrote for itself, and that somebody may have put there."""

from __future__ import annotations

import functools
import json
import tempfile
from pathlib import Path

import torch

from fuzz.containers import Lines, Safetensors
from fuzz.target import Target
from fuzz.targets.small import written
from gcsr.benchmarking.cells import Protocol
from gcsr.benchmarking.measurement import Outcome, recalled
from gcsr.benchmarking.store import Store
from gcsr.paper.experiments import EXPERIMENTS
from gcsr.paper.tables import compare, csv_text, markdown
from gcsr.reporting.reproduced import reproduced_page
from gcsr.training.expert_cache import ExpertCache

_LIKE = (torch.empty(2, 3, 2, 2), torch.empty(2, 3, 2))
_CPU = torch.device("cpu")
_TABLE, _PROTOCOL = "table2", Protocol(1, 1)


def _expert_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        cache = ExpertCache(1 << 20, Path(folder))
        weights = tuple(torch.ones_like(p) for p in _LIKE)
        cache.save("plain", weights, None)
        cache.save("told", weights, torch.ones(4, 2))
        return [cache.path(key).read_bytes() for key in ("plain", "told")]


def _read_experts(data: bytes, folder: Path) -> object:
    cache = ExpertCache(1 << 30, folder)
    written(cache.folder, "key.safetensors", data)
    return [cache.load("key", _LIKE, prediction=asked, device=_CPU) for asked in (False, True)]


@functools.cache
def _experiment() -> tuple[object, dict[str, object]]:
    experiment = next(one for one in EXPERIMENTS.values() if one.drawn and one.cells)
    return experiment, {cell.settings_key(_PROTOCOL): cell for cell in experiment.cells[:3]}


def _row_seeds() -> list[bytes]:
    _, cells = _experiment()
    rows = [
        {
            "key": f"{number}",
            "cell": key,
            "method": cell.method,
            "dataset": cell.dataset,
            "nodes": cell.nodes,
            "graphs": 1,
            "runs": 1,
            "mean": 80.0,
            "std": 1.0,
            "values": {"s(0, 0)": [1.0]},
            "drawn": {"ccns": [[1.0, None], [0.5, 1.0]]},
            "leaks_test_labels": True,
        }
        for number, (key, cell) in enumerate(cells.items())
    ]
    return ["".join(json.dumps(row) + "\n" for row in rows[:count]).encode() for count in (1, 3)]


def _read_rows(data: bytes, folder: Path) -> object:
    """The table that a run would print and write, of every row that is there."""
    experiment, cells = _experiment()
    store = Store(written(folder, "rows.jsonl", data))
    outcomes = {cell: Outcome("not run") for cell in experiment.cells}
    outcomes |= {cell: recalled(cell, store, _PROTOCOL) for cell in cells.values()}
    compared = compare(experiment, outcomes)
    return markdown(experiment, compared, _PROTOCOL), csv_text(experiment, compared, _PROTOCOL)


def _read_folder(data: bytes, folder: Path) -> object:
    written(folder, "rows.jsonl", data)
    return reproduced_page(folder).render()


_WORDS = (
    b'"mean"',
    b'"drawn"',
    b"NaN",
    b"1e999",
    b"null",
    b"[[]]",
    b"true",
    b'"key": ',
    b"9" * 400,
)
TARGETS = (
    Target("experts", "cached experts", _expert_seeds, _read_experts, Safetensors()),
    Target("rows", "rows of `gcsr reproduce`", _row_seeds, _read_rows, Lines(), _WORDS),
    Target("rows-page", "rows in `gcsr report`", _row_seeds, _read_folder, Lines(), _WORDS),
)
