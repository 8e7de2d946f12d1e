"""Losses, probabilities and scores of single-label and multi-label classification.

Labels are classes ``(n,)`` or, where a node may have several labels, a 0/1 matrix ``(n, C)``. Only this
module knows what follows from that: a softmax, cross-entropy and accuracy, or a sigmoid for every
label, binary cross-entropy and micro-F1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot, softplus


def measure_name(multi_label: bool) -> str:
    """What :func:`score_of` is called."""
    return "micro-F1" if multi_label else "accuracy"


def targets_of(labels: Tensor, num_classes: int) -> Tensor:
    """Labels as targets ``(n, C)``: one-hot rows, or the 0/1 matrix itself."""
    return (labels if labels.ndim == 2 else one_hot(labels, num_classes)).float()


def probabilities(logits: Tensor, multi_label: bool) -> Tensor:
    """Of the classes, or of every label by itself."""
    return logits.sigmoid() if multi_label else logits.softmax(-1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean negative log-likelihood over nodes, keeping leading dimensions.

    ``targets`` are class shares ``(..., n, C)``: one-hot rows for hard labels.
    """
    return -(targets * logits.log_softmax(-1)).sum(-1).mean(-1)


def divergence(logits: Tensor, targets: Tensor) -> Tensor:
    r"""Mean over nodes of :math:`\sum_c y_c (\log y_c - \log p_c)`, the cross-entropy for hard ones."""
    entropy: Tensor = torch.special.entr(targets).sum(-1).mean(-1)
    return cross_entropy(logits, targets) - entropy


def over_labeled(targets: Tensor) -> Tensor:
    """Targets with which :func:`cross_entropy` is the mean over labeled nodes alone.

    A node without a label has a row of zeros; the rows of the others are scaled up by n over their
    number, which changes nothing where all are labeled.
    """
    labeled = (targets.sum(-1) > 0).sum(-1)
    return targets * (targets.shape[-2] / labeled).to(targets.dtype)[..., None, None]


def training_loss(logits: Tensor, targets: Tensor, multi_label: bool) -> Tensor:
    """Cross-entropy, or binary cross-entropy as the mean over nodes and labels.

    Targets are ``(..., n, C)``; leading dimensions are kept.
    """
    if not multi_label:
        return cross_entropy(logits, targets)
    return (softplus(logits) - targets * logits).mean((-2, -1))


def predicted(logits: Tensor, multi_label: bool) -> Tensor:
    """Classes ``(..., n)``, or truth values ``(..., n, C)``: labels that are likelier than not."""
    return logits > 0 if multi_label else logits.argmax(-1)


def score_of(predictions: Tensor, labels: Tensor) -> Tensor:
    """Accuracy, or micro-F1, of predictions ``(..., n)`` or ``(..., n, C)``, between 0 and 1."""
    if labels.ndim == 1:
        return (predictions == labels).double().mean(-1)
    right = (predictions & (labels > 0)).sum((-2, -1))
    asserted = predictions.sum((-2, -1)) + (labels > 0).sum()
    return 2 * right.double() / asserted.clamp_min(1)
