"""The smooth directions of a graph, which coarsening is to keep."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import LinearOperator, lobpcg

# Up to this many nodes all eigenpairs are computed: exact, and no slower.
SMALL = 200
# An iterative solver stops at this residual, or after this many rounds; on a large graph a round takes
# a fifth of a second.
RESIDUAL = 1e-6
ROUNDS, LARGE, LARGE_ROUNDS = 1000, 50_000, 100
# What is smaller, relative to the largest, is taken for zero.
ZERO = 1e-10


def laplacian(weights: sp.csr_array) -> sp.csr_array:
    """L = D - W."""
    return sp.csr_array(sp.diags_array(weights.sum(1)) - weights)


def smooth_directions(weights: sp.csr_array, count: int, generator: torch.Generator) -> np.ndarray:
    r""":math:`U \Lambda^{-1/2}` for the ``count`` smallest eigenpairs of L, ``(n, count - 1)``.

    The graph is connected: its one zero mode is the constant, which counts among the pairs and whose
    column, zero by definition, is left out. The Laplacian of a large graph has its small eigenvalues
    crowded at :math:`10^{-6}` of its largest, where Lanczos on a shifted Laplacian does not get; with
    degrees as preconditioner and the constant projected out, LOBPCG does.
    """
    n = weights.shape[0]
    matrix = laplacian(weights)
    wanted = min(count, n) - 1
    if n <= max(SMALL, 5 * count):
        values, vectors = np.linalg.eigh(matrix.toarray())
        values, vectors = values[1 : wanted + 1], vectors[:, 1 : wanted + 1]
    else:
        values, vectors = _smallest(matrix, wanted, generator)
    kept = values > ZERO * max(values.max(initial=0.0), 0.0)
    directions: np.ndarray = vectors * np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    return directions


def residual(weights: sp.csr_array, directions: np.ndarray) -> float:
    r"""The largest :math:`|L u - \lambda u|` of directions :math:`u / \sqrt\lambda`."""
    sizes = np.linalg.norm(directions, axis=0)
    u = directions[:, sizes > 0] / sizes[sizes > 0]
    off = laplacian(weights) @ u - u / sizes[sizes > 0] ** 2
    return float(np.linalg.norm(off, axis=0).max(initial=0.0))


def _smallest(
    matrix: sp.csr_array, wanted: int, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest eigenpairs of a Laplacian but the constant."""
    n = matrix.shape[0]
    degrees = matrix.diagonal()[:, None]
    start = torch.randn((n, wanted), generator=generator, dtype=torch.float64).numpy()
    inverse = LinearOperator(
        (n, n),
        matvec=lambda x: (x.reshape(n, -1) / degrees).reshape(x.shape),
        matmat=lambda x: x / degrees,
        dtype=np.float64,
    )
    with warnings.catch_warnings():
        # Whoever asked is told of the residual.
        warnings.simplefilter("ignore", UserWarning)
        values, vectors = lobpcg(
            matrix,
            start,
            M=inverse,
            Y=np.ones((n, 1)),
            tol=RESIDUAL,
            maxiter=ROUNDS if n <= LARGE else LARGE_ROUNDS,
            largest=False,
        )
    return values, vectors


def rescaled(basis: np.ndarray, weights: sp.csr_array) -> np.ndarray:
    r""":math:`B (B^\top L B)^{-1/2}`, the pseudo-inverse root: :math:`V d^{-1/2} V^\top`."""
    energy = basis.T @ (laplacian(weights) @ basis)
    values, vectors = np.linalg.eigh((energy + energy.T) / 2)
    kept = values > ZERO * max(values.max(initial=0.0), 0.0)
    roots = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    result: np.ndarray = basis @ (vectors * roots) @ vectors.T
    return result
