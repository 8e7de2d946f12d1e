"""Checks of what ``run`` of a method returns: one sentence with the method and the field."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from gcsr.data.objects import described
from gcsr.engines.result import CondensationResult
from gcsr.utils.errors import InputError, require

# The one key of the provenance that a method may set itself, and only to true.
LEAKS = "leaks_test_labels"


def require_tensors(
    made: CondensationResult, *, nodes: int, fewer: bool, num_features: int
) -> None:
    """Refuse parts that are no dense tensors without gradients, and features of another shape.

    ``fewer`` is whether the result may have fewer nodes than were asked for.
    """
    for field in ("x", "adjacency", "y"):
        part = getattr(made, field)
        call = f"; torch.as_tensor({field}) converts an array" if hasattr(part, "shape") else ""
        require(
            isinstance(part, Tensor),
            f"{field} must be a torch.Tensor, got {described(part)}{call}.",
        )
        require(
            part.layout == torch.strided,
            f"{field} must be a dense tensor, got {part.layout}; {field}.to_dense() converts it.",
        )
        require(
            not part.requires_grad,
            f"{field} must not require a gradient, got a tensor that does; return {field}.detach().",
        )
    shape = tuple(made.x.shape)
    found = shape[0] if shape else 0
    accepted = f"1..{nodes}" if fewer else f"{nodes}"
    require(
        len(shape) == 2 and (1 <= found <= nodes if fewer else found == nodes),
        f"x must have one row per condensed node, {accepted} (Context.nodes), got shape {shape}"
        f"{'' if fewer else '; may_have_fewer_nodes = True in the class accepts fewer nodes'}.",
    )
    require(
        shape[1] == num_features,
        f"x must have the {num_features} columns of the visible graph, got {shape[1]}.",
    )


def require_provenance(made: CondensationResult, reserved: Collection[str]) -> None:
    """Refuse notes that are no texts, and details and measured values that a file cannot hold.

    ``reserved`` are the keys of the provenance that the base class writes.
    """
    notes = made.notes
    require(
        isinstance(notes, list | tuple) and all(isinstance(note, str) for note in notes),
        f"notes must be a tuple of texts, got {notes!r}.",
    )
    for field in ("details", "measured"):
        found: Mapping[Any, Any] = getattr(made, field)
        require(isinstance(found, dict), f"{field} must be a dictionary, got {described(found)}.")
        for key, value in found.items():
            require(isinstance(key, str), f"{field} must have texts as keys, got {key!r}.")
            _require_json(f"{field}[{key!r}]", value)
    for key, value in made.details.items():
        require(
            key not in reserved or (key == LEAKS and value is True),
            f"details must have other keys than those of every result, got {key!r}, which the base"
            f" class writes ({', '.join(sorted(reserved))}).",
        )


def _require_json(name: str, value: object) -> None:
    try:
        json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name} must be plain JSON (texts, finite numbers, true, false, None, lists and"
            f" dictionaries of them), got {described(value)} ({error}); value.item() or value.tolist()"
            " makes plain numbers of an array or a tensor."
        ) from None
