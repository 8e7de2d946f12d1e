"""The open checkpoint of a run: parts are read once and written now and then, each by one thread."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from gcsr.checkpoint.checkpoint import LOCK, RUN, SUFFIX, Checkpoint, is_ours, remove
from gcsr.checkpoint.packing import State, UnreadableError, packed, unpacked
from gcsr.errors import InputError, require
from gcsr.files import write_atomically

logger = logging.getLogger(__name__)
# The share of a run's time that writing may take.
SHARE = 0.01
# What a first writing is expected to take: waiting for the disk, and bytes per second.
LATENCY, THROUGHPUT = 0.02, 5e7


@contextmanager
def opened(checkpoint: Checkpoint | None, run: Mapping[str, Any]) -> Iterator[Journal | None]:
    """The journal of a run, which ``run`` describes by name; nobody else may use it meanwhile.

    A folder with the state of another run is refused, unless ``fresh`` says that it may go.
    """
    if checkpoint is None:
        yield None
        return
    with _alone(checkpoint.path):
        journal = Journal(checkpoint, run)
        try:
            yield journal
        except BaseException:
            if not checkpoint.exists:
                checkpoint.discard()
            raise
        if not checkpoint.keep or not checkpoint.exists:
            checkpoint.discard()


class Journal:
    """States of one run by the name of their part."""

    def __init__(self, checkpoint: Checkpoint, run: Mapping[str, Any]) -> None:
        self.checkpoint = checkpoint
        self._run = json.dumps(run, sort_keys=True, default=repr)
        self._digest = hashlib.sha256(self._run.encode()).hexdigest()
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._spent = 0.0
        self._writes = 0
        self._expected: float | None = None
        self._warned = False
        self._before = 0.0
        self._resumed = False
        self._make_ready()

    @property
    def resumed(self) -> bool:
        """Whether something of an earlier process was used."""
        return self._resumed

    @property
    def seconds(self) -> float:
        """How long the run has taken, in this process and in those before whose state was used."""
        return (self._before if self._resumed else 0.0) + time.perf_counter() - self._began

    @property
    def measured(self) -> dict[str, Any]:
        """What it took, for the provenance of results."""
        written = {"written": self._writes, "seconds": self._spent}
        return {"checkpoints": written, **({"resumed": True} if self._resumed else {})}

    def part(self, name: str, device: torch.device) -> Part:
        """A part of the run that has a state of its own."""
        return Part(self, self.checkpoint.path / f"{name}{SUFFIX}", device)

    def load(self, path: Path, device: torch.device) -> State | None:
        """The state of a part; one that cannot be read counts as absent, and that is said."""
        if not path.is_file():
            return None
        try:
            state = unpacked(path, self._digest, device)
            seconds = state.values.get("seconds", 0.0)
            if not isinstance(seconds, int | float):
                raise UnreadableError("its seconds are no number")
        except UnreadableError as error:
            logger.warning("checkpoint: %s is ignored and begun anew (%s).", path, error)
            return None
        with self._lock:
            self._resumed = True
            self._before = max(self._before, float(seconds))
        return state

    def due(self, last: float, nbytes: int) -> bool:
        """Whether a part whose last state was written at ``last`` may write ``nbytes`` now."""
        now = time.perf_counter()
        if self.checkpoint.every is not None:
            return now - last >= self.checkpoint.every
        expected = self._expected or LATENCY + nbytes / THROUGHPUT
        return self._spent + expected <= SHARE * (now - self._began)

    def save(self, path: Path, state: State) -> None:
        """Write a part's state whole; a disk that cannot take it is said once and stops nothing."""
        began = time.perf_counter()
        values = {**state.values, "seconds": self.seconds}
        try:
            with self._lock:
                describing = self.checkpoint.path / RUN
                if not describing.is_file():
                    write_atomically(describing, self._run.encode())
            write_atomically(path, packed(State(state.tensors, values), self._digest))
        except InputError as error:
            if not self._warned:
                logger.warning("checkpoint: %s The run goes on without it.", error)
            self._warned = True
        with self._lock:
            self._expected = time.perf_counter() - began
            self._spent += self._expected
            self._writes += 1

    def _make_ready(self) -> None:
        """Empty the folder of what this run cannot use; refuse to where that would lose a state."""
        folder = self.checkpoint.path
        if not self.checkpoint.fresh and self.checkpoint.exists:
            found = _described(folder / RUN)
            if found is None:
                logger.warning("checkpoint: %s cannot be read and is begun anew.", folder / RUN)
            elif found == json.loads(self._run):
                for path in folder.iterdir():
                    if path.name.startswith("."):  # a killed writer's
                        remove(path)
                return
            else:
                raise InputError(_differences(folder, found, json.loads(self._run)))
        for path in folder.iterdir():
            if path.name != LOCK:
                remove(path)


class Part:
    """The state of one part of a run, read and written by one thread."""

    def __init__(self, journal: Journal, path: Path, device: torch.device) -> None:
        self._journal, self._path, self._device = journal, path, device
        self._last = time.perf_counter()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def load(self) -> State | None:
        """What was saved last, by whichever process; ``None`` where there is nothing."""
        return self._journal.load(self._path, self._device)

    def offer(self, nbytes: int, state: Callable[[], State]) -> None:
        """Save a state of about so many bytes if it is time to."""
        if self._journal.due(self._last, nbytes):
            self.save(state())

    def save(self, state: State) -> None:
        """Save a state now."""
        self._journal.save(self._path, state)
        self._last = time.perf_counter()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, for this process alone."""
    try:
        lock = _locked(folder)
    except BlockingIOError:
        raise InputError(
            f"checkpoint: {folder} is in use by another process; wait for it, or write elsewhere."
        ) from None
    except OSError as error:
        raise InputError(f"checkpoint: {folder} cannot be used ({error.strerror}).") from None
    try:
        foreign = [path.name for path in folder.iterdir() if not is_ours(path)]
        require(
            not foreign,
            f"checkpoint: {folder} holds other files ({', '.join(sorted(foreign)[:3])}); a folder of"
            " its own is needed.",
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
            continue  # whoever had it finished between the two lines
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), (folder / LOCK).stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _described(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _differences(folder: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    names = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    if "method" in names:  # whose settings then differ too
        names = ["method"]
    told = [
        "other data"
        if name == "data"
        else f"no {name}"
        if name not in found
        else f"{name} {_shown(found.get(name))}, not {_shown(wanted.get(name))}"
        for name in names
    ]
    return (
        f"checkpoint: {folder} is of another run, which had {'; '.join(told)}: the settings of that one"
        " continue it, and --fresh (fresh=True) begins anew."
    )


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
