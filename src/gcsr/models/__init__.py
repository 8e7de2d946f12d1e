"""Graph neural networks for condensing and testing, by name."""

from gcsr.models.base import Dropout, Model, Params, Prepared, init_batch
from gcsr.models.registry import CONDENSING_MODELS, MODELS, condensing_model, testing_model
from gcsr.models.sparse import SparseTopology
from gcsr.models.topology import DenseTopology, EmptyTopology, Operator, Topology

__all__ = [
    "CONDENSING_MODELS",
    "MODELS",
    "DenseTopology",
    "Dropout",
    "EmptyTopology",
    "Model",
    "Operator",
    "Params",
    "Prepared",
    "SparseTopology",
    "Topology",
    "condensing_model",
    "init_batch",
    "testing_model",
]
