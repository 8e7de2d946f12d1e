"""Teachers: networks trained on the real graph, and the paths their weights took."""

from gcsr.experts.obtain import Experts, experts_for, forget_experts
from gcsr.experts.order import ExpertOrder
from gcsr.experts.predict import MeanPrediction
from gcsr.experts.recipe import ExpertRecipe
from gcsr.experts.train import School, train_experts
from gcsr.experts.trajectories import Trajectories

__all__ = [
    "ExpertOrder",
    "ExpertRecipe",
    "Experts",
    "MeanPrediction",
    "School",
    "Trajectories",
    "experts_for",
    "forget_experts",
    "train_experts",
]
