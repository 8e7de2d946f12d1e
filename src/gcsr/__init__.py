"""Graph data condensation: a tiny synthetic graph that trains a GNN about as well as the original."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcsr.version import __version__

if TYPE_CHECKING:
    from gcsr.analysis.analysis import Analysis, analyze
    from gcsr.api import condense, condense_many, sparsify
    from gcsr.auto.automatic import Automatic
    from gcsr.auto.scaling import ScalingChoice, choose_scaling
    from gcsr.data.condensed import CondensedGraph
    from gcsr.data.graph import Graph
    from gcsr.data.views import View
    from gcsr.datasets.loading import load
    from gcsr.evaluation.cost import CostSheet, cost
    from gcsr.evaluation.evaluation import Evaluation
    from gcsr.evaluation.protocol import evaluate, evaluate_full
    from gcsr.methods.base import Condenser
    from gcsr.methods.bilevel import Bilevel
    from gcsr.methods.clusters import Clusters
    from gcsr.methods.coarsening import Coarsening
    from gcsr.methods.dcg import DCG
    from gcsr.methods.gcond import GCond
    from gcsr.methods.gcond_x import GCondX
    from gcsr.methods.gcsr import GCSR
    from gcsr.methods.herding import Herding
    from gcsr.methods.kcenter import KCenter
    from gcsr.methods.mtt import MTT
    from gcsr.methods.random import Random
    from gcsr.methods.sfgc import SFGC
    from gcsr.methods.sgdd import SGDD
    from gcsr.reporting.report import report
    from gcsr.training.fit import TrainingRecipe
    from gcsr.tuning.result import Tuning
    from gcsr.tuning.search import tune
    from gcsr.utils.checkpoint import Checkpoint
    from gcsr.utils.errors import InputError

# Where every public name is. It is imported when it is first asked for, torch with it.
_EXPORTS = {
    "DCG": "gcsr.methods.dcg",
    "GCSR": "gcsr.methods.gcsr",
    "MTT": "gcsr.methods.mtt",
    "SFGC": "gcsr.methods.sfgc",
    "SGDD": "gcsr.methods.sgdd",
    "Analysis": "gcsr.analysis.analysis",
    "Automatic": "gcsr.auto.automatic",
    "Bilevel": "gcsr.methods.bilevel",
    "Checkpoint": "gcsr.utils.checkpoint",
    "Clusters": "gcsr.methods.clusters",
    "Coarsening": "gcsr.methods.coarsening",
    "CondensedGraph": "gcsr.data.condensed",
    "Condenser": "gcsr.methods.base",
    "CostSheet": "gcsr.evaluation.cost",
    "Evaluation": "gcsr.evaluation.evaluation",
    "GCond": "gcsr.methods.gcond",
    "GCondX": "gcsr.methods.gcond_x",
    "Graph": "gcsr.data.graph",
    "Herding": "gcsr.methods.herding",
    "InputError": "gcsr.utils.errors",
    "KCenter": "gcsr.methods.kcenter",
    "Random": "gcsr.methods.random",
    "ScalingChoice": "gcsr.auto.scaling",
    "TrainingRecipe": "gcsr.training.fit",
    "Tuning": "gcsr.tuning.result",
    "View": "gcsr.data.views",
    "analyze": "gcsr.analysis.analysis",
    "choose_scaling": "gcsr.auto.scaling",
    "condense": "gcsr.api",
    "condense_many": "gcsr.api",
    "cost": "gcsr.evaluation.cost",
    "evaluate": "gcsr.evaluation.protocol",
    "evaluate_full": "gcsr.evaluation.protocol",
    "load": "gcsr.datasets.loading",
    "report": "gcsr.reporting.report",
    "sparsify": "gcsr.api",
    "tune": "gcsr.tuning.search",
}

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
    "analyze",
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
_PACKAGES = ("datasets", "equations", "models", "paper", "pyg", "training")


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    elif name in _PACKAGES:
        value = import_module(f"gcsr.{name}")
    elif name == "analyse":
        from warnings import warn  # noqa: PLC0415

        warn("gcsr.analyse is called gcsr.analyze now.", DeprecationWarning, stacklevel=2)
        return __getattr__("analyze")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
