"""Condensation methods, one file each, and what a new method is written with."""

from gcsr.utils.lazy import lazy_exports

# The registry lists methods without importing torch. The names are in __init__.pyi.
__all__, __getattr__, __dir__ = lazy_exports(__name__)
