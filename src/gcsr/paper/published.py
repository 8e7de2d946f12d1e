"""The numbers of the paper (``published.toml``); ``experiments.py`` compares them with ours."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TypeVar

Mean = tuple[float, float]
T = TypeVar("T", int, float)
_FILE = tomllib.loads((files("gcsr.paper") / "published.toml").read_text(encoding="utf-8"))


def _rows(name: str) -> dict[str, dict[str, list[float]]]:
    """Numbers by row and column, with their deviation where there is one."""
    head, *lines = _FILE[name].strip().splitlines()
    columns, found = head.split(), {}
    for line in lines:
        words = line.split()
        values = [[float(part) for part in word.split("±")] for word in words[-len(columns) :]]
        found[" ".join(words[: -len(columns)])] = dict(zip(columns, values, strict=True))
    return found


def _table(name: str) -> dict[str, dict[str, Mean]]:
    rows = _rows(name).items()
    return {row: {key: (one[0], one[1]) for key, one in line.items()} for row, line in rows}


def _sweep(name: str, kind: type[T]) -> dict[str, dict[T, Mean]]:
    """A table whose columns are values of a setting."""
    rows = _table(name).items()
    return {row: {kind(key): mean for key, mean in line.items()} for row, line in rows}


_TABLE1, _TABLE2, _TABLE4 = _rows("table1"), _table("table2"), _rows("table4")
STATISTICS = tuple(_TABLE1["cora"])
TABLE1 = {row: tuple(one[0] for one in line.values()) for row, line in _TABLE1.items()}
# By method, then dataset and number of nodes.
TABLE2: dict[str, dict[tuple[str, int], Mean]] = {
    method: {(row.split()[0], int(row.split()[1])): line[method] for row, line in _TABLE2.items()}
    for method in _TABLE2["cora 70"]
}
WHOLE = _table("whole")["whole graph"]
TABLE3, TABLE5, MPI, REGULARIZER = map(_table, ("table3", "table5", "mpi", "regularizer"))
TEST_MODELS = tuple(name for name in _TABLE4["cora gcsr"] if name != "average")
TABLE4: dict[str, dict[str, dict[str, float]]] = {}
for _row, _line in _TABLE4.items():
    _means = {model: one[0] for model, one in _line.items()}
    TABLE4.setdefault(_row.split()[0], {})[_row.split()[1]] = _means
HOPS = _sweep("hops", int)
TAU, GAMMA, ALPHA, BETA = (_sweep(name, float) for name in ("tau", "gamma", "alpha", "beta"))
CCNS_ORIGINAL: dict[str, float] = _FILE["ccns_original"]
CCNS_CORRELATION: dict[str, float | None] = {
    name: _FILE["ccns_correlation"].get(name) for name in ("gcond", "sgdd", "gcsr")
}
EXPERIMENTS: dict[str, dict[str, str | list[str]]] = _FILE["experiments"]
