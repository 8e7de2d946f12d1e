"""Graph data condensation: a tiny synthetic graph that trains a GNN about as well as the original."""

from gcsr.utils.lazy import lazy_exports

# The names are in __init__.pyi.
__all__, __getattr__, __dir__ = lazy_exports(__name__)
