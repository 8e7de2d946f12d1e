"""Trained experts on disk: one safetensors file per key, never more bytes than allowed."""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from gcsr.models.base import Params
from gcsr.utils.safe_io import is_file, lock_file, reason, user_folder

logger = logging.getLogger(__name__)
CACHE_VARIABLE = "GCSR_CACHE"
FORMAT = "gcsr-experts/1"
SUFFIX = ".safetensors"
PART = ".part"
PREDICTION = "prediction"
# More than the header of a file with this few tensors ever takes.
HEADER_BYTES = 4096


def cache_folder() -> Path:
    """``$GCSR_CACHE``, else ``gcsr`` in the user's cache folder."""
    return user_folder(os.environ.get(CACHE_VARIABLE))


class ExpertCache:
    """Weights by epoch, and mean predictions, of experts trained by any process before.

    With an allowance of 0 nothing is read or written. A file appears whole or not at all and is
    never changed afterwards, so readers need no lock; writers take turns, because the allowance is
    theirs together. The least recently used files make room.
    """

    def __init__(self, allowance: int, folder: Path | None = None) -> None:
        self.allowance = allowance
        self.folder = (folder or cache_folder()) / "experts"

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.folder / f"{key}{SUFFIX}"

    def load(
        self, key: str, like: Params, *, prediction: bool, device: torch.device
    ) -> tuple[Params, Tensor | None] | None:
        """Weights shaped and typed ``like`` these, and the prediction if wanted; ``None`` if absent.

        A stored run of more epochs serves, cut to those asked for. What cannot be read, or is not
        what was written, counts as absent.
        """
        path = self.path(key)
        if not self.allowance or not is_file(path):
            return None
        try:
            with safe_open(path, framework="pt") as archive:
                metadata = archive.metadata() or {}
                shapes = {name: archive.get_slice(name).get_shape() for name in archive.keys()}  # noqa: SIM118
            counts = {shapes[str(i)][0] for i in range(len(like))}
            if metadata.get("format") != FORMAT or counts != {like[0].shape[0]}:
                raise ValueError("not experts of this kind")
            if prediction and PREDICTION not in shapes:
                return None
            if any(shapes[str(i)][1] < p.shape[1] for i, p in enumerate(like)):
                return None
            found = {str(i): torch.empty_like(p, device=device) for i, p in enumerate(like)}
            mean: Tensor | None = None
            checksum = 0
            for name in sorted(shapes):
                checksum = zlib.crc32(name.encode(), checksum)
                for i, part in enumerate(_parts(path, name, shapes[name])):
                    checksum = zlib.crc32(part.numpy().data, checksum)
                    if name != PREDICTION:
                        _put(part[0], found[name][i])
                    elif prediction:
                        mean = part.to(device, copy=True)
            if metadata.get("checksum") != str(checksum):
                raise ValueError("not what was written")
        except Exception as error:
            logger.debug("%s is ignored: %s", path, reason(error))
            return None
        self.touch(key)
        return tuple(found[str(i)] for i in range(len(like))), mean

    def touch(self, key: str) -> bool:
        """Mark a key as used; returns whether it exists."""
        try:
            os.utime(self.path(key))
        except OSError:
            return False
        return True

    def save(self, key: str, weights: Params, prediction: Tensor | None) -> None:
        """Store experts if the allowance can hold them; failing to is no error."""
        size = sum(t.nbytes for t in weights) + HEADER_BYTES
        size += 0 if prediction is None else prediction.nbytes
        if size > self.allowance:
            if self.allowance:
                logger.debug("experts of %d bytes exceed the allowance on disk", size)
            return
        named = {str(i): w for i, w in enumerate(weights)}
        if prediction is not None:
            named[PREDICTION] = prediction
        tensors = {name: t.detach().cpu().contiguous() for name, t in named.items()}
        metadata = {"format": FORMAT, "checksum": _checksum(tensors)}
        part = self.folder / f".{key}{PART}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Writers of all processes, one after the other.
            with (self.folder / ".lock").open("w") as lock:
                lock_file(lock.fileno(), wait=True)
                if not self._make_room(size):
                    return
                try:
                    # No fsync: the checksum detects a crash.
                    save_file(tensors, part, metadata)
                    part.replace(self.path(key))
                finally:
                    part.unlink(missing_ok=True)
        except (SafetensorError, OSError) as error:
            logger.warning("experts could not be stored in %s: %s", self.folder, error)

    def _make_room(self, size: int) -> bool:
        """Remove least recently used files until ``size`` more bytes are within the allowance."""
        for leftover in self.folder.glob(f".*{PART}"):
            # Its writer is gone, or it would hold the lock.
            leftover.unlink(missing_ok=True)
        found = [path for path in self.folder.iterdir() if path.is_file()]
        sizes = {path: path.stat().st_size for path in found}
        ours = [path for path in found if path.suffix == SUFFIX]
        total = sum(sizes.values())
        for path in sorted(ours, key=lambda path: path.stat().st_mtime_ns):
            if total + size <= self.allowance:
                break
            with suppress(FileNotFoundError):
                path.unlink()
            total -= sizes[path]
        return total + size <= self.allowance


def _parts(path: Path, name: str, shape: list[int]) -> Iterator[Tensor]:
    """A stored tensor: weights expert by expert, a prediction as a whole.

    The file is opened for each: pages of an open one count as this process's memory.
    """
    length = shape[0] if name == PREDICTION else 1
    for first in range(0, shape[0], length):
        with safe_open(path, framework="pt") as archive:
            yield archive.get_slice(name)[first : first + length].contiguous()


def _put(stored: Tensor, place: Tensor) -> None:
    """Copy the stored epochs that are wanted; refuses any other shape or type."""
    cut = stored[: place.shape[0]]
    if cut.shape != place.shape or cut.dtype != place.dtype:
        raise ValueError(f"{cut.dtype} {tuple(cut.shape)} instead of {tuple(place.shape)}")
    place.copy_(cut)


def _checksum(tensors: dict[str, Tensor]) -> str:
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(name.encode(), checksum)
        checksum = zlib.crc32(tensors[name].numpy().data, checksum)
    return str(checksum)
