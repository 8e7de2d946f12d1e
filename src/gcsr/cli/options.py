"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda; auto takes CUDA where there is one.")]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the datasets' files; by default $GCSR_DATA or the user's cache."),
]
Features = Annotated[
    str | None,
    typer.Option(help="keep, rows or standardise; by default what is usual for the dataset."),
]
Undirected = Annotated[
    bool, typer.Option("--undirected", help="Add the reverse edges of a directed graph.")
]
Inductive = Annotated[
    bool | None,
    typer.Option(
        "--inductive/--transductive",
        help="Whether validation and test nodes are hidden while condensing; by default as is"
        " usual for the dataset.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="local|HOST:PORT",
        help="Give the work to Ray (extra cluster): on this machine, or to the cluster of that head."
        " Results are the same bytes. [default: this process does it all]",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="What work on a graph folder may take (2GiB); a graph that needs more stays on disk and"
        " is worked on in blocks. By default half of what is free.",
    ),
]
MadeFrom = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="A dataset's name, a graph file or folder; by default what FILE was made from, if it is"
        " a known dataset that is here.",
    ),
]
AnyGraph = Annotated[
    bool, typer.Option("--any-graph", help="Accept data that FILE was not made from.")
]
ExpertMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory for the experts' trajectories (500MB, 2GiB); by default a quarter of what is"
        " free.",
    ),
]
ExpertDisk = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Disk for trained experts, where later runs find them ($GCSR_CACHE or the user's"
        " cache), and for trajectories that memory cannot hold; by default none.",
    ),
]
