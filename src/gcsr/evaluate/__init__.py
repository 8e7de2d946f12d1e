"""Train on the small graph, test on the real one."""

from gcsr.evaluate.evaluation import Evaluation
from gcsr.evaluate.protocol import evaluate, evaluate_full

__all__ = ["Evaluation", "evaluate", "evaluate_full"]
