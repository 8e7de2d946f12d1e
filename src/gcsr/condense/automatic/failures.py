"""What takes a candidate, or a teacher, out of the race instead of ending it."""

from __future__ import annotations

import torch

from gcsr.errors import InputError

# Settings that do not go together, a loss that is not finite, a matrix that cannot be factored, too
# little memory.
FAILURES: tuple[type[Exception], ...] = (
    InputError,
    torch.linalg.LinAlgError,  # type: ignore[attr-defined]
    torch.OutOfMemoryError,
)
