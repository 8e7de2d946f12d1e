"""Tensors that live in a file instead of in memory: for trajectories that memory cannot hold."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from gcsr.models import Params

logger = logging.getLogger(__name__)


def scratch_tensors(
    shapes: Sequence[Sequence[int]], dtype: torch.dtype, folder: Path
) -> Params | None:
    """Writable tensors mapped from a file without a name; ``None`` where the disk has no room.

    The file is gone with the last tensor, or with the process, however it ends. Its blocks are
    reserved at once: a disk that runs full later would kill the process with a signal.
    """
    plain = torch.empty(0, dtype=dtype).numpy().dtype
    sizes = [int(np.prod(shape)) * plain.itemsize for shape in shapes]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file.fileno(), sum(sizes))
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            arrays = [
                np.memmap(file, plain, mode="r+", offset=int(start), shape=tuple(shape))
                for start, shape in zip(starts, shapes, strict=True)
            ]
    except OSError as error:
        logger.warning("experts cannot be kept in %s: %s", folder, error.strerror)
        return None
    return tuple(torch.from_numpy(array) for array in arrays)


def _reserve(handle: int, size: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    os.posix_fallocate(handle, 0, size)
