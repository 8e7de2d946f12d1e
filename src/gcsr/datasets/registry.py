"""The list of datasets: a new dataset is one more entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gcsr.datasets.layout import (
    ARXIV_ARCHIVE,
    ARXIV_FILES,
    GRAPHSAINT_FILES,
    PER_CLASS_SPLIT,
    WORDNET_FILES,
    Layout,
    RawGraph,
    data_root,
    deferred,
    planetoid_files,
    spellings,
)
from gcsr.utils.safe_io import is_file

if TYPE_CHECKING:
    from gcsr.data.graph import FeatureScaling

_ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_DRIVE_URL = "https://drive.usercontent.google.com/download?id={}&confirm=t"


def _pyg_urls(pyg_class: str, files: tuple[str, ...]) -> dict[str, str]:
    """Addresses that PyG's dataset classes know."""
    from torch_geometric import datasets  # noqa: PLC0415 - takes a second to import

    published = getattr(datasets, pyg_class)
    if files == GRAPHSAINT_FILES:  # four shared files by their ids
        ids = (getattr(published, f"{file.split('.')[0]}_id") for file in files)
        return {file: _DRIVE_URL.format(one) for file, one in zip(files, ids, strict=True)}
    return {file: f"{published.url.rstrip('/')}/{file}" for file in files}


@dataclass(frozen=True)
class Size:
    """Published counts; ``edges`` are the stored entries of the symmetric adjacency."""

    nodes: int
    edges: int
    features: int
    classes: int


@dataclass(frozen=True)
class Dataset:
    """What is known of a dataset before its files are read, and how to read them.

    A dataset is either ``embedded`` or has ``layouts``, tried in order; the first layout with
    addresses is the one downloaded.
    """

    name: str
    size: Size
    split: str
    scaling: FeatureScaling
    source: str
    inductive: bool = False
    undirected: bool = False
    layouts: tuple[Layout, ...] = ()
    embedded: Callable[[], RawGraph] | None = None

    def graph_file(self, root: Path) -> Path | None:
        """The dataset as an ``.npz`` graph file, if there is one."""
        for path in (root / "graphs" / f"{self.name}.npz", root / f"{self.name}.npz"):
            if is_file(path):
                return path
        return None

    def available(self, root: Path) -> bool:
        """Whether the dataset can be read without a download."""
        return (
            self.embedded is not None
            or any(layout.find(root) for layout in self.layouts)
            or self.graph_file(root) is not None
        )


def _planetoid(name: str, folders: tuple[str, ...], size: Size) -> Dataset:
    files = planetoid_files(name)
    layout = Layout(
        spellings(*folders, name, families=("planetoid", "Planetoid")),
        files,
        deferred("readers:read_planetoid", name),
        partial(_pyg_urls, "Planetoid", files),
    )
    split = f"public, {20 * size.classes} / 500 / 1000"
    return Dataset(name, size, split, "rows", "Planetoid", layouts=(layout,))


def _gnn_benchmark(name: str, family: str, folder: str, size: Size) -> Dataset:
    """A co-purchase graph of Amazon or a co-author graph of Microsoft Academic."""
    amazon = family == "Amazon"
    short = folder.lower()
    file = f"amazon_electronics_{short}.npz" if amazon else f"ms_academic_{short[:3]}.npz"
    layout = Layout(
        spellings(folder, folder.lower(), name, families=(family.lower(), family)),
        (file,),
        deferred("readers:read_gnnbench", file),
        partial(_pyg_urls, family, (file,)),
    )
    return Dataset(
        name,
        size,
        PER_CLASS_SPLIT,
        "standardize" if amazon else "rows",
        f"{'Amazon co-purchases' if amazon else 'Microsoft Academic co-authors'} (GNN benchmark)",
        undirected=True,
        layouts=(layout,),
    )


def _graphsaint(name: str, folder: str, size: Size, split: str) -> Dataset:
    layout = Layout(
        spellings(folder, folder.lower(), name, families=("graphsaint", "GraphSAINT")),
        GRAPHSAINT_FILES,
        deferred("readers:read_graphsaint"),
        partial(_pyg_urls, folder, GRAPHSAINT_FILES),
    )
    split = f"public, {split}"
    return Dataset(
        name, size, split, "standardize", "GraphSAINT", inductive=True, layouts=(layout,)
    )


_DIGITS = Dataset(
    "digits",
    Size(1797, 24678, 64, 10),
    split=PER_CLASS_SPLIT,
    scaling="keep",
    source="scikit-learn (bundled), 10 nearest neighbors",
    embedded=deferred("readers:read_digits"),
)

_ARXIV_FOLDERS = ("ogbn_arxiv", "ogbn-arxiv", "arxiv")
_ARXIV = Dataset(
    "ogbn-arxiv",
    Size(169343, 2315598, 128, 40),
    split="public, 90941 / 29799 / 48603",
    scaling="standardize",
    source="Open Graph Benchmark",
    undirected=True,
    layouts=(
        Layout(_ARXIV_FOLDERS, ARXIV_FILES, deferred("ogb_csv:read_arxiv_folder")),
        Layout(
            (*_ARXIV_FOLDERS, "."),
            (ARXIV_ARCHIVE,),
            deferred("ogb_csv:read_arxiv_archive"),
            lambda: {ARXIV_ARCHIVE: _ARXIV_URL},
        ),
        Layout(
            spellings(*_ARXIV_FOLDERS, families=("graphsaint", "GraphSAINT")),
            GRAPHSAINT_FILES,
            deferred("readers:read_graphsaint"),
        ),
    ),
)

_NLTK = ("~/nltk_data", "/usr/share/nltk_data", "/usr/local/share/nltk_data")
_WORDNET = Dataset(
    "wordnet",
    Size(117659, 367578, 5719, 44),  # of WordNet 3.0
    split="50 / 25 / 25 %, random",
    scaling="keep",
    source="WordNet's dict files (Debian: wordnet-base; NLTK: wordnet)",
    layouts=(
        Layout(
            (".", "dict", "wordnet", "wordnet/dict"),
            WORDNET_FILES,
            deferred("readers:read_wordnet"),
            installed=("/usr/share/wordnet", *(f"{one}/corpora/wordnet" for one in _NLTK)),
        ),
    ),
)

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        _DIGITS,
        _planetoid("cora", ("Cora",), Size(2708, 10556, 1433, 7)),
        _planetoid("citeseer", ("CiteSeer", "Citeseer"), Size(3327, 9104, 3703, 6)),
        _planetoid("pubmed", ("PubMed", "Pubmed"), Size(19717, 88648, 500, 3)),
        _gnn_benchmark("amazon-computers", "Amazon", "Computers", Size(13752, 491722, 767, 10)),
        _gnn_benchmark("amazon-photo", "Amazon", "Photo", Size(7650, 238162, 745, 8)),
        _gnn_benchmark("coauthor-cs", "Coauthor", "CS", Size(18333, 163788, 6805, 15)),
        _gnn_benchmark("coauthor-physics", "Coauthor", "Physics", Size(34493, 495924, 8415, 5)),
        _graphsaint("flickr", "Flickr", Size(89250, 899756, 500, 7), "44625 / 22312 / 22313"),
        _graphsaint("reddit", "Reddit2", Size(232965, 23213838, 602, 41), "153932 / 23699 / 55334"),
        _ARXIV,
        _WORDNET,
    )
}


@dataclass(frozen=True)
class DatasetInfo:
    """One line of the catalogue; ``available`` means readable without a download."""

    name: str
    nodes: int
    edges: int
    features_count: int
    classes: int
    split: str
    setting: Literal["transductive", "inductive"]
    scaling: FeatureScaling
    source: str
    available: bool


def names() -> tuple[str, ...]:
    """Every registered dataset."""
    return tuple(DATASETS)


def catalogue(root: str | Path | None = None) -> list[DatasetInfo]:
    """What is known of every registered dataset, and whether ``root`` holds it."""
    folder = data_root(root)
    return [
        DatasetInfo(
            name=dataset.name,
            nodes=dataset.size.nodes,
            edges=dataset.size.edges,
            features_count=dataset.size.features,
            classes=dataset.size.classes,
            split=dataset.split,
            setting="inductive" if dataset.inductive else "transductive",
            scaling=dataset.scaling,
            source=dataset.source,
            available=dataset.available(folder),
        )
        for dataset in DATASETS.values()
    ]
