"""DATA, a registered name or a file, as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gcsr.errors import InputError, require
from gcsr.progress import Progress

if TYPE_CHECKING:
    from gcsr.condensed import CondensedGraph
    from gcsr.graph import Graph
    from gcsr.graph.graph import FeatureScaling


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
    from gcsr.datasets import load  # noqa: PLC0415 - torch takes a second to import
    from gcsr.graph.folder import is_folder  # noqa: PLC0415

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
    from gcsr.report.sources import known_dataset  # noqa: PLC0415 - imports torch

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
