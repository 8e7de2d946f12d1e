"""Learners by the name of their network."""

from __future__ import annotations

from collections.abc import Callable

from gcsr.condense.gradient.learners.base import Learner
from gcsr.condense.gradient.learners.linear import SingleLayer, TwoLinearLayers
from gcsr.condense.gradient.learners.relu import TwoReluLayers
from gcsr.errors import require_one_of

# sgc: one layer; sgc2: two linear layers; sgc-relu: two layers with a ReLU; all propagate twice.
LEARNERS: dict[str, Callable[[int], Learner]] = {
    "sgc": lambda hidden: SingleLayer(),
    "sgc2": TwoLinearLayers,
    "sgc-relu": lambda hidden: TwoReluLayers("sgc", hidden),
    "gcn": lambda hidden: TwoReluLayers("gcn", hidden),
}


def learner_for(name: str, hidden: int) -> Learner:
    """The learner of that name."""
    require_one_of("model", name, LEARNERS)
    return LEARNERS[name](hidden)
