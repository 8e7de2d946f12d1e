"""Where condensed graphs go: checked before the long work, written whole after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gcsr.utils.errors import InputError, require
from gcsr.utils.progress import Progress

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
    from gcsr.data.graph import FeatureScaling, Graph
import json
from typing import TYPE_CHECKING

from gcsr.cli.output import printable
from gcsr.utils.formatting import counted

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gcsr.cli.output import remember_written, uninterrupted

# -- DATA, a registered name or a file, as a graph ---------------------------------------------------


def load_graph(
    data: str,
    *,
    root: Path | None,
    features: str | None,
    undirected: bool,
    inductive: bool | None,
    progress: Progress,
    memory: int | None = None,
    made: Sequence[CondensedGraph] = (),
) -> Graph:
    """Load a graph; the library refuses a scaling that it does not know.

    What is not given is as it was when the graphs ``made`` from the data were.
    """
    from gcsr.data.folder import is_folder  # noqa: PLC0415
    from gcsr.datasets.loading import load  # noqa: PLC0415 - torch takes a second to import

    require(
        memory is None or is_folder(data),
        f"--memory: is for graph folders, and {data} is none; gcsr convert makes one of it.",
    )
    if features is None:
        features = recorded(made, "features", str)
    if inductive is None:
        inductive = recorded(made, "inductive", bool)
    stage = f"loading {data}"
    progress(stage, 0, 0)
    scaling = cast("FeatureScaling | None", features)
    graph = load(
        data,
        root,
        features=scaling,
        undirected=undirected,
        inductive=inductive,
        memory=memory,
    )
    progress(stage, 1, 1)
    return graph


def found_data(small: Sequence[CondensedGraph], root: Path | None) -> str:
    """The dataset that condensed graphs name; one that is not known or not here is refused."""
    from gcsr.reporting.report import known_dataset  # noqa: PLC0415 - imports torch

    sources = [one.provenance.get("dataset") for one in small]
    named = {str(source.get("name")) for source in sources if isinstance(source, dict)}
    if len(named) > 1:
        said = ", ".join(sorted(named))
        raise InputError(f"--data: the files were made from different datasets ({said}); name one.")
    name, why = known_dataset(small[0], root)
    if name is None:
        raise InputError(why)
    return name


def print_found(name: str) -> None:
    """Say which dataset was used where nobody named one."""
    print(f"data: {name}, which the file says it was made from")


def recorded(graphs: Sequence[CondensedGraph], field: str, kind: type) -> Any:
    """How the data were loaded when the graphs were made, if they all say the same."""
    sources = [graph.provenance.get("dataset") for graph in graphs]
    values = [source.get(field) for source in sources if isinstance(source, dict)]
    known = {value for value in values if isinstance(value, kind)}
    if len(known) > 1:
        said = ", ".join(sorted(str(value) for value in known))
        raise InputError(f"{field}: the files were made with different values ({said}); give one.")
    return known.pop() if known else None


# -- What a file held that a new graph takes the place of: nobody should lose one unawares -----------


MOST_NAMED = 4


def replaced(path: Path, by: CondensedGraph) -> str | None:
    """A sentence if there is a file of something else; the same graph made again is no loss."""
    from gcsr.data.condensed import CondensedGraph  # noqa: PLC0415 - torch takes a second to import

    if not path.is_file():
        return None
    try:
        old = CondensedGraph.load(path)
    except InputError:
        return f"replaced {path}, which could not be read as a condensed graph"
    before, now = _identity(old.provenance), _identity(by.provenance)
    # Of another method, its settings say nothing more.
    compared = before | now if before["method"] == now["method"] else _identity({})
    other = [name for name in sorted(compared) if before.get(name) != now.get(name)]
    if not other:
        return None
    named = ", ".join(other[:MOST_NAMED]) + ", ..." * (len(other) > MOST_NAMED)
    made = old.provenance.get("method")
    maker = f" by {made}" if isinstance(made, str) else ""
    held = f"{counted(old.num_nodes, 'node')}{maker}"
    return printable(f"replaced {path}, which held {held} (differs in: {named})")


def _identity(made: dict[str, Any]) -> dict[str, str]:
    """What makes a graph, by name; a file by another program may lack any of it."""
    source, stored, settings = (_part(made, name) for name in ("dataset", "stored", "settings"))
    told = {
        **settings,
        "method": made.get("method"),
        "nodes": made.get("nodes"),
        "seed": made.get("seed"),
        "data": [source.get("content_hash"), source.get("inductive")],
        "sparsify": stored.get("asked", "none"),
        "stored dtype": stored.get("dtype"),
    }
    # As a file tells it: tuples are lists there.
    return {name: json.dumps(value, sort_keys=True, default=str) for name, value in told.items()}


def _part(made: dict[str, Any], name: str) -> dict[str, Any]:
    part = made.get(name)
    return part if isinstance(part, dict) else {}


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
