"""Where each dataset is published: the addresses that PyG's dataset classes know, and OGB's.

Only the addresses are used: PyG's own download neither times out nor checks certificates, and its
readers unpickle.
"""

from __future__ import annotations

from gcsr.datasets.ogb_csv import ARXIV_ARCHIVE
from gcsr.datasets.planetoid import planetoid_files

_ARXIV_URL = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
_DRIVE_URL = "https://drive.usercontent.google.com/download?id={}&confirm=t"


def planetoid_urls(name: str) -> dict[str, str]:
    """Cora, Citeseer, PubMed."""
    from torch_geometric.datasets import Planetoid  # noqa: PLC0415 - PyG takes a second to import

    return {file: f"{Planetoid.url}/{file}" for file in planetoid_files(name)}


def amazon_urls(file: str) -> dict[str, str]:
    """The Amazon co-purchase graphs."""
    from torch_geometric.datasets import Amazon  # noqa: PLC0415 - PyG takes a second to import

    return {file: f"{Amazon.url}{file}"}


def coauthor_urls(file: str) -> dict[str, str]:
    """The Coauthor graphs."""
    from torch_geometric.datasets import Coauthor  # noqa: PLC0415 - PyG takes a second to import

    return {file: f"{Coauthor.url}{file}"}


def graphsaint_urls(pyg_class: str) -> dict[str, str]:
    """Flickr and Reddit2, which PyG knows by the ids of four shared files."""
    from torch_geometric import datasets  # noqa: PLC0415 - PyG takes a second to import

    published = getattr(datasets, pyg_class)
    return {
        "adj_full.npz": _DRIVE_URL.format(published.adj_full_id),
        "feats.npy": _DRIVE_URL.format(published.feats_id),
        "class_map.json": _DRIVE_URL.format(published.class_map_id),
        "role.json": _DRIVE_URL.format(published.role_id),
    }


def arxiv_urls() -> dict[str, str]:
    """OGB's archive, kept as it is."""
    return {ARXIV_ARCHIVE: _ARXIV_URL}
