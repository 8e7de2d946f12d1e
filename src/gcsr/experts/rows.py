"""The training nodes as experts see them, in parts where they are too many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from gcsr.blocks import prepare_on
from gcsr.equations import cross_entropy
from gcsr.models import Model, Params, Prepared
from gcsr.views import VisibleGraph

# Activations of one expert, forwards and backwards, stay below this many numbers.
ACTIVATION_BUDGET = {"cpu": 2**28, "cuda": 2**31}


class TrainingRows:
    """What a model needs of the training nodes, computed once.

    Where the activations of all training nodes would not fit, nodes are taken in parts and the
    gradients of the parts are added up: the step stays that of the full batch.
    """

    def __init__(
        self, model: Model, visible: VisibleGraph, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._model = model
        nodes, classes = visible.train, visible.num_classes
        targets = torch.nn.functional.one_hot(visible.train_labels, classes).to(device, dtype)
        whole = prepare_on(model, visible, nodes, device, dtype)
        self.activations = 2 * whole.inputs.shape[-2] * getattr(model, "hidden", 256)
        count = -(-self.activations // ACTIVATION_BUDGET[device.type])
        self.parts: list[tuple[Prepared, Tensor]] = [(whole, targets)]
        if count > 1:
            cuts = torch.arange(nodes.numel()).chunk(count)
            self.parts = [
                (
                    _cut(whole, cut) or prepare_on(model, visible, nodes[cut], device, dtype),
                    targets[cut],
                )
                for cut in cuts
            ]
        self._count = nodes.numel()

    def gradients(self, params: Params) -> tuple[Tensor, ...]:
        """Gradients of every network's mean loss over all training nodes."""
        parts = self._gradients(params)
        total = next(parts)
        for gradients in parts:
            for added, gradient in zip(total, gradients, strict=True):
                added.add_(gradient)
        return total

    def _gradients(self, params: Params) -> Iterator[tuple[Tensor, ...]]:
        for prepared, targets in self.parts:
            loss = cross_entropy(self._model.logits(params, prepared), targets).sum()
            if len(self.parts) > 1:
                loss = loss * (targets.shape[0] / self._count)
            yield torch.autograd.grad(loss, params)


def _cut(whole: Prepared, rows: Tensor) -> Prepared | None:
    """Some rows of inputs that are propagated already; ``None`` where layers propagate later."""
    if whole.outer or whole.edges is not None or not isinstance(whole.inputs, Tensor):
        return None
    ones = whole.ones
    return replace(whole, inputs=whole.inputs[rows], ones=None if ones is None else ones[rows])
