"""Checkpoints: the state of a run in a folder, in parts that are each written by one thread."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import accessing, lock_file, reason, write_atomically

logger = logging.getLogger(__name__)
# The share of a run's time that writing may take.
SHARE = 0.01
# Expected time of a first writing: latency in seconds, and bytes per second.
LATENCY, THROUGHPUT = 0.02, 5e7
SUFFIX = ".part"
RUN = "run.json"
LOCK = "lock"
STAGE = "result"
FORMAT = "gcsr-checkpoint/1"


@dataclass(frozen=True)
class Checkpoint:
    """A folder with the state of a run. The same run continues from it.

    Args:
        path: the folder; it is created, its parent must exist.
        every: seconds between two writings at least; by default writing takes one hundredth of the
            time. It changes no result.
        fresh: begin anew and remove what is there.
        keep: keep the folder when the run is finished; the caller then calls :meth:`discard`.
    """

    path: Path
    every: float | None = None
    fresh: bool = False
    keep: bool = False

    def __post_init__(self) -> None:
        fine = isinstance(self.path, str | os.PathLike)
        kind = type(self.path).__name__
        require(fine, f"checkpoint must be the path of a folder, got {kind}.")
        object.__setattr__(self, "path", Path(self.path))
        seconds = self.every is None or isinstance(self.every, int | float)
        fine = seconds and 0 <= (self.every or 0) < math.inf
        require(fine, f"every must be seconds >= 0, got {self.every!r}.")

    @property
    def stage(self) -> Path:
        """A folder in which a caller may prepare the files of a result; it goes with the rest."""
        return self.path / STAGE

    @property
    def exists(self) -> bool:
        """Whether the folder has a state."""
        return any(self.path.glob(f"*{SUFFIX}"))

    def discard(self) -> None:
        """Remove what belongs to the checkpoint, and the folder if that was all."""
        with suppress(OSError):
            _remove(filter(_is_ours, self.path.iterdir()))
            self.path.rmdir()


def _is_ours(path: Path) -> bool:
    """Whether a file in the folder was written by us; a killed writer leaves a hidden one."""
    name = path.name
    whole = name in (RUN, LOCK, STAGE) or name.endswith(SUFFIX)
    return whole or (name.startswith(".") and (f"{SUFFIX}." in name or f".{RUN}." in name))


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        if path.name == STAGE:
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class State:
    """Named tensors, and values that JSON can hold."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


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
    """What :func:`packed` wrote into a file; anything else raises."""
    with safe_open(path, framework="pt") as archive:
        metadata = archive.metadata() or {}
        tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
    if metadata.get("format") != FORMAT or metadata.get("run") != run:
        raise ValueError("it is not a state of this run")
    if metadata.get("checksum") != _checksum(tensors, metadata["values"]):
        raise ValueError("it is not what was written")
    values, placed = (json.loads(metadata[name]) for name in ("values", "placed"))
    if not isinstance(values, dict) or not isinstance(placed, dict):
        raise ValueError("it is not what was written")
    on_device = {
        name: tensor if placed[name] == "cpu" else tensor.to(device)
        for name, tensor in tensors.items()
    }
    return State(on_device, values)


def _checksum(tensors: Mapping[str, Tensor], values: str) -> str:
    checksum = zlib.crc32(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        checksum = zlib.crc32(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.numpy().data, checksum)
    return str(checksum)


@contextmanager
def opened(
    checkpoint: Checkpoint | str | os.PathLike[str] | None, run: Mapping[str, Any]
) -> Iterator[CheckpointLog | None]:
    """The checkpoint of a run, locked for this process. ``run`` describes the run.

    A folder with the state of another run is refused, unless the checkpoint is ``fresh``.
    """
    if checkpoint is None:
        yield None
        return
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(cast("Path", checkpoint))
    with _alone(checkpoint.path):
        log = CheckpointLog(checkpoint, run)
        try:
            yield log
        except BaseException:
            if not checkpoint.exists:
                checkpoint.discard()
            raise
        if not checkpoint.keep or not checkpoint.exists:
            checkpoint.discard()


class CheckpointLog:
    """The open checkpoint of a run: states by the name of their part."""

    def __init__(self, checkpoint: Checkpoint, run: Mapping[str, Any]) -> None:
        self.checkpoint = checkpoint
        self._run = json.dumps(run, sort_keys=True, default=repr)
        self.digest = hashlib.sha256(self._run.encode()).hexdigest()
        self.lock = threading.Lock()
        self.began = time.perf_counter()
        self.spent = 0.0
        self.writes = 0
        self.expected: float | None = None
        self.warned = False
        self.before: float | None = None  # seconds of the processes whose state was used
        self._make_ready()

    @property
    def seconds(self) -> float:
        """How long the run has taken, in this process and in those before whose state was used."""
        return (self.before or 0.0) + time.perf_counter() - self.began

    @property
    def measured(self) -> dict[str, Any]:
        """What it took, for the provenance of results."""
        written = {"written": self.writes, "seconds": self.spent}
        return {"checkpoints": written, **({} if self.before is None else {"resumed": True})}

    def part(self, name: str, device: torch.device) -> Part:
        """A part of the run that has a state of its own."""
        return Part(self, self.checkpoint.path / f"{name}{SUFFIX}", device)

    def _make_ready(self) -> None:
        """Remove files that this run cannot use; refuse a folder with the state of another run."""
        folder = self.checkpoint.path
        if not self.checkpoint.fresh and self.checkpoint.exists:
            found: Any = None
            with suppress(OSError, ValueError, RecursionError):
                found = json.loads((folder / RUN).read_bytes())
            if not isinstance(found, dict):
                logger.warning("checkpoint: %s cannot be read and is begun anew.", folder / RUN)
            elif found == json.loads(self._run):
                _remove(folder.glob(".*"))  # a killed writer's
                return
            else:
                raise InputError(_differences(folder, found, json.loads(self._run)))
        _remove(path for path in folder.iterdir() if path.name != LOCK)


class Part:
    """The state of one part of a run, read and written by one thread."""

    def __init__(self, log: CheckpointLog, path: Path, device: torch.device) -> None:
        self._log, self.path, self._device = log, path, device
        self._last = time.perf_counter()

    def load(self) -> State | None:
        """The last saved state, of this or an earlier process, if there is one that can be read."""
        log = self._log
        if not self.path.is_file():
            return None
        try:
            state = unpacked(self.path, log.digest, self._device)
            seconds = float(state.values.get("seconds", 0.0))
        except (MemoryError, torch.cuda.OutOfMemoryError):
            raise  # the state is fine: it must not be written over
        except Exception as error:
            logger.warning(
                "checkpoint: %s is ignored and begun anew (%s).", self.path, reason(error)
            )
            return None
        with log.lock:
            log.before = max(log.before or 0.0, seconds)
        return state

    def offer(self, nbytes: int, state: Callable[[], State]) -> None:
        """Save a state of about so many bytes if it is time to."""
        log, now = self._log, time.perf_counter()
        if log.checkpoint.every is not None:
            due = now - self._last >= log.checkpoint.every
        else:
            expected = log.expected or LATENCY + nbytes / THROUGHPUT
            due = log.spent + expected <= SHARE * (now - log.began)
        if due:
            self.save(state())

    def save(self, state: State) -> None:
        """Save a state now; a failure is a warning, once, and the run continues."""
        log, began = self._log, time.perf_counter()
        values = {**state.values, "seconds": log.seconds}
        try:
            with log.lock:
                describing = log.checkpoint.path / RUN
                if not describing.is_file():
                    write_atomically(describing, log._run.encode())
            write_atomically(self.path, packed(State(state.tensors, values), log.digest))
        except InputError as error:
            if not log.warned:
                logger.warning("checkpoint: %s The run goes on without it.", error)
            log.warned = True
        self._last = time.perf_counter()
        with log.lock:
            log.expected = self._last - began
            log.spent += log.expected
            log.writes += 1


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, for this process alone."""
    refusal = f"checkpoint must be a folder that can be written, got {folder}"
    with accessing(refusal, "; checkpoint=None does without"):
        try:
            lock = _locked(folder)
        except BlockingIOError:
            raise InputError(
                f"checkpoint must be a folder that no other process uses, got {folder}; wait for it,"
                " or write elsewhere."
            ) from None
    try:
        foreign = [path.name for path in folder.iterdir() if not _is_ours(path)]
        require(
            not foreign,
            f"checkpoint must be a folder of its own, got {folder}, which has other files"
            f" ({', '.join(sorted(foreign)[:3])}).",
        )
        yield
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # another process removed the folder between the two lines
        try:
            lock_file(descriptor, wait=False)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), (folder / LOCK).stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _differences(folder: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    names = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    if "method" in names:  # whose settings then differ too
        names = ["method"]
    differences = []
    for name in names:
        old, new = (
            value if isinstance(value, str) else json.dumps(value)
            for value in (found.get(name), wanted.get(name))
        )
        known = f"{name} {old}, not {new}" if name in found else f"no {name}"
        differences.append("other data" if name == "data" else known)
    return (
        f"checkpoint must be of the same run, got {folder} of a run with {'; '.join(differences)}: the"
        " settings of that one continue it, and fresh=True begins anew."
    )
