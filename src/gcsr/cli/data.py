"""Graphs that commands read, and files of condensed graphs that they write."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gcsr
from gcsr.cli.options import Loading
from gcsr.cli.output import progress_bars, remember_written, uninterrupted
from gcsr.utils.errors import InputError, require
from gcsr.utils.formatting import counted, parse_bytes, printable
from gcsr.utils.progress import Progress
from gcsr.utils.safe_io import accessing, part

SUFFIX = ".safetensors"  # as in gcsr.data.condensed, which imports torch
# Pages, and what the beginning of each has.
PAGE_SUFFIXES, PAGE_TITLE, PAGE_HEAD = (".html", ".htm"), b"gcsr report</title>", 2**16
MOST_GRAPHS = 10_000
MOST_NAMED = 4
# What results of different methods can differ in.
COMPARABLE = ("method", "nodes", "seed", "data", "sparsify", "stored dtype")


def load_graph(
    data: str | None,
    loading: Loading,
    progress: Progress,
    *,
    memory: str | None = None,
    made: Sequence[gcsr.CondensedGraph] = (),
) -> gcsr.Graph:
    """Load a graph; what is not given is as it was when the graphs ``made`` from it were."""
    from gcsr.data.folder import is_folder
    from gcsr.datasets.loading import load

    bound = None if memory is None else parse_bytes("--memory", memory)
    source = _recorded_dataset(made, loading.root) if data is None else data
    require(
        memory is None or is_folder(source),
        f"--memory is for graph folders, got {source}; gcsr convert makes a folder of it.",
    )
    progress(f"loading {source}", 0, 0)
    graph = load(source, memory=bound, **vars(as_recorded(loading, made)))
    progress(f"loading {source}", 1, 1)
    return graph


def as_recorded(loading: Loading, made: Sequence[gcsr.CondensedGraph]) -> Loading:
    """The same; what is not given is as it was when condensed graphs were made."""
    kinds = {"features": str, "inductive": bool}
    missing = [name for name in kinds if getattr(loading, name) is None]
    return replace(loading, **{name: recorded(made, name, kinds[name]) for name in missing})


def on_file(
    function: Callable[..., Any], file: Path, data: str | None, loading: Loading, **options: Any
) -> Any:
    """What a function of the library returns for a condensed graph, its real graph and options."""
    small = gcsr.CondensedGraph.load(file)
    with progress_bars() as progress:
        graph = load_graph(data, loading, progress, made=[small])
        return function(small, graph, progress=progress, **options)


def _recorded_dataset(small: Sequence[gcsr.CondensedGraph], root: Path | None) -> str:
    """The dataset that condensed graphs name; an unknown or missing one is refused."""
    from gcsr.reporting.report import known_dataset

    names = {
        str(source.get("name")) for one in small if (source := part(one.provenance, "dataset"))
    }
    if len(names) > 1:
        listed = ", ".join(sorted(names))
        raise InputError(
            f"--data is needed: the files were made from different datasets ({listed})."
        )
    name, why = known_dataset(small[0], root)
    if name is None:
        raise InputError(why)
    return name


def print_found(data: str | None, name: str) -> None:
    """Print which dataset was used without --data."""
    if data is None:
        print(f"data: {name}, which the file says it was made from")


def recorded(graphs: Sequence[gcsr.CondensedGraph], field: str, kind: type) -> Any:
    """How the data were loaded when the graphs were made, if all files have the same value."""
    values = [part(graph.provenance, "dataset").get(field) for graph in graphs]
    # Files of versions before 0.2 say standardise.
    known = {
        "standardize" if value == "standardise" else value
        for value in values
        if isinstance(value, kind)
    }
    if len(known) > 1:
        listed = ", ".join(sorted(map(str, known)))
        option = "--inductive or --transductive" if field == "inductive" else f"--{field}"
        raise InputError(
            f"{option} is needed: the files were made with different {field} ({listed})."
        )
    return known.pop() if known else None


def replaced(path: Path, by: gcsr.CondensedGraph) -> str | None:
    """A sentence if a file of another result is replaced; the same result made again is none."""
    if not path.is_file():
        return None
    try:
        old = gcsr.CondensedGraph.load(path)
    except InputError:
        return f"replaced {path}, which could not be read as a condensed graph"
    from gcsr.evaluation.origin import identity

    before, now = identity(old), identity(by)
    # Settings of another method do not compare.
    compared = before | now if before["method"] == now["method"] else COMPARABLE
    other = [name for name in sorted(compared) if before.get(name) != now.get(name)]
    if not other:
        return None
    named = ", ".join(other[:MOST_NAMED]) + ", ..." * (len(other) > MOST_NAMED)
    method = old.provenance.get("method")
    maker = f" by {method}" if isinstance(method, str) else ""
    held = f"{counted(old.num_nodes, 'node')}{maker}"
    return printable(f"replaced {path}, which held {held} (differs in: {named})")


def output_paths(out: Path, graphs: int = 1) -> list[Path]:
    """Where condensed graphs are written, checked before long work.

    ``out`` itself for one graph; NAME-0.safetensors, NAME-1.safetensors, ... for several.
    """
    paths = [out]
    if graphs > 1:
        require(graphs <= MOST_GRAPHS, f"--graphs must be <= {MOST_GRAPHS}, got {graphs}.")
        stem = out.name.removesuffix(SUFFIX)
        paths = [out.with_name(f"{stem}-{i}{SUFFIX}") for i in range(graphs)]
    require_writable(paths)
    require(out.suffix == SUFFIX, f"out must end with {SUFFIX}, got {out}.")
    for path in paths:
        require(
            not path.is_file() or _is_safetensors(path),
            f"out: {path} exists and is no condensed graph; name another file, or remove it first.",
        )
    return paths


def _is_safetensors(path: Path) -> bool:
    """Whether a file begins with the length of a header that it has room for, and its brace."""
    begin = _beginning(path, 9)
    length = int.from_bytes(begin[:8], "little")
    return begin[8:] == b"{" and 8 + length <= path.stat().st_size


def _beginning(path: Path, count: int) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError:
        return b""


def require_page(out: Path) -> None:
    """Refuse a name that no page has, and an existing file that is no page of this program."""
    require_writable([out])
    require(out.suffix in PAGE_SUFFIXES, f"out must end with .html, got {out}.")
    if out.is_file():
        begin = _beginning(out, PAGE_HEAD)
        require(
            begin.startswith(b"<!doctype html>") and PAGE_TITLE in begin,
            f"out: {out} exists and is no page of gcsr; name another file, or remove it first.",
        )


def require_writable(paths: Sequence[Path]) -> None:
    """Refuse names that no file can have, and folders that cannot be written."""
    for path in paths:
        require(path.name not in ("", ".."), f"out must be the name of a file, got {str(path)!r}.")
        require(not path.is_dir(), f"out must be a file; {path} is a folder.")
    require_writable_folder("out", paths[0].parent)


def require_writable_folder(field: str, folder: Path) -> None:
    """Refuse a folder that does not exist or cannot be written."""
    require(folder.exists(), f"{field}: the folder {folder} does not exist.")
    require(folder.is_dir(), f"{field}: {folder} is not a folder.")
    refusal = f"{field}: the folder {folder} is not writable"
    with accessing(refusal), tempfile.TemporaryFile(dir=folder):
        pass


def write_graphs(
    graphs: Sequence[gcsr.CondensedGraph],
    paths: Sequence[Path],
    checkpoint: gcsr.Checkpoint | None = None,
) -> None:
    """All files appear, or none: they are written beside their places and then moved.

    A checkpoint is removed then; where they cannot be written, it stays if it has a state.
    """
    folder = paths[0].parent
    stage = folder if checkpoint is None else checkpoint.stage
    written = False
    with uninterrupted():
        try:
            stage.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=stage, prefix=f".{paths[0].name}.") as made:
                staged = [Path(made) / path.name for path in paths]
                for graph, place in zip(graphs, staged, strict=True):
                    graph.save(place)
                for place, path in zip(staged, paths, strict=True):
                    place.replace(path)
            written = True
        except OSError as error:
            raise InputError(f"out: {folder} cannot be written ({error.strerror}).") from None
        finally:
            if checkpoint is not None and (written or not checkpoint.exists):
                checkpoint.discard()
        remember_written(paths)


def write_page(out: Path, page: str) -> int:
    """Write a page; returns its bytes."""
    from gcsr.utils.safe_io import write_atomically

    content = page.encode(errors="replace")  # names of files may be no valid Unicode
    with uninterrupted():
        write_atomically(out, content)
        remember_written([out])
    return len(content)
