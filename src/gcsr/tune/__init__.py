"""Searching a method's settings on validation accuracy (Optuna, the extra ``tune``)."""

from gcsr.tune.result import Trial, Tuning
from gcsr.tune.search import Search, tune
from gcsr.tune.space import Choices, Range, Space

__all__ = ["Choices", "Range", "Search", "Space", "Trial", "Tuning", "tune"]
