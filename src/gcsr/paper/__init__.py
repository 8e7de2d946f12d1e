"""Every table of the paper as data (settings and published numbers), and one runner."""

from gcsr.paper.cells import Axis, Cell, Experiment, Line, Protocol
from gcsr.paper.experiments import EXPERIMENTS, experiment
from gcsr.paper.runner import recall, reproduce
from gcsr.paper.store import Store
from gcsr.paper.work import Outcome

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
