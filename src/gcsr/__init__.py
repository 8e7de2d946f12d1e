"""Graph data condensation: a tiny synthetic graph that trains a GNN about as well as the original."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcsr.version import __version__ as __version__

if TYPE_CHECKING:  # `as` exports a name to type checkers
    from gcsr.analysis.analysis import Analysis as Analysis
    from gcsr.analysis.analysis import analyze as analyze
    from gcsr.analysis.privacy import Privacy as Privacy
    from gcsr.analysis.privacy import privacy as privacy
    from gcsr.api import condense as condense
    from gcsr.api import condense_many as condense_many
    from gcsr.api import sparsify as sparsify
    from gcsr.auto.automatic import Automatic as Automatic
    from gcsr.auto.scaling import ScalingChoice as ScalingChoice
    from gcsr.auto.scaling import choose_scaling as choose_scaling
    from gcsr.benchmarking.grid import benchmark as benchmark
    from gcsr.auto.update import update as update
    from gcsr.data.condensed import CondensedGraph as CondensedGraph
    from gcsr.data.graph import Graph as Graph
    from gcsr.data.views import View as View
    from gcsr.datasets.loading import load as load
    from gcsr.evaluation.cost import CostSheet as CostSheet
    from gcsr.evaluation.cost import cost as cost
    from gcsr.evaluation.evaluation import Evaluation as Evaluation
    from gcsr.evaluation.leaks import check_leaks as check_leaks
    from gcsr.evaluation.protocol import evaluate as evaluate
    from gcsr.evaluation.protocol import evaluate_full as evaluate_full
    from gcsr.evaluation.protocol import train as train
    from gcsr.methods.base import Condenser as Condenser
    from gcsr.methods.bilevel import Bilevel as Bilevel
    from gcsr.methods.bonsai import Bonsai as Bonsai
    from gcsr.methods.cgc import CGC as CGC
    from gcsr.methods.cgc_x import CGCX as CGCX
    from gcsr.methods.clusters import Clusters as Clusters
    from gcsr.methods.coarsening import Coarsening as Coarsening
    from gcsr.methods.dcg import DCG as DCG
    from gcsr.methods.dm import DM as DM
    from gcsr.methods.doscond import DosCond as DosCond
    from gcsr.methods.gcdm import GCDM as GCDM
    from gcsr.methods.gcdm import GCDMX as GCDMX
    from gcsr.methods.gcond import GCond as GCond
    from gcsr.methods.gcond_x import GCondX as GCondX
    from gcsr.methods.gcsr import GCSR as GCSR
    from gcsr.methods.herding import Herding as Herding
    from gcsr.methods.kcenter import KCenter as KCenter
    from gcsr.methods.krr import KRR as KRR
    from gcsr.methods.mtt import MTT as MTT
    from gcsr.methods.random import Random as Random
    from gcsr.methods.sfgc import SFGC as SFGC
    from gcsr.methods.sgdd import SGDD as SGDD
    from gcsr.reporting.report import report as report
    from gcsr.training.fit import TrainingRecipe as TrainingRecipe
    from gcsr.tuning.architecture import SearchResult as SearchResult
    from gcsr.tuning.architecture import search as search
    from gcsr.tuning.result import Tuning as Tuning
    from gcsr.tuning.search import tune as tune
    from gcsr.utils.checkpoint import Checkpoint as Checkpoint
    from gcsr.utils.errors import InputError as InputError
    from gcsr.utils.errors import InputWarning as InputWarning

# The module of every public name, imported when the name is first used.
_EXPORTS = {
    "CGC": "gcsr.methods.cgc",
    "CGCX": "gcsr.methods.cgc_x",
    "DCG": "gcsr.methods.dcg",
    "DM": "gcsr.methods.dm",
    "GCDM": "gcsr.methods.gcdm",
    "GCDMX": "gcsr.methods.gcdm",
    "GCSR": "gcsr.methods.gcsr",
    "KRR": "gcsr.methods.krr",
    "MTT": "gcsr.methods.mtt",
    "SFGC": "gcsr.methods.sfgc",
    "SGDD": "gcsr.methods.sgdd",
    "Analysis": "gcsr.analysis.analysis",
    "Automatic": "gcsr.auto.automatic",
    "Bilevel": "gcsr.methods.bilevel",
    "Bonsai": "gcsr.methods.bonsai",
    "Checkpoint": "gcsr.utils.checkpoint",
    "Clusters": "gcsr.methods.clusters",
    "Coarsening": "gcsr.methods.coarsening",
    "CondensedGraph": "gcsr.data.condensed",
    "Condenser": "gcsr.methods.base",
    "CostSheet": "gcsr.evaluation.cost",
    "DosCond": "gcsr.methods.doscond",
    "Evaluation": "gcsr.evaluation.evaluation",
    "GCond": "gcsr.methods.gcond",
    "GCondX": "gcsr.methods.gcond_x",
    "Graph": "gcsr.data.graph",
    "Herding": "gcsr.methods.herding",
    "InputError": "gcsr.utils.errors",
    "InputWarning": "gcsr.utils.errors",
    "KCenter": "gcsr.methods.kcenter",
    "Privacy": "gcsr.analysis.privacy",
    "Random": "gcsr.methods.random",
    "ScalingChoice": "gcsr.auto.scaling",
    "SearchResult": "gcsr.tuning.architecture",
    "TrainingRecipe": "gcsr.training.fit",
    "Tuning": "gcsr.tuning.result",
    "View": "gcsr.data.views",
    "analyze": "gcsr.analysis.analysis",
    "benchmark": "gcsr.benchmarking.grid",
    "check_leaks": "gcsr.evaluation.leaks",
    "choose_scaling": "gcsr.auto.scaling",
    "condense": "gcsr.api",
    "condense_many": "gcsr.api",
    "cost": "gcsr.evaluation.cost",
    "evaluate": "gcsr.evaluation.protocol",
    "evaluate_full": "gcsr.evaluation.protocol",
    "load": "gcsr.datasets.loading",
    "privacy": "gcsr.analysis.privacy",
    "report": "gcsr.reporting.report",
    "search": "gcsr.tuning.architecture",
    "sparsify": "gcsr.api",
    "train": "gcsr.evaluation.protocol",
    "tune": "gcsr.tuning.search",
    "update": "gcsr.auto.update",
    "__version__": "gcsr.version",
}

__all__ = list(_EXPORTS)
_PACKAGES = ("datasets", "equations", "models", "paper", "pyg", "training")


def __getattr__(name: str) -> Any:
    if name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    elif name in _PACKAGES:
        value = import_module(f"gcsr.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
