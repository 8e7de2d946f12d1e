"""The version and a hash of the source, in one place."""

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.3.0"


@cache
def source_hash() -> str:
    """The first 16 digits of the SHA-256 of the package's code and presets, and of their file names."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.toml")]):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(package).as_posix()}\n{len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
