"""Train on the small graph, test on the real one; what that costs and saves."""

from gcsr.evaluate.cost import cost
from gcsr.evaluate.evaluation import Evaluation
from gcsr.evaluate.protocol import evaluate, evaluate_full
from gcsr.evaluate.sheet import CostSheet

__all__ = ["CostSheet", "Evaluation", "cost", "evaluate", "evaluate_full"]
