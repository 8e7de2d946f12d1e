"""Teachers: networks trained on the real graph, and the paths their weights took."""

from gcsr.experts.obtain import Experts, experts_for, forget_experts
from gcsr.experts.predict import MeanPrediction
from gcsr.experts.recipe import ExpertRecipe
from gcsr.experts.train import train_experts
from gcsr.experts.trajectories import Trajectories

__all__ = [
    "ExpertRecipe",
    "Experts",
    "MeanPrediction",
    "Trajectories",
    "experts_for",
    "forget_experts",
    "train_experts",
]
