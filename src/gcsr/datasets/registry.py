"""The list of datasets, and where their files are: a new dataset is one more entry."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gcsr.utils.safe_io import expanded, is_file, user_folder

if TYPE_CHECKING:
    from gcsr.data.arrays import FeatureScaling

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
_ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_DRIVE_URL = "https://drive.usercontent.google.com/download?id={}&confirm=t"


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

    ``reader`` is the name of a function of :mod:`gcsr.datasets.readers`, which is called with the
    folder and ``arguments``: listing datasets imports neither torch nor scipy.
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

    def target(self, root: Path) -> Path:
        """Where missing files belong: beside those that are there, else in the first folder."""
        candidates = (root / folder for folder in self.folders)
        started = (c for c in candidates if any(is_file(c / f) for f in self.files))
        return next(started, root / self.folders[0])


def planetoid_files(name: str) -> tuple[str, ...]:
    """The eight files of a Planetoid dataset."""
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return tuple(f"ind.{name}.{part}" for part in parts)


def _pyg_urls(pyg_class: str, files: tuple[str, ...]) -> dict[str, str]:
    """Addresses that PyG's dataset classes know."""
    from torch_geometric import datasets  # noqa: PLC0415 - takes a second to import

    published = getattr(datasets, pyg_class)
    if files == GRAPHSAINT_FILES:  # four shared files by their ids
        ids = (getattr(published, f"{file.split('.')[0]}_id") for file in files)
        return {file: _DRIVE_URL.format(one) for file, one in zip(files, ids, strict=True)}
    return {file: f"{published.url.rstrip('/')}/{file}" for file in files}


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a dataset before its files are read: one line of the catalogue.

    ``edges`` are the stored entries of the symmetric adjacency. ``available`` means readable without
    a download.
    """

    name: str
    nodes: int
    edges: int
    features_count: int
    classes: int
    split: str
    setting: Literal["transductive", "inductive"]
    scaling: FeatureScaling
    source: str
    available: bool = False


@dataclass(frozen=True)
class Dataset(DatasetInfo):
    """How to read a dataset, too.

    Its ``layouts`` are tried in order; the first one with addresses is the one downloaded.
    """

    undirected: bool = False
    layouts: tuple[Layout, ...] = ()

    @property
    def inductive(self) -> bool:
        """Whether validation and test nodes are usually hidden while condensing."""
        return self.setting == "inductive"

    def graph_file(self, root: Path) -> Path | None:
        """The dataset as an ``.npz`` graph file, if there is one."""
        paths = (root / folder / f"{self.name}.npz" for folder in ("graphs", ""))
        return next((path for path in paths if is_file(path)), None)


# Numbers of nodes, edges, features and classes.
Size = tuple[int, int, int, int]


def _from_pyg(
    pyg_class: str, family: str, names: tuple[str, ...], files: tuple[str, ...], *reader: str
) -> tuple[Layout, ...]:
    """Files that PyG downloads; a reader and its arguments."""
    folders = spellings(*names, families=(family.lower(), family))
    urls = partial(_pyg_urls, pyg_class, files)
    return (Layout(folders, files, reader[0], reader[1:], urls),)


def _planetoid(name: str, folders: tuple[str, ...], size: Size) -> Dataset:
    names, files = (*folders, name), planetoid_files(name)
    layouts = _from_pyg("Planetoid", "Planetoid", names, files, "read_planetoid", name)
    split = f"public, {20 * size[-1]} / 500 / 1000"
    return Dataset(name, *size, split, "transductive", "rows", "Planetoid", layouts=layouts)


def _gnn_benchmark(name: str, family: str, folder: str, size: Size) -> Dataset:
    """A co-purchase graph of Amazon or a co-author graph of Microsoft Academic."""
    amazon, short = family == "Amazon", folder.lower()
    file = f"amazon_electronics_{short}.npz" if amazon else f"ms_academic_{short[:3]}.npz"
    names = folder, short, name
    layouts = _from_pyg(family, family, names, (file,), "read_gnnbench", file)
    return Dataset(
        name,
        *size,
        PER_CLASS_SPLIT,
        "transductive",
        "standardize" if amazon else "rows",
        f"{'Amazon co-purchases' if amazon else 'Microsoft Academic co-authors'} (GNN benchmark)",
        undirected=True,
        layouts=layouts,
    )


def _graphsaint(name: str, folder: str, size: Size, split: str) -> Dataset:
    names = folder, folder.lower(), name
    layouts = _from_pyg(folder, "GraphSAINT", names, GRAPHSAINT_FILES, "read_graphsaint")
    split = f"public, {split}"
    return Dataset(name, *size, split, "inductive", "standardize", "GraphSAINT", layouts=layouts)


_DIGITS = Dataset(
    "digits",
    nodes=1797,
    edges=24678,
    features_count=64,
    classes=10,
    split=PER_CLASS_SPLIT,
    setting="transductive",
    scaling="keep",
    source="scikit-learn (bundled), 10 nearest neighbors",
    layouts=(Layout((".",), (), "read_digits"),),
)

_ARXIV_FOLDERS = ("ogbn_arxiv", "ogbn-arxiv", "arxiv")
_ARXIV = Dataset(
    "ogbn-arxiv",
    nodes=169343,
    edges=2315598,
    features_count=128,
    classes=40,
    split="public, 90941 / 29799 / 48603",
    setting="transductive",
    scaling="standardize",
    source="Open Graph Benchmark",
    undirected=True,
    layouts=(
        Layout(_ARXIV_FOLDERS, ARXIV_FILES, "read_arxiv"),
        Layout(
            (*_ARXIV_FOLDERS, "."),
            (ARXIV_ARCHIVE,),
            "read_arxiv",
            (ARXIV_ARCHIVE,),
            lambda: {ARXIV_ARCHIVE: _ARXIV_URL},
        ),
        Layout(
            spellings(*_ARXIV_FOLDERS, families=("graphsaint", "GraphSAINT")),
            GRAPHSAINT_FILES,
            "read_graphsaint",
        ),
    ),
)

_NLTK = ("~/nltk_data", "/usr/share/nltk_data", "/usr/local/share/nltk_data")
_WORDNET = Dataset(
    "wordnet",
    nodes=117659,
    edges=367578,
    features_count=5719,
    classes=44,  # of WordNet 3.0
    split="50 / 25 / 25 %, random",
    setting="transductive",
    scaling="keep",
    source="WordNet's dict files (Debian: wordnet-base; NLTK: wordnet)",
    layouts=(
        Layout(
            (".", "dict", "wordnet", "wordnet/dict"),
            WORDNET_FILES,
            "read_wordnet",
            installed=("/usr/share/wordnet", *(f"{one}/corpora/wordnet" for one in _NLTK)),
        ),
    ),
)

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        _DIGITS,
        _planetoid("cora", ("Cora",), (2708, 10556, 1433, 7)),
        _planetoid("citeseer", ("CiteSeer", "Citeseer"), (3327, 9104, 3703, 6)),
        _planetoid("pubmed", ("PubMed", "Pubmed"), (19717, 88648, 500, 3)),
        _gnn_benchmark("amazon-computers", "Amazon", "Computers", (13752, 491722, 767, 10)),
        _gnn_benchmark("amazon-photo", "Amazon", "Photo", (7650, 238162, 745, 8)),
        _gnn_benchmark("coauthor-cs", "Coauthor", "CS", (18333, 163788, 6805, 15)),
        _gnn_benchmark("coauthor-physics", "Coauthor", "Physics", (34493, 495924, 8415, 5)),
        _graphsaint("flickr", "Flickr", (89250, 899756, 500, 7), "44625 / 22312 / 22313"),
        _graphsaint("reddit", "Reddit2", (232965, 23213838, 602, 41), "153932 / 23699 / 55334"),
        _ARXIV,
        _WORDNET,
    )
}


def names() -> tuple[str, ...]:
    """Every registered dataset."""
    return tuple(DATASETS)


def catalogue(root: str | Path | None = None) -> list[DatasetInfo]:
    """What is known of every registered dataset, and whether ``root`` holds it."""
    folder = data_root(root)
    found = []
    for dataset in DATASETS.values():
        known = {field.name: getattr(dataset, field.name) for field in fields(DatasetInfo)}
        here = any(layout.find(folder) for layout in dataset.layouts)
        known["available"] = here or dataset.graph_file(folder) is not None
        found.append(DatasetInfo(**known))
    return found
