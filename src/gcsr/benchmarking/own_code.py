"""The code of ``module:Class``, a method that is not of this library: nothing here imports it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import sys
import sysconfig
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
# Some modules of Python have names that are not in ``OTHERS``.
PYTHON = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
# Files of an installed package beyond which it is not read.
MOST_FILES = 500


def is_own(module: str, file: str) -> bool:
    """Whether a module is neither of Python, nor of this library or an installed package."""
    if file.startswith("<") or module.partition(".")[0] in OTHERS:
        return False
    path = Path(file)
    return not (INSTALLED & set(path.parts) or any(path.is_relative_to(one) for one in PYTHON))


def code_hash(place: str, *, installed: bool = False) -> str | None:
    """A hash of the module of ``module:Class`` and of all that it imports, but installed packages.

    ``None`` where no file is found, and for a module of an installed package. With ``installed`` the
    hash of such a module is of its package alone, ``None`` above ``MOST_FILES``. Files may change
    while their code runs: they are read once, until :func:`forget_code`.
    """
    return _hash_of(place.partition(":")[0], installed)


def forget_code() -> None:
    """Read files again, which may have changed."""
    for known in (_hash_of, _file_of, _read):
        known.cache_clear()


@cache
def _hash_of(first: str, installed: bool) -> str | None:
    file, top = _file_of(first), first.partition(".")[0]
    if file is None or not (installed or is_own(first, str(file))):
        return None
    own = is_own(first, str(file))
    found = dict[str, str]()
    waiting = set(_with_packages(first))
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        path = _file_of(name)
        counts = is_own(name, str(path)) if own else name.partition(".")[0] == top
        if path is not None and counts:
            found[name], imported = _read(name, path)
            waiting |= imported - seen
            seen |= imported
        if not own and len(found) > MOST_FILES:
            return None
    known = json.dumps(found, sort_keys=True).encode()
    return hashlib.sha256(known).hexdigest()[:16]


@cache
def _file_of(name: str) -> Path | None:
    """The source of a module that is neither of Python nor of this library."""
    top, *rest = name.split(".")
    spec = None
    if top not in OTHERS and all(part.isidentifier() for part in (top, *rest)):
        with suppress(ImportError, ValueError, AttributeError):
            spec = find_spec(top) or PathFinder.find_spec(top, [str(Path.cwd())])
    files = [Path(spec.origin or "")] if spec else []
    if spec and rest:
        folders = [Path(folder, *rest) for folder in spec.submodule_search_locations or ()]
        files = [file for one in folders for file in (one / "__init__.py", one.with_suffix(".py"))]
    # No error if a name is too long.
    return next((one for one in files if one.suffix == ".py" and os.path.isfile(one)), None)  # noqa: PTH113


@cache
def _read(name: str, file: Path) -> tuple[str, frozenset[str]]:
    """The hash of a module's file, and all that it may import."""
    source = file.read_bytes()
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    imported = (one for given in _imported(source, package) for one in _with_packages(given))
    return hashlib.sha256(source).hexdigest(), frozenset(imported)


def _with_packages(name: str) -> Iterator[str]:
    """An import of a.b runs a/__init__.py too."""
    return accumulate(name.split("."), "{}.{}".format)


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
