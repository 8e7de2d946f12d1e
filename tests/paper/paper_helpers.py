"""What the tests of the reproduced tables share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcsr.benchmarking.cells import Protocol, cell
from gcsr.paper.experiments import Axis, Experiment, Line
from helpers import planted_graph

# Small graphs under the names of datasets, with room for the paper's middle sizes and more.
STANDINS = {"cora": 110, "citeseer": 110, "reddit": 120}


def standins(root: Path, *names: str) -> Path:
    """A data folder that holds small planted graphs and nothing else."""
    (root / "graphs").mkdir(parents=True)
    for name in names or STANDINS:
        inductive = name == "reddit"
        graph = planted_graph(
            per_class=STANDINS[name] + 40 * inductive,
            train_per_class=110 if inductive else 8,
            inductive=inductive,
        )
        graph.renamed(name).to_npz(root / "graphs" / f"{name}.npz")
    return root


QUICK = Protocol(1, 1, quick=True)
ABSENT = "ogbn-arxiv"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def _line(tau: float, dataset: str = "cora") -> Line:
    own = {"tau": tau}
    return Line(
        dataset,
        6,
        f"tau = {tau:g}",
        60.0,
        1.5,
        (cell("gcsr", dataset, 6, **own),),
        (cell("gcsr", dataset, 6, **own, prior="predicted"),),
        x=tau,
        series=dataset,
    )


# Two values of tau, once on a dataset that is absent, and random subsets with two test models.
TINY = Experiment(
    "tiny",
    "A tiny table",
    (
        _line(0.5),
        _line(0.9),
        _line(0.5, ABSENT),
        Line("cora", 6, "random", None, cells=(cell("random", "cora", 6),), x=1.0, series="cora"),
        Line(
            "cora",
            6,
            "random, average",
            50.0,
            cells=(cell("random", "cora", 6), cell("random", "cora", 6, test="mlp")),
            x=2.0,
            series="cora",
        ),
    ),
    ("A note.",),
    Axis("tau"),
)
