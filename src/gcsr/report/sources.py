"""What a path stands for: a result, a folder of results, or a reproduced folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gcsr.condensed import CondensedGraph
from gcsr.datasets import catalogue
from gcsr.errors import require
from gcsr.report.said import part, text


def is_reproduced(folder: Path) -> bool:
    """Whether a folder holds rows of ``gcsr reproduce``."""
    return any(folder.glob("rows*.jsonl"))


def condensed_files(paths: Sequence[Path], suffix: str) -> list[Path]:
    """Files as they are; of folders the condensed graphs in them, by name."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.glob(f"*{suffix}")) if path.is_dir() else [path]
        require(
            bool(inside),
            f"{path}: holds neither condensed graphs (*{suffix}) nor rows of `gcsr reproduce`.",
        )
        files += inside
    for path in files:
        require(files.count(path) == 1, f"{path}: is given twice.")
    return files


def result_names(files: Sequence[Path]) -> list[str]:
    """The files' names, with their folders where names alone are not enough."""
    names = [path.name for path in files]
    return names if len(set(names)) == len(names) else [str(path) for path in files]


def known_dataset(small: CondensedGraph, root: Path | None) -> tuple[str | None, str]:
    """The dataset that a result names if it is here, else the reason why it is not used.

    A file may come from anywhere: its name opens no path and downloads nothing.
    """
    name = text(part(small.provenance, "dataset"), "name", "")
    if not name:
        return None, "The result does not say what it was made from; give the graph with --data."
    here = {info.name: info.available for info in catalogue(root)}
    if name not in here:
        return None, f"{name} is no dataset known by name; give the graph with --data."
    if not here[name]:
        return None, f"The files of {name} are not here; give --data {name} to have them fetched."
    return name, ""
