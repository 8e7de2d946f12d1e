"""Sparse CSR tensors of torch and matrices of scipy: the same arrays, seen by either library."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor


def is_sparse(x: Tensor) -> bool:
    """Whether a tensor is in CSR form."""
    return x.layout == torch.sparse_csr


def csr_tensor(
    matrix: sp.csr_array,
    device: torch.device,
    dtype: torch.dtype,
    index: type = np.int64,
    *,
    copy: bool = True,
) -> Tensor:
    """A scipy matrix as a torch CSR tensor with indices of type ``index``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=copy)),
            torch.from_numpy(matrix.indices.astype(index, copy=copy)),
            torch.from_numpy(matrix.data.copy() if copy else matrix.data).to(dtype),
            matrix.shape,
            device=device,
            check_invariants=False,
        )


def csr_matrix(x: Tensor) -> sp.csr_array:
    """A torch CSR tensor as a scipy matrix, without a copy on the CPU."""
    x = x.detach().cpu()
    arrays = (part.numpy() for part in (x.values(), x.col_indices(), x.crow_indices()))
    return sp.csr_array(tuple(arrays), shape=tuple(x.shape))
