"""The networks whose gradients are matched, by name."""

from gcsr.condense.gradient.learners.base import (
    ClassGradients,
    Condensed,
    Learner,
    Reach,
    RealBatch,
    condensed_inputs,
)
from gcsr.condense.gradient.learners.choose import LEARNERS, learner_for

__all__ = [
    "LEARNERS",
    "ClassGradients",
    "Condensed",
    "Learner",
    "Reach",
    "RealBatch",
    "condensed_inputs",
    "learner_for",
]
