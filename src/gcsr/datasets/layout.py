"""Arrays and files of published datasets, and where the files are in the data folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gcsr.utils.safe_io import expanded, is_file, user_folder

if TYPE_CHECKING:
    import scipy.sparse as sp

DATA_VARIABLE = "GCSR_DATA"
# The split of datasets that are published without one.
TRAIN_PER_CLASS = 20
VAL_PER_CLASS = 30
PER_CLASS_SPLIT = f"{TRAIN_PER_CLASS} / {VAL_PER_CLASS} per class, rest test"
# Files of the published formats.
ARXIV_FILES = (
    "raw/edge.csv.gz",
    "raw/node-feat.csv.gz",
    "raw/node-label.csv.gz",
    "raw/num-node-list.csv.gz",
    "raw/num-edge-list.csv.gz",
    "split/time/train.csv.gz",
    "split/time/valid.csv.gz",
    "split/time/test.csv.gz",
)
ARXIV_ARCHIVE = "arxiv.zip"
GRAPHSAINT_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
WORDNET_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Arrays as the files give them; :meth:`gcsr.Graph.from_arrays` checks and cleans them."""

    x: np.ndarray | sp.csr_array
    edges: np.ndarray | sp.csr_array
    y: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray
    num_classes: int = 0


def per_class_split(y: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test ids: 20 and 30 random nodes of every class, and the rest.

    Unlabeled nodes (-1) are in none of the three. The same labels and seed give the same split.
    """
    rng = np.random.default_rng(seed)
    order = np.argsort(y, kind="stable")  # one pass, however many classes there are
    order = order[y[order] >= 0]
    starts = np.flatnonzero(np.diff(y[order])) + 1
    cuts = [TRAIN_PER_CLASS, TRAIN_PER_CLASS + VAL_PER_CLASS]
    parts = [np.split(rng.permutation(nodes), cuts) for nodes in np.split(order, starts)]
    train, val, test = (np.sort(np.concatenate(part)) for part in zip(*parts, strict=True))
    return train, val, test


def shares_split(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train, validation and test ids: half, a quarter and the rest of the labeled nodes, at random."""
    nodes = np.random.default_rng(0).permutation(np.flatnonzero(y >= 0))
    train, val, test = np.split(nodes, [len(nodes) // 2, len(nodes) // 2 + len(nodes) // 4])
    return np.sort(train), np.sort(val), np.sort(test)


def data_root(root: str | Path | None) -> Path:
    """``root``, else ``$GCSR_DATA``, else ``gcsr`` in the user's cache folder."""
    return user_folder(root or os.environ.get(DATA_VARIABLE))


def spellings(*names: str, families: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Folders to try: every name, alone or under a family's folder, with its ``raw`` folder first.

    The first one is where a download goes.
    """
    bases = ("", *(f"{family}/" for family in families))
    return tuple(f"{base}{name}{raw}" for raw in ("/raw", "") for base in bases for name in names)


@dataclass(frozen=True)
class Layout:
    """The files of a dataset, the folders they may be in, and how to read them.

    ``reader`` is a function, ``module:name``, that is called with the folder and ``arguments``. Its
    module is imported for that: listing datasets imports neither torch nor scipy.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    reader: str
    arguments: tuple[str, ...] = ()
    urls: Callable[[], Mapping[str, str]] | None = None
    # Where other software installs the files; searched unless the user names a data folder.
    installed: tuple[str, ...] = ()

    def find(self, root: Path) -> Path | None:
        """The first folder that holds every file."""
        installed = self.installed if root == data_root(None) else ()
        candidates = (root / expanded(folder) for folder in (*self.folders, *installed))
        return next((c for c in candidates if all(is_file(c / f) for f in self.files)), None)

    def read(self, folder: Path) -> RawGraph:
        """The arrays of the files in a folder."""
        module, _, name = self.reader.partition(":")
        reader = getattr(import_module(f"gcsr.datasets.{module}"), name)
        raw: RawGraph = reader(folder, *self.arguments)
        return raw

    def target(self, root: Path) -> Path:
        """Where missing files belong: beside those that are there, else in the first folder."""
        candidates = (root / folder for folder in self.folders)
        started = (c for c in candidates if any(is_file(c / f) for f in self.files))
        return next(started, root / self.folders[0])


def planetoid_files(name: str) -> tuple[str, ...]:
    """The eight files of a Planetoid dataset."""
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return tuple(f"ind.{name}.{part}" for part in parts)
