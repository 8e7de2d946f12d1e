"""Plain arrays out of ``.npy`` and ``.npz`` files from anywhere.

numpy's own reader believes a header and allocates what it claims. Here a claim is first held against
the bytes that are there; only deflate is unpacked, whose gain is bounded; objects are never read.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from gcsr.errors import InputError, require
from gcsr.untrusted import UNREADABLE, is_file, reason, require_unfoldable

_SUFFIX = ".npy"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_ENCRYPTED = 1


class _PickledError(ValueError):
    """An array of objects, which only a pickle can hold."""


def load_arrays(path: Path, only: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of an npz file, read without pickles; a broken or unsafe file is one sentence.

    Arrays that are not in ``only`` are never opened.
    """
    require(is_file(path), f"{path}: no such file.")
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = _members(archive, only)
            needed = sum(info.file_size for info in members.values())
            require_unfoldable("its arrays", needed, path.stat().st_size)
            return {name: _member(archive, name, info) for name, info in members.items()}
    except UNREADABLE as error:
        raise _refused(path, "npz file", error) from None


def load_array(path: Path) -> np.ndarray:
    """The array of an npy file, mapped into memory rather than read."""
    require(is_file(path), f"{path}: no such file.")
    try:
        with path.open("rb") as stream:
            shape, fortran, dtype = _header(stream, path.stat().st_size)
            start = stream.tell()
            if not math.prod(shape):
                return np.empty(shape, dtype)  # nothing cannot be mapped
        return np.asarray(np.memmap(path, dtype, "r", start, shape, order="F" if fortran else "C"))
    except UNREADABLE as error:
        raise _refused(path, "array", error) from None


def _refused(path: Path, kind: str, error: Exception) -> InputError:
    if isinstance(error, _PickledError):
        return InputError(
            f"{path}: holds a pickled object, which could run code; only plain arrays are read."
        )
    if isinstance(error, InputError):
        return InputError(f"{path}: {error}")
    return InputError(f"{path}: not a readable {kind} ({reason(error)}).")


def _members(archive: zipfile.ZipFile, only: Collection[str] | None) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(_SUFFIX)
        if only is not None and name not in only:
            continue
        shown = reason(ValueError(name))
        require(name not in found, f"{shown} is there twice.")
        require(info.filename.endswith(_SUFFIX), f"{shown} is not an array.")
        require(not info.flag_bits & _ENCRYPTED, f"{shown} is encrypted.")
        require(
            info.compress_type in _METHODS,
            f"{shown} is compressed in another way than deflate, which is what npz files use.",
        )
        found[name] = info
    return found


def _member(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as stream:
        try:
            shape, fortran, dtype = _header(stream, info.file_size)
        except _PickledError:
            raise
        except UNREADABLE as error:
            raise ValueError(f"{name}: {reason(error)}") from None
        flat = np.empty(math.prod(shape), dtype)
        _fill(stream, flat.view(np.uint8))
        if stream.read(1):
            raise ValueError(f"{name}: more bytes than its header says")
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type, once they are known to describe exactly the bytes that follow."""
    magic = np.lib.format.read_magic(stream)
    if magic not in _HEADERS:
        raise ValueError(f"format {magic[0]}.{magic[1]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the text in the header, which is nobody's program
        shape, fortran, dtype = _HEADERS[magic](stream)
    if dtype.hasobject:
        raise _PickledError("objects")
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise ValueError(f"values of type {reason(ValueError(str(dtype)))}")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError("a shape that is none")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("a shape that does not match its values")
    return shape, fortran, dtype


def _fill(stream: IO[bytes], place: np.ndarray) -> None:
    done = 0
    while done < len(place):
        part = stream.read(min(len(place) - done, 1 << 20))
        if not part:
            raise EOFError("cut off")
        place[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
