"""Models by name.

``sage`` and ``cheby`` are the paper's variants; the textbook ones carry ``-textbook``.
"""

from __future__ import annotations

from collections.abc import Callable

from gcsr.errors import require_one_of
from gcsr.models.appnp import APPNP
from gcsr.models.base import Model
from gcsr.models.cheby import Cheby, PaperCheby
from gcsr.models.gat import GAT
from gcsr.models.gcn import GCN
from gcsr.models.mlp import MLP
from gcsr.models.sage import SAGE
from gcsr.models.sgc import SGC

MODELS: dict[str, Callable[[int], Model]] = {
    "mlp": MLP,
    "sgc": SGC,
    "sgc-linear": lambda hidden: SGC(hidden, relu=False, name="sgc-linear"),
    "gcn": GCN,
    "gcn-linear": lambda hidden: GCN(hidden, relu=False, name="gcn-linear"),
    "sage": lambda hidden: GCN(hidden, name="sage"),
    "sage-linear": lambda hidden: GCN(hidden, relu=False, name="sage-linear"),
    "sage-textbook": SAGE,
    "appnp": APPNP,
    "appnp-linear": lambda hidden: APPNP(hidden, relu=False, name="appnp-linear"),
    "cheby": PaperCheby,
    "cheby-textbook": Cheby,
    "gat": GAT,
}
# While condensing the paper's SGC is linear; attention has no place in a dense synthetic graph that
# is differentiated through.
CONDENSING_MODELS = tuple(name for name in MODELS if name != "gat" and not name.endswith("-linear"))


def testing_model(name: str, hidden: int = 256) -> Model:
    """The model that is trained on a condensed graph and tested on the real one."""
    require_one_of("model", name, MODELS)
    return MODELS[name](hidden)


def condensing_model(name: str, hidden: int = 256) -> Model:
    """The model whose training is matched while condensing; SGC is linear here."""
    require_one_of("model", name, CONDENSING_MODELS)
    return MODELS["sgc-linear" if name == "sgc" else name](hidden)
