"""Training networks on a graph and keeping the epoch that validates best."""

from gcsr.training.fit import (
    Fitted,
    Run,
    TrainingRecipe,
    fit,
    networks_at_once,
    paper_recipe,
    topology_of,
)
from gcsr.training.score import accuracy, predictions

__all__ = [
    "Fitted",
    "Run",
    "TrainingRecipe",
    "accuracy",
    "fit",
    "networks_at_once",
    "paper_recipe",
    "predictions",
    "topology_of",
]
