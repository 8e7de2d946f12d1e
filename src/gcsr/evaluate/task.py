"""What is trained and tested in an evaluation, as a whole or some of its networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcsr.condensed import CondensedGraph
from gcsr.evaluate.modules import evaluate_module
from gcsr.evaluate.trial import Trial, condensed_batches, real_batches
from gcsr.graph import Graph
from gcsr.models import testing_model
from gcsr.progress import Progress
from gcsr.training import TrainingRecipe
from gcsr.views import View

ModelChoice = str | nn.Module | Callable[[], nn.Module]


@dataclass(frozen=True, eq=False)
class Task:
    """``runs`` networks on each of some condensed graphs or, where there is none, on the whole one."""

    graphs: tuple[CondensedGraph, ...]
    model: ModelChoice
    runs: int
    recipe: TrainingRecipe
    hidden: int
    seed: int

    @property
    def networks(self) -> range:
        """All networks by number: run r of graph g is ``g * runs + r``."""
        return range(max(1, len(self.graphs)) * self.runs)

    def scores(
        self, graph: Graph, device: torch.device, networks: range, progress: Progress
    ) -> tuple[Tensor, Tensor]:
        """Test and validation accuracy of some networks, in their order.

        On a CPU a network's scores do not depend on which others are trained with it; on CUDA those
        of one call are batched, and the last bits may.
        """
        view = View(graph)
        if not isinstance(self.model, str):
            return evaluate_module(
                self.model,
                self.graphs,
                view,
                runs=self.runs,
                recipe=self.recipe,
                seed=self.seed,
                device=device,
                progress=progress,
                networks=networks,
            )
        network = testing_model(self.model, self.hidden)
        trial = Trial(network, view, device, self.recipe, self.seed)
        if self.graphs:
            batches = condensed_batches(trial, self.graphs, self.runs)
            batches = [batch for batch in batches if batch.networks.start in networks]
        else:
            batches = real_batches(trial, view.training(), graph.num_classes, networks)
        return trial.scores(batches, progress)
