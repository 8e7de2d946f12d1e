"""Public names of a package that are imported when they are first used (Scientific Python, SPEC 1)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from (?P<module>[\w.]+) import (?P<name>\w+) as (?P=name)$", re.MULTILINE)


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` for the imports in the package's ``__init__.pyi``.

    Modules of the package itself (``from gcsr import models as models``) are no part of ``__all__``.
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    places = {found["name"]: found["module"] for found in _LINE.finditer(stub)}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = places[name]
        if place == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(place), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *places})

    return [name for name, place in places.items() if place != package], get, names
