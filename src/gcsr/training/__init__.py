"""Training networks on a graph and keeping the epoch that validates best."""

from gcsr.training.fit import (
    Fitted,
    Run,
    TrainingRecipe,
    accuracy,
    fit,
    networks_at_once,
    paper_recipe,
    predictions,
    topology_of,
)

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
