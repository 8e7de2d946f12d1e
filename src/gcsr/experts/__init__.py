"""Teachers: networks trained on the real graph, and the paths their weights took."""

from gcsr.experts.predict import mean_prediction
from gcsr.experts.recipe import ExpertRecipe
from gcsr.experts.train import train_experts
from gcsr.experts.trajectories import Trajectories

__all__ = ["ExpertRecipe", "Trajectories", "mean_prediction", "train_experts"]
