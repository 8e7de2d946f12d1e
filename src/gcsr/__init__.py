"""Graph data condensation: a tiny synthetic graph that trains a GNN about as well as the original."""

from importlib import import_module
from types import ModuleType

from gcsr.analyse import Analysis, analyse
from gcsr.api import condense, condense_many, sparsify
from gcsr.checkpoint import Checkpoint
from gcsr.condense import (
    DCG,
    GCSR,
    MTT,
    SFGC,
    SGDD,
    Automatic,
    Bilevel,
    Clusters,
    Coarsening,
    Condenser,
    GCond,
    GCondX,
    Herding,
    KCenter,
    Random,
)
from gcsr.condense.scaling import ScalingChoice, choose_scaling
from gcsr.condensed import CondensedGraph
from gcsr.datasets import load
from gcsr.errors import InputError
from gcsr.evaluate import CostSheet, Evaluation, cost, evaluate, evaluate_full
from gcsr.graph import Graph
from gcsr.report import report
from gcsr.training import TrainingRecipe
from gcsr.tune import Tuning, tune
from gcsr.version import __version__
from gcsr.views import View

__all__ = [
    "DCG",
    "GCSR",
    "MTT",
    "SFGC",
    "SGDD",
    "Analysis",
    "Automatic",
    "Bilevel",
    "Checkpoint",
    "Clusters",
    "Coarsening",
    "CondensedGraph",
    "Condenser",
    "CostSheet",
    "Evaluation",
    "GCond",
    "GCondX",
    "Graph",
    "Herding",
    "InputError",
    "KCenter",
    "Random",
    "ScalingChoice",
    "TrainingRecipe",
    "Tuning",
    "View",
    "__version__",
    "analyse",
    "choose_scaling",
    "condense",
    "condense_many",
    "cost",
    "evaluate",
    "evaluate_full",
    "load",
    "report",
    "sparsify",
    "tune",
]


def __getattr__(name: str) -> ModuleType:
    # PyG takes a second to import and is needed by few.
    if name == "pyg":
        return import_module("gcsr.pyg")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
