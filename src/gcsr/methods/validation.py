"""The validation score of a result, with which a method chooses between iterates."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from gcsr.data.condensed import CondensedGraph
from gcsr.data.objects import described
from gcsr.engines.iterates import QUICK_RUNS, QuickScore
from gcsr.engines.result import CondensationResult, Context
from gcsr.methods.returned import require_tensors
from gcsr.utils.errors import require, require_integer
from gcsr.utils.safe_io import naming


def validation_score(
    ctx: Context, result: CondensationResult, *, networks: int = QUICK_RUNS, seed: int = 0
) -> float:
    """Mean validation accuracy, 0 to 1, of quickly trained GCNs; micro-F1 of a multi-label graph.

    It reads validation labels and no test labels. The same seed gives the same score.

    Args:
        ctx: what :meth:`gcsr.Condenser.run` was given.
        result: what :meth:`gcsr.Condenser.run` may return for one seed.
        networks: how many GCNs are trained.
        seed: of their initial weights; results to compare need the same seed.
    """
    require_integer("networks", networks, 1)
    require_integer("seed", seed)
    visible = ctx.view.visible
    with naming("validation_score"):
        require(
            isinstance(result, CondensationResult),
            f"result must be a CondensationResult, got {described(result)}.",
        )
        x, a, y = (
            part.detach() if isinstance(part, Tensor) else part
            for part in (result.x, result.adjacency, result.y)
        )
        result = replace(result, x=x, adjacency=a, y=y)
        features = int(visible.x.shape[1])
        require_tensors(result, nodes=ctx.nodes, fewer=True, num_features=features)
        x, a, y = (part.cpu() for part in (result.x, result.adjacency, result.y))
        small = CondensedGraph(x, a, y, visible.num_classes, multi_label=visible.multi_label)
    quick = QuickScore(ctx.view.validation, ctx.device, networks=networks, seed=seed)
    return quick(*(p.to(ctx.device) for p in (small.x, small.adjacency, small.targets)))
