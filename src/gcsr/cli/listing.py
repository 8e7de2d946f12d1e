"""``gcsr datasets`` and ``gcsr methods``."""

from __future__ import annotations

from dataclasses import MISSING, Field, asdict, fields
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.options import SIZES
from gcsr.cli.output import console, plain_text, print_json, table

if TYPE_CHECKING:
    from gcsr.methods.base import Condenser

SIZE = (
    "The size is given by --nodes, or by --ratio as a share of the nodes that may be seen:\n"
    "of all, or of the training nodes of an inductive graph."
)


def datasets(root: options.Root = None, as_json: options.Json = False) -> None:
    """List the registered datasets and whether their files are present."""
    from gcsr.datasets.layout import data_root  # noqa: PLC0415
    from gcsr.datasets.registry import catalogue  # noqa: PLC0415

    folder = data_root(root)
    known = catalogue(root)
    if as_json:
        print_json([{**asdict(info), "folder": str(folder)} for info in known])
        return
    numbers = ("nodes", "edges", "features", "classes")
    shown = table("name", *numbers, "setting", "scaling", "split", "present", numbers=numbers)
    for info in known:
        shown.add_row(
            info.name,
            f"{info.nodes:,}",
            f"{info.edges:,}",
            f"{info.features_count:,}",
            str(info.classes),
            info.setting,
            info.scaling,
            info.split,
            "yes" if info.available else "no",
        )
    console().print(shown)
    print(f"folder: {folder} (what is not present is downloaded into it when asked for)")


def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="METHOD", help="One method: what its settings mean.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the methods and their settings with default values, or explain one of them."""
    from gcsr.methods.registry import ALIASES  # noqa: PLC0415
    from gcsr.methods.registry import method as method_of  # noqa: PLC0415 - imports torch
    from gcsr.methods.registry import methods as known_methods  # noqa: PLC0415

    known = known_methods()
    if name is not None:
        known = {name: method_of(name)}
    described: list[dict[str, Any]] = [
        {"name": name, "summary": method.summary, "settings": _defaults(method)}
        for name, method in known.items()
    ]
    if as_json:
        print_json(described)
        return
    if name is not None:
        print(_explained(known[name]))
        return
    shown = table("name", "summary", "settings")
    for one in described:
        settings = [f"{key}={_said(value)}" for key, value in one["settings"].items()]
        shown.add_row(one["name"], one["summary"], ", ".join(settings) or "none")
    console().print(shown)
    aliases = ", ".join(f"{short} = {name}" for short, name in ALIASES.items())
    print(f"other names of settings: {aliases}")


def _explained(method: type[Condenser]) -> str:
    """Defaults, then the documents of the method and of what it builds on."""
    from gcsr.methods.base import Condenser as Base  # noqa: PLC0415
    from gcsr.methods.registry import setting_kinds  # noqa: PLC0415

    ours = [one for one in method.__mro__ if issubclass(one, Base) and one is not Base]
    settable = setting_kinds(method)
    documents = [plain_text(getdoc(one) or "", settable) for one in ours if one.__doc__]
    defaults = ", ".join(f"{key}={_said(value)}" for key, value in _defaults(method).items())
    head = f"{method.name}: {method.summary}\nsettings: {defaults or 'none'}"
    if method.delegates:
        others = ", ".join(other.name for other in method.delegates)
        head += f"\nand any setting of {others}, which is then not up for choice"
    return "\n\n".join([head, *documents, SIZE])


def _defaults(method: type[Condenser]) -> dict[str, Any]:
    """What --set accepts of the method's own settings, and what it is otherwise."""
    from gcsr.methods.registry import setting_kinds  # noqa: PLC0415 - imports torch

    settable = setting_kinds(method).keys() - set(SIZES)
    return {f.name: _default(f) for f in fields(method) if f.name in settable}


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _said(value: object) -> str:
    if value is None:
        return "none"
    return str(value) if value != "" else "''"
