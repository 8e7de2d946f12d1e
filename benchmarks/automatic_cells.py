"""The cells that the automatic mode is measured on, both label regimes."""

from __future__ import annotations

# Ten nodes per class: name, cell, and where its whole graph is.
FEW_LABELS = {
    "Cora, 70": ("cora:70", "cora"),
    "Citeseer, 60": ("citeseer:60", "citeseer"),
    "PubMed, 30": ("pubmed:30", "pubmed"),
    "amazon-computers, 100": ("amazon-computers:100", "amazon-computers"),
    "facebook-pagepage, 40": ("facebook-pagepage.npz:40", "facebook-pagepage.npz"),
    "digits, 100": ("digits:100", "digits"),
}
MANY_LABELS = {
    "WordNet, 440": ("wordnet.npz:440", "wordnet.npz"),
    "facebook-pagepage 60/20/20, 40": (
        "facebook-pagepage-rich.npz:40",
        "facebook-pagepage-rich.npz",
    ),
    "amazon-computers 60/20/20, 100": (
        "amazon-computers-rich.npz:100",
        "amazon-computers-rich.npz",
    ),
    "actor, 50": ("actor.npz:50", "actor.npz"),
    "ogbn-arxiv stand-in, 454": ("ogbn-arxiv-standin.npz:454", "ogbn-arxiv-standin.npz"),
    "facebook-pagepage, 40, inductive": (
        "facebook-pagepage.npz:40:inductive=true",
        "facebook-pagepage.npz:inductive=true",
    ),
}
GRAPHS = FEW_LABELS | MANY_LABELS
# Fifty nodes per class.
LARGER = {
    "WordNet, 2200": "wordnet.npz:2200",
    "facebook-pagepage 60/20/20, 200": "facebook-pagepage-rich.npz:200",
    "amazon-computers 60/20/20, 500": "amazon-computers-rich.npz:500",
    "actor, 250": "actor.npz:250",
    "ogbn-arxiv stand-in, 2270": "ogbn-arxiv-standin.npz:2270",
}
SIZES = [("cora", n) for n in (35, 70, 140)] + [("citeseer", n) for n in (30, 60, 120)]
# Networks of other architectures, on three graphs and on what they were condensed from.
MODELS = ("mlp", "sgc", "gcn", "sage", "appnp", "cheby", "gat")
TRANSFER = ("Cora, 70", "facebook-pagepage 60/20/20, 40", "WordNet, 440")
# The ablation leaves the stand-in and the inductive graph out.
ABLATED = tuple(name for name in GRAPHS if "stand-in" not in name and "inductive" not in name)


def with_settings(cell: str, part: str) -> str:
    """Settings come after the size and before what concerns the data."""
    dataset, nodes, *rest = cell.split(":")
    return ":".join([dataset, nodes, part, *rest])
