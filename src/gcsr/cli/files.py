"""Where condensed graphs go: checked before the long work, written whole after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gcsr.cli.interrupts import remember_written, uninterrupted
from gcsr.errors import InputError, require

if TYPE_CHECKING:
    from gcsr.condensed import CondensedGraph

GRAPH_SUFFIXES = (".npz", ".npy")
SUFFIX = ".safetensors"  # the library has it too, behind a second of imports
MOST_GRAPHS = 10_000


def output_paths(out: Path, graphs: int) -> list[Path]:
    """``out`` itself for one graph; NAME-0.safetensors, NAME-1.safetensors, ... for several."""
    if graphs == 1:
        return [out]
    require(
        graphs <= MOST_GRAPHS,
        f"graphs: {graphs} is not accepted; up to {MOST_GRAPHS} at a time are.",
    )
    return [out.with_name(f"{out.name.removesuffix(SUFFIX)}-{i}{SUFFIX}") for i in range(graphs)]


def checkpoint_folder(out: Path) -> Path:
    """Where a run that writes ``out`` keeps its state: beside it, hidden."""
    return out.with_name(f".{out.name}.checkpoint")


def require_writable(paths: Sequence[Path]) -> None:
    """Fail now rather than after hours of work."""
    for path in paths:
        require(path.name not in ("", ".."), f"out: {str(path)!r} is not the name of a file.")
        require(not path.is_dir(), f"out: {path} is a folder; the name of a file is needed.")
    _require_writes("out", paths[0].parent)


def require_replaceable(paths: Sequence[Path]) -> None:
    """A condensed graph may take the place of another one, and of nothing else."""
    for path in paths:
        require(
            path.suffix not in GRAPH_SUFFIXES,
            f"out: {path} has the name of a graph's file; condensed graphs are {SUFFIX} files.",
        )
        require(
            not path.is_file() or _is_safetensors(path),
            f"out: {path} exists and is no condensed graph; name another file, or remove it first.",
        )


def _is_safetensors(path: Path) -> bool:
    """Whether a file begins as one: the length of a header that it has room for, and its brace."""
    try:
        with path.open("rb") as file:
            begin = file.read(9)
        length = int.from_bytes(begin[:8], "little")
        return begin[8:] == b"{" and 8 + length <= path.stat().st_size
    except OSError:
        return False


def require_writable_folder(field: str, folder: Path) -> None:
    """A folder that files can be put into, or that can be made where it is not there yet."""
    _require_writes(field, folder if folder.exists() else folder.parent)


def _require_writes(field: str, folder: Path) -> None:
    require(folder.exists(), f"{field}: the folder {folder} does not exist.")
    require(folder.is_dir(), f"{field}: {folder} is not a folder.")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(
            f"{field}: the folder {folder} is not writable ({error.strerror})."
        ) from None


def write_graphs(
    graphs: Sequence[CondensedGraph], paths: Sequence[Path], stage: Path | None = None
) -> None:
    """All files appear, or none: they are written beside their places and then moved.

    ``stage`` is a folder to write them in; whoever gives it removes it, also after a kill.
    """
    folder = paths[0].parent
    with uninterrupted():
        try:
            with _staging(folder, paths[0].name, stage) as staging:
                staged = [staging / path.name for path in paths]
                for graph, place in zip(graphs, staged, strict=True):
                    graph.save(place)
                for place, path in zip(staged, paths, strict=True):
                    place.replace(path)
        except OSError as error:
            raise InputError(f"out: {folder} cannot be written ({error.strerror}).") from None
        remember_written(paths)


@contextmanager
def _staging(folder: Path, name: str, stage: Path | None) -> Iterator[Path]:
    if stage is not None:
        stage.mkdir(parents=True, exist_ok=True)
        yield stage
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as made:
        yield Path(made)
