"""How a state lies in a file: named tensors and plain values, with a checksum over both."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from gcsr.untrusted import UNREADABLE, reason

FORMAT = "gcsr-checkpoint/1"
_REFUSED: tuple[type[Exception], ...] = (SafetensorError, *UNREADABLE)


class UnreadableError(Exception):
    """A file is not what was written; the message says why."""


@dataclass(frozen=True, eq=False)
class State:
    """Named tensors, and values that JSON can hold."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    def on(self, device: torch.device, placed: Mapping[str, str]) -> State:
        """The same with the tensors back where they were: on the host or on ``device``."""
        moved = {
            name: tensor if placed[name] == "cpu" else tensor.to(device)
            for name, tensor in self.tensors.items()
        }
        return State(moved, self.values)


def packed(state: State, run: str) -> bytes:
    """A state of the run with that name as bytes."""
    # A copy: safetensors refuses tensors that share memory.
    tensors = {
        name: tensor.detach().to("cpu", copy=True).contiguous()
        for name, tensor in state.tensors.items()
    }
    values = json.dumps(state.values)
    metadata = {
        "format": FORMAT,
        "run": run,
        "values": values,
        "placed": json.dumps({name: t.device.type for name, t in state.tensors.items()}),
        "checksum": _checksum(tensors, values),
    }
    return save(tensors, metadata)


def unpacked(path: Path, run: str, device: torch.device) -> State:
    """What :func:`packed` wrote into a file; raises :class:`UnreadableError` for anything else."""
    try:
        with safe_open(path, framework="pt") as archive:
            metadata = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
        if metadata.get("format") != FORMAT or metadata.get("run") != run:
            raise UnreadableError("it is not a state of this run")
        if metadata.get("checksum") != _checksum(tensors, metadata["values"]):
            raise UnreadableError("it is not what was written")
        values, placed = (json.loads(metadata[name]) for name in ("values", "placed"))
        if not isinstance(values, dict) or not isinstance(placed, dict):
            raise UnreadableError("it is not what was written")
        return State(tensors, values).on(device, placed)
    except _REFUSED as error:
        raise UnreadableError(reason(error)) from None


def _checksum(tensors: Mapping[str, Tensor], values: str) -> str:
    checksum = zlib.crc32(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        checksum = zlib.crc32(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.numpy().data, checksum)
    return str(checksum)
