"""Condensation methods, one file each, and what a new method is written with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gcsr.engines.result import CondensationResult, Context
    from gcsr.methods.base import Condenser
    from gcsr.methods.registry import register
    from gcsr.starts.budget import block_labels, class_budget
    from gcsr.starts.sample import propagated_features, sample_training_rows
    from gcsr.utils.devices import make_generator
    from gcsr.utils.validation import real_number, whole_number

__all__ = [
    "CondensationResult",
    "Condenser",
    "Context",
    "block_labels",
    "class_budget",
    "make_generator",
    "propagated_features",
    "real_number",
    "register",
    "sample_training_rows",
    "whole_number",
]
_EXPORTS = {
    "CondensationResult": "gcsr.engines.result",
    "Condenser": "gcsr.methods.base",
    "Context": "gcsr.engines.result",
    "block_labels": "gcsr.starts.budget",
    "class_budget": "gcsr.starts.budget",
    "make_generator": "gcsr.utils.devices",
    "propagated_features": "gcsr.starts.sample",
    "real_number": "gcsr.utils.validation",
    "register": "gcsr.methods.registry",
    "sample_training_rows": "gcsr.starts.sample",
    "whole_number": "gcsr.utils.validation",
}


def __getattr__(name: str) -> Any:
    # The registry lists methods without importing torch.
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
