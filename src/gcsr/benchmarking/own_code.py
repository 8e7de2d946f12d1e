"""The code of ``module:Class``, a method that is not of this library: nothing here imports it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path

OTHERS = sys.stdlib_module_names | {"gcsr"}
INSTALLED = {"site-packages", "dist-packages"}


def is_own(module: str, file: str) -> bool:
    """Whether a module is neither of Python, nor of this library or an installed package."""
    installed = file.startswith("<") or INSTALLED & set(Path(file).parts)
    return module.partition(".")[0] not in OTHERS and not installed


@cache
def code_hash(place: str) -> str | None:
    """A hash of the module of ``module:Class`` and of all that it imports, but installed packages.

    ``None`` where no file is found. Files may change while their code runs: they are read once.
    """
    first = place.partition(":")[0]
    waiting, found = [first], dict[str, str]()
    while waiting:
        # Packages too: an import of a.b runs a/__init__.py.
        for name in accumulate(waiting.pop().split("."), "{}.{}".format):
            file = None if name in found else _file_of(name, first.partition(".")[0])
            if file is not None:
                source = file.read_bytes()
                found[name] = hashlib.sha256(source).hexdigest()
                package = name if file.name == "__init__.py" else name.rpartition(".")[0]
                waiting += _imported(source, package)
    known = json.dumps(found, sort_keys=True).encode()
    return hashlib.sha256(known).hexdigest()[:16] if first in found else None


def _file_of(name: str, method: str) -> Path | None:
    """The source of a module of the user, or of the package of the method."""
    top, *rest = name.split(".")
    spec = None
    if top not in OTHERS and all(part.isidentifier() for part in (top, *rest)):
        with suppress(ImportError, ValueError, AttributeError):
            spec = find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])
    files = [Path(spec.origin or "")] if spec else []
    if spec and rest:
        folders = [Path(folder, *rest) for folder in spec.submodule_search_locations or ()]
        files = [file for one in folders for file in (one / "__init__.py", one.with_suffix(".py"))]
    own = (one for one in files if one.suffix == ".py" and (top == method or is_own(top, str(one))))
    # No error if a name is too long.
    return next((file for file in own if os.path.isfile(file)), None)  # noqa: PTH113


def _imported(source: bytes, package: str) -> Iterator[str]:
    """What a file may import, also in its functions."""
    with warnings.catch_warnings(), suppress(SyntaxError, ValueError, RecursionError):
        warnings.simplefilter("ignore")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                with suppress(ImportError):  # it is beyond the package
                    base = resolve_name("." * node.level + (node.module or ""), package)
                    yield from (f"{base}.{alias.name}" for alias in node.names)
