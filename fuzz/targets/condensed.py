"""Condensed graphs: what is read, what is printed of it, and the page that is made of it."""

from __future__ import annotations

import io
from pathlib import Path

import torch

from fuzz.containers import Archive, Safetensors
from fuzz.target import FindingError, Target
from fuzz.targets.small import file_bytes, small_condensed, written
from gcsr import CondensedGraph, InputError, report
from gcsr.benchmarking.measurement import load_graphs
from gcsr.cli.inspect import described_rows
from gcsr.reporting.report import condensed_files, known_dataset

_WORDS = (b'"dataset"', b'"notes"', b"1e999", b"NaN", b"null", b"{}", b"[[]]", b"9" * 400)


def _seeds() -> list[bytes]:
    kinds = ({}, {"half": True}, {"soft": True}, {"half": True, "soft": True}, {"sparse": True})
    return [file_bytes(small_condensed(**kind)) for kind in kinds]


def _read(data: bytes, folder: Path) -> object:
    small = CondensedGraph.load(written(folder, "a.safetensors", data))
    try:
        again = CondensedGraph.load(small.save(folder / "again.safetensors"))
    except InputError as error:
        raise FindingError("what was read cannot be written and read again") from error
    return (
        repr(again),
        list(described_rows(again.describe())),
        again.targets if again.num_classes < 99 else 0,
    )


def _page(data: bytes, folder: Path) -> object:
    path = written(folder, "a.safetensors", data)
    loaded = [CondensedGraph.load(file) for file in condensed_files([folder], path.suffix)]
    several = [loaded[0], small_condensed()]
    return known_dataset(loaded[0], folder), report(several if len(data) % 3 == 0 else loaded[0])


def _kept(data: bytes, folder: Path) -> object:
    return load_graphs([written(folder, "kept-0.safetensors", data)])


def _tensor_seeds() -> list[bytes]:
    """One file: a mapping of tensors, with A' or edges."""
    small = small_condensed()
    found = []
    for more in ({"adj": small.adjacency}, {"edge_index": torch.tensor([[0, 1], [1, 2]])}, {}):
        stream = io.BytesIO()
        torch.save({"x": small.x, "y": small.y.clamp_min(0), **more}, stream)
        found.append(stream.getvalue())
    return found


def _read_tensors(data: bytes, folder: Path) -> object:
    small = CondensedGraph.load(written(folder, "a.pt", data))
    return repr(small), list(described_rows(small.describe()))


TARGETS = (
    Target(
        "torch-files",
        "condensed graphs of other programs (`.pt`)",
        _tensor_seeds,
        _read_tensors,
        Archive(),
        (b"torch._utils", b"cuiltins\neval", b"data.pkl"),
    ),
    Target(
        "condensed",
        "condensed graphs (`.safetensors`) and `gcsr inspect`",
        _seeds,
        _read,
        Safetensors(),
        _WORDS,
    ),
    Target("report", "condensed graphs in `gcsr report`", _seeds, _page, Safetensors(), _WORDS),
    Target("kept-graphs", "graphs kept by `gcsr reproduce`", _seeds, _kept, Safetensors(), _WORDS),
)
