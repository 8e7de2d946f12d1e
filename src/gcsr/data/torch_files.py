"""Condensed graphs saved with ``torch.save`` by GraphSlim, GCond, SFGC and the authors of GCSR.

A graph is three files in one folder, ``adj_NAME.pt``, ``feat_NAME.pt`` and ``label_NAME.pt``; without
the first A' is the identity. Or it is one file with a mapping of tensors: ``x`` or ``feat``, ``y`` or
``label``, and ``adj``, or ``edge_index`` with ``edge_weight``, or neither. Files are loaded with
``weights_only=True``, which runs no code.
"""

from __future__ import annotations

import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gcsr.utils.errors import InputError, require
from gcsr.utils.safe_io import is_file, naming, parsing, require_unfoldable

SUFFIXES = (".pt", ".pth")
PARTS = ("adj", "feat", "label")
_NAMES = {
    "feat": ("x", "feat", "feat_syn", "features"),
    "label": ("y", "label", "labels", "labels_syn"),
    "adj": ("adj", "adjacency", "adj_syn"),
    "edge_index": ("edge_index",),
    "edge_weight": ("edge_weight", "weight"),
}
# As GraphSlim and the authors write: dataset, rate, seed.
_NAME = re.compile(r"(?P<dataset>.+)_(?P<rate>[\d.]+)_(?P<seed>\d+)")


def read_tensors(path: Path) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
    """Features, A', labels, and what the names of the files say of their origin."""
    prefix, _, name = path.stem.partition("_")
    made: dict[str, Any] = {"files": [path.name]}
    if prefix in PARTS and name:
        files = {part: path.with_name(f"{part}_{name}{path.suffix}") for part in PARTS}
        for part in ("feat", "label"):
            require(is_file(files[part]), f"{files[part]}: no such file, but {path.name} needs it.")
        present = {part: file for part, file in files.items() if is_file(file)}
        found = {part: _load(file) for part, file in present.items()}
        made = {"files": [file.name for file in present.values()]}
        size = sum(file.stat().st_size for file in present.values())
        if match := _NAME.fullmatch(name):
            made |= match.groupdict()
            if path.parent.parent.name == "reduced_graph":  # of GraphSlim
                made["method"] = path.parent.name
    else:
        content, size = _load(path), path.stat().st_size
        require(
            isinstance(content, Mapping),
            f"{path}: must be adj_NAME.pt, feat_NAME.pt or label_NAME.pt, or have a mapping of tensors,"
            f" got {type(content).__name__}.",
        )
        found = {
            part: content[key] for part, names in _NAMES.items() for key in names if key in content
        }
        for part in ("feat", "label"):
            require(part in found, f"{path}: must have {' or '.join(_NAMES[part])}, got neither.")
    with naming(path):
        tensors = {part: _tensor(part, value, size) for part, value in found.items()}
        x, y = tensors["feat"].float(), tensors["label"]
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        return x, _adjacency(tensors, len(x), size), y if y.ndim == 2 else y.long(), made


def _load(file: Path) -> Any:
    """The content of one file; a zip archive that stands for too many bytes is refused."""
    with naming(file), parsing("not a readable file of torch.save"):
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
        plain = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        require(plain, "must be as torch.save writes it, got a compressed archive.")
        require_unfoldable("its tensors", sum(e.file_size for e in entries), file.stat().st_size)
        try:
            # Indices of sparse tensors are not checked otherwise.
            with torch.sparse.check_sparse_tensor_invariants():
                return torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:
            raise InputError(
                "must hold tensors only, got other objects, which loading could run as code; save"
                " tensors (docs/coming-from.md)."
            ) from None


def _tensor(part: str, value: Any, size: int) -> Tensor:
    """A dense tensor of its own; one that repeats or unfolds few bytes to many is refused."""
    fine = isinstance(value, Tensor) and not value.is_quantized and not value.is_complex()
    require(fine, f"{part} must be a tensor of real numbers, got {type(value).__name__}.")
    with parsing(f"{part} is broken"):
        require_unfoldable(part, value.numel() * value.element_size(), size)
        found: Tensor = value.detach()
        return (found.to_dense() if found.layout != torch.strided else found).contiguous()


def _adjacency(tensors: Mapping[str, Tensor], nodes: int, size: int) -> Tensor:
    if "adj" in tensors:
        return tensors["adj"].float()
    require_unfoldable("adj", 4 * nodes * nodes, size)
    if "edge_index" not in tensors:
        return torch.eye(nodes)
    ends = tensors["edge_index"].long()
    inside = ends.ndim == 2 and ends.shape[0] == 2 and bool(((ends >= 0) & (ends < nodes)).all())
    require(inside, f"edge_index must be of shape (2, edges) with ids below {nodes}.")
    weight = tensors.get("edge_weight", torch.ones(ends.shape[1])).float().flatten()
    require(
        len(weight) == ends.shape[1],
        f"edge_weight must have {ends.shape[1]} numbers, got {len(weight)}.",
    )
    return torch.zeros(nodes, nodes).index_put((ends[0], ends[1]), weight, accumulate=True)
