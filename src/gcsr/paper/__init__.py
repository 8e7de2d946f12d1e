"""Every table of the paper as data (settings and published numbers), and one runner."""

from gcsr.benchmarking.cells import Cell, Protocol
from gcsr.benchmarking.measurement import Outcome
from gcsr.benchmarking.store import Store
from gcsr.paper.experiments import (
    EXPERIMENTS,
    Axis,
    Experiment,
    Line,
    experiment,
    recall,
    reproduce,
)

__all__ = [
    "EXPERIMENTS",
    "Axis",
    "Cell",
    "Experiment",
    "Line",
    "Outcome",
    "Protocol",
    "Store",
    "experiment",
    "recall",
    "reproduce",
]
