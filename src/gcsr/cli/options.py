"""``--set key=value``: text to the type of the method's field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from gcsr.utils.errors import InputError, require

# -- Numbers of bytes as people write them -----------------------------------------------------------


UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**i for i, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**i for i, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d{1,2})?)\s*([kmgt]?i?b)?", re.ASCII)


def parse_bytes(option: str, text: str) -> int:
    """``500MB``, ``2GiB``, ``1e9`` or plain bytes; anything else is one clear sentence."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is not None and (match[2] or "") in UNITS:
        size = Decimal(match[1]) * UNITS[match[2] or ""]
        # Half a byte is a forgotten unit.
        if (match[2] or size == int(size)) and size < 2**63:
            return int(size)
    raise InputError(
        f"{option}: {text!r} is not accepted; a size such as 500MB, 2GiB or 1e9 (bytes) is."
    )


def expert_bounds(memory: str | None, disk: str | None) -> dict[str, int]:
    """What ``--expert-memory`` and ``--expert-disk`` say, by the names of the settings they bound."""
    given = {"expert_memory": memory, "expert_disk": disk}
    return {
        key: parse_bytes(f"--{key.replace('_', '-')}", text)
        for key, text in given.items()
        if text is not None
    }


# -- Options that several verbs share ----------------------------------------------------------------


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
    bool,
    typer.Option(
        "--no-check-origin", "--any-graph", help="Accept data that FILE was not made from."
    ),
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


# Options of their own, so that there is one way to say each.
SIZES = ("nodes", "ratio")


def parse_settings(method: str, assignments: Sequence[str]) -> dict[str, Any]:
    """Settings by field name; keys that the method does not have stay, for the library to refuse."""
    from gcsr.methods.registry import method as find_method  # noqa: PLC0415
    from gcsr.methods.registry import setting_kinds, setting_name  # noqa: PLC0415 - torch takes a second to import
    from gcsr.methods.settings import value_of  # noqa: PLC0415
    from gcsr.utils.renamed import new_name  # noqa: PLC0415

    kinds = setting_kinds(find_method(method))
    settings: dict[str, Any] = {}
    for assignment in assignments:
        given, equals, text = (part.strip() for part in assignment.partition("="))
        require(
            bool(equals and given),
            f"--set: {assignment!r} is not accepted; key=value is (for example alpha=0.5).",
        )
        key = new_name(setting_name(given), method, kinds)
        require(key not in SIZES, f"--set: {given!r} is not accepted here; --{key} is.")
        require(key not in settings, f"--set: {given!r} is given twice.")
        settings[key] = value_of(given, text, kinds[key]) if key in kinds else text
    return settings
