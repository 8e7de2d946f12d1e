"""What the provenance of every result says, whichever method made it."""

from __future__ import annotations

import platform
from importlib.metadata import version

from gcsr.version import __version__
from gcsr.views import Source

# Libraries whose version can change a result.
VERSIONED = ("torch", "numpy", "scipy", "safetensors")


def library_versions() -> dict[str, str]:
    """Of this library, of Python, and of what else can change a result."""
    return {
        "gcsr": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONED},
    }


def size_note(condensed: int, source: Source) -> list[str]:
    """A sentence where the condensed graph takes more bytes than its original."""
    if condensed < source.nbytes:
        return []
    return [
        f"the condensed graph takes {condensed:,} bytes, its original, stored sparsely,"
        f" {source.nbytes:,}: condensed features are dense, and A' grows with the square of its nodes;"
        " fewer nodes, --dtype float16 or --sparsify make it smaller"
    ]
