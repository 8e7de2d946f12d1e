"""Condensation methods, one file each, and what a new method is written with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcsr.engines.result import CondensationResult as CondensationResult
    from gcsr.engines.result import Context as Context
    from gcsr.methods.base import Condenser as Condenser
    from gcsr.methods.registry import register as register
    from gcsr.starts.sample import block_labels as block_labels
    from gcsr.starts.sample import class_budget as class_budget
    from gcsr.starts.sample import propagated_features as propagated_features
    from gcsr.starts.sample import sample_training_rows as sample_training_rows
    from gcsr.utils.devices import make_generator as make_generator
    from gcsr.utils.errors import real_number as real_number
    from gcsr.utils.errors import whole_number as whole_number

_EXPORTS = {
    "CondensationResult": "gcsr.engines.result",
    "Condenser": "gcsr.methods.base",
    "Context": "gcsr.engines.result",
    "block_labels": "gcsr.starts.sample",
    "class_budget": "gcsr.starts.sample",
    "make_generator": "gcsr.utils.devices",
    "propagated_features": "gcsr.starts.sample",
    "real_number": "gcsr.utils.errors",
    "register": "gcsr.methods.registry",
    "sample_training_rows": "gcsr.starts.sample",
    "whole_number": "gcsr.utils.errors",
}
__all__ = list(_EXPORTS)


def __getattr__(name: str) -> Any:
    # The registry lists methods without importing torch.
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
