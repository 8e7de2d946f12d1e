"""Models by name.

``sage`` is GraphSAGE and ``cheby`` ChebNet. The paper's variants of them are ``sage-paper``, which is a
GCN, and ``cheby-paper``; its tables ask for those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gcsr.models.base import Model
from gcsr.models.gat import GAT
from gcsr.models.gcn import GCN
from gcsr.models.mlp import MLP
from gcsr.models.sage import SAGE, Cheby, PaperCheby
from gcsr.models.sgc import APPNP, SGC
from gcsr.utils.errors import require_one_of

MODELS: dict[str, Callable[[int], Model]] = {
    "mlp": MLP,
    "sgc": SGC,
    "sgc-linear": partial(SGC, relu=False, name="sgc-linear"),
    "gcn": GCN,
    "gcn-linear": partial(GCN, relu=False, name="gcn-linear"),
    "sage": SAGE,
    "sage-paper": partial(GCN, name="sage-paper"),
    "sage-paper-linear": partial(GCN, relu=False, name="sage-paper-linear"),
    "appnp": APPNP,
    "appnp-linear": partial(APPNP, relu=False, name="appnp-linear"),
    "cheby": Cheby,
    "cheby-paper": PaperCheby,
    "gat": GAT,
}
# While condensing the paper's SGC is linear; attention has no place in a dense synthetic graph that
# is differentiated through.
CONDENSING_MODELS = tuple(name for name in MODELS if name != "gat" and not name.endswith("-linear"))


def testing_model(name: str, hidden_channels: int = 256) -> Model:
    """The model that is trained on a condensed graph and tested on the real one."""
    require_one_of("model", name, MODELS)
    return MODELS[name](hidden_channels)


def condensing_model(name: str, hidden_channels: int = 256) -> Model:
    """The model whose training is matched while condensing; SGC is linear here."""
    require_one_of("model", name, CONDENSING_MODELS)
    return MODELS["sgc-linear" if name == "sgc" else name](hidden_channels)
