r"""The graph neural tangent kernel (Du et al., 2019) of a target graph and a support without edges.

SFGC (Zheng et al., 2023) scores condensed features by ridge regression with this kernel.
With :math:`S = \tilde D^{-1}(A + I)` the mean over a node and its neighbors, aggregating is
:math:`K \leftarrow S_1 K S_2^\top`; on the support, where A' = I, it does nothing. From
:math:`\Sigma = \Theta = S_1 X_1 X_2^\top S_2^\top` two blocks of two fully connected layers follow,

.. math:: \rho = \Sigma / (\sigma_1 \sigma_2), \quad
          \dot\Sigma = (\pi - \arccos\rho) / \pi, \quad
          \Sigma = \sigma_1\sigma_2 [\rho\,\dot\Sigma + \sqrt{1 - \rho^2} / \pi], \quad
          \Theta = \Theta \dot\Sigma + \Sigma,

and after the first block both are aggregated again. :math:`\sigma^2` is the diagonal of
:math:`\Sigma` on its own graph. A layer leaves it as it is (:math:`\rho = 1` there); aggregating does
not, and for that the target's own kernel is needed once. It does not depend on the support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LAYERS = 2


@dataclass(frozen=True, eq=False)
class KernelTarget:
    """What the kernel needs of a target graph, whatever the support is.

    Attributes:
        mean: :math:`S`, a map of signals ``(..., n, c)``.
        inputs: :math:`S X`.
        first, second: :math:`\\sigma` of every node in the first and in the second block.
    """

    mean: Callable[[Tensor], Tensor]
    inputs: Tensor
    first: Tensor
    second: Tensor

    @classmethod
    def of(cls, x: Tensor, mean: Callable[[Tensor], Tensor]) -> KernelTarget:
        """Everything that does not depend on a support; takes an ``(n, n)`` matrix."""
        inputs = mean(x)
        first = deviations(inputs)
        sigma = inputs @ inputs.mT
        for _ in range(LAYERS):
            sigma, _ = layer(sigma, sigma, _products(first, first))
        aggregated = mean(mean(sigma).mT)
        return cls(mean, inputs, first, _floored(aggregated.diagonal().clamp_min(0).sqrt()))


def deviations(inputs: Tensor) -> Tensor:
    """:math:`\\sigma` of nodes with these inputs, never so small that dividing by it fails.

    The kernel of a node without features is zero everywhere, not 0 / 0.
    """
    return _floored(torch.linalg.vector_norm(inputs, dim=-1))


def layer(sigma: Tensor, theta: Tensor, scale: Tensor, most: float = 1.0) -> tuple[Tensor, Tensor]:
    """One fully connected layer with a ReLU; ``scale`` is :math:`\\sigma_1\\sigma_2`.

    Correlations are clipped to ``most``, which is below 1 where gradients are wanted.
    """
    rho = (sigma / scale).clamp(-most, most)
    derivative = 1 - rho.arccos() / math.pi
    sigma = scale * (rho * derivative + (1 - rho * rho).sqrt() / math.pi)
    return sigma, theta * derivative + sigma


def support_kernel(x: Tensor) -> Tensor:
    """:math:`\\Theta` among the nodes of a support, ``(..., n', n')``."""
    sigma = x @ x.mT
    scale = _products(deviations(x), deviations(x))
    theta = sigma
    for _ in range(2 * LAYERS):
        sigma, theta = layer(sigma, theta, scale)
    return theta


def cross_kernel(target: KernelTarget, x: Tensor) -> Tensor:
    """:math:`\\Theta` between target and support nodes, ``(..., n, n')``."""
    sigma = target.inputs @ x.mT
    theta = sigma
    own = deviations(x)
    for sigmas in (target.first, target.second):
        if sigmas is target.second:
            sigma, theta = target.mean(sigma), target.mean(theta)
        scale = _products(sigmas, own)
        for _ in range(LAYERS):
            sigma, theta = layer(sigma, theta, scale)
    return theta


# At a correlation of one the gradient is not finite.
MOST_CORRELATED = 0.9999


@dataclass(frozen=True, eq=False)
class KernelNodes:
    """Nodes of one graph: features ``(..., n, d)``, and how they are aggregated, ``(..., n, n)``.

    Without ``mean``, the rows of which sum to one, every node is its only neighbor.
    """

    x: Tensor
    mean: Tensor | None = None

    def deviations(self, blocks: int, layers: int) -> list[Tensor]:
        """:math:`\\sigma` of every node in each block; a layer leaves it as it is."""
        if self.mean is None:
            return [deviations(self.x)] * blocks
        sigma, found = self.x @ self.x.mT, []
        for _ in range(blocks):
            sigma = self.mean @ sigma @ self.mean.mT
            own = _floored(sigma.diagonal(dim1=-2, dim2=-1)).sqrt()
            found.append(own)
            for _ in range(layers):
                sigma, _ = layer(sigma, sigma, _products(own, own), MOST_CORRELATED)
        return found


def tangent_kernel(one: KernelNodes, other: KernelNodes, blocks: int, layers: int) -> Tensor:
    r""":math:`\Theta` between the nodes of two graphs, ``(..., n, m)``, differentiable.

    Each of the ``blocks`` aggregates, :math:`K \leftarrow S_1 K S_2^\top`, and has ``layers`` fully
    connected layers. It is the structure-based kernel of GC-SNTK (Wang et al., 2024), which multiplies
    by the Kronecker product of S1 and S2 instead.
    """
    sigma = theta = one.x @ other.x.mT
    scales = zip(one.deviations(blocks, layers), other.deviations(blocks, layers), strict=True)
    for first, second in scales:
        if one.mean is not None:
            sigma, theta = one.mean @ sigma, one.mean @ theta
        if other.mean is not None:
            sigma, theta = sigma @ other.mean.mT, theta @ other.mean.mT
        for _ in range(layers):
            sigma, theta = layer(sigma, theta, _products(first, second), MOST_CORRELATED)
    return theta


def ridge_prediction(cross: Tensor, own: Tensor, targets: Tensor, ridge: float) -> Tensor:
    r""":math:`\Theta_{ts} (\Theta_{ss} + \lambda\,\mathrm{tr}(\Theta_{ss}) / n' \cdot I)^{-1} Y`."""
    eye = torch.eye(own.shape[-1], dtype=own.dtype, device=own.device)
    strength = ridge * own.diagonal(dim1=-2, dim2=-1).mean(-1)
    ridged = own + strength.view(*strength.shape, 1, 1) * eye
    # Without its check, which makes a device wait and refuses features that are all zero.
    weights: Tensor = torch.linalg.solve_ex(ridged, targets).result
    return cross @ weights


def kernel_error(
    target: KernelTarget, target_shares: Tensor, x: Tensor, shares: Tensor, ridge: float
) -> Tensor:
    """Half the mean squared error of the kernel's prediction, for every support of a batch.

    Class shares (one-hot labels) are centered by 1 / C on both sides. Lower is better.
    """
    center = 1 / shares.shape[-1]
    predicted = ridge_prediction(cross_kernel(target, x), support_kernel(x), shares - center, ridge)
    return (predicted - (target_shares - center)).square().mean((-2, -1)) / 2


def _products(first: Tensor, second: Tensor) -> Tensor:
    return first.unsqueeze(-1) * second.unsqueeze(-2)


def _floored(sigma: Tensor) -> Tensor:
    # A product of two floors is still a normal number.
    return sigma.clamp_min(torch.finfo(sigma.dtype).tiny ** 0.5)
