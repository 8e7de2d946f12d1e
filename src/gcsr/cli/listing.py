"""``gcsr datasets`` and ``gcsr methods``."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import MISSING, asdict, fields
from inspect import getdoc
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gcsr.cli import options
from gcsr.cli.options import ENTRY, SIZES, without_markup
from gcsr.cli.output import print_json, print_table

if TYPE_CHECKING:
    from gcsr.methods.base import Condenser

SIZE = (
    "The size is given by --nodes, or by --ratio as a share of the visible nodes:\n"
    "of all, or of the training nodes of an inductive graph."
)


def datasets(root: options.Root = None, as_json: options.Json = False) -> None:
    """List the registered datasets and whether their files are present."""
    from gcsr.datasets.registry import DATASETS, catalogue, data_root

    folder = data_root(root)
    known = catalogue(root)
    if as_json:
        print_json([{**asdict(info), "folder": str(folder)} for info in known])
        return
    numbers = ("nodes", "edges", "features", "classes")
    rows = (
        (
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
        for info in known
    )
    print_table(("name", *numbers, "setting", "scaling", "split", "present"), rows, numbers)
    print(f"folder: {folder}")
    layout = DATASETS["cora"].layouts[0]
    print(
        f"Raw files are in a folder per dataset, such as {layout.target(folder) / layout.files[0]}."
    )
    print(
        "A dataset that is not present is downloaded into it when a command names it, unless"
        " --no-download is given."
    )


def methods(
    name: Annotated[str | None, typer.Argument(metavar="METHOD")] = None,
    as_json: options.Json = False,
) -> None:
    """List the methods and their settings with default values, or explain one of them.

    Args:
        name: One method: what its settings mean.
    """
    from gcsr.methods.registry import ALIASES
    from gcsr.methods.registry import method as method_of
    from gcsr.methods.registry import methods as known_methods

    known = known_methods() if name is None else {name: method_of(name)}
    if as_json:
        print_json(
            [
                {"name": name, "summary": method.summary, "settings": _defaults(method)}
                for name, method in known.items()
            ]
        )
    elif name is not None:
        print(_explained(known[name]))
    else:
        rows = [(name, method.summary, _texts(method)) for name, method in known.items()]
        print_table(("name", "summary", "settings"), rows)
        aliases = ", ".join(f"{short} = {name}" for short, name in ALIASES.items())
        print(f"other names of settings: {aliases}")


def _explained(method: type[Condenser]) -> str:
    """Defaults, then the docstrings of the method and of its base classes."""
    from gcsr.methods.base import Condenser as Base
    from gcsr.methods.registry import setting_kinds

    ours = [one for one in method.__mro__ if issubclass(one, Base) and one is not Base]
    settable = setting_kinds(method)
    texts: list[str] = []
    entries: dict[str, str] = {}
    for document in (getdoc(one) or "" for one in ours if one.__doc__):
        head, found = plain_text(document, settable.keys())
        if not head.startswith("Settings of"):  # of a base class that is no method
            texts.append(head)
        entries = found | entries  # a method's own text replaces that of its base class
    top = f"{method.name}: {method.summary}\nsettings: {_texts(method)}"
    if method.reference:
        top += f"\nfrom {method.reference}"
    if method.delegates:
        others = ", ".join(other.name for other in method.delegates)
        top += f"\nand any setting of {others}, which is then not up for choice"
    listed = ["Settings:\n" + "\n".join(entries.values())] if entries else []
    return "\n\n".join([top, *texts, *listed, SIZE])


def _defaults(method: type[Condenser]) -> dict[str, Any]:
    """The method's own settings that --set accepts, with their defaults."""
    from gcsr.methods.registry import setting_kinds

    settable = setting_kinds(method).keys() - set(SIZES)
    found: dict[str, Any] = {}
    for field in fields(method):
        if field.name in settable:
            made = None if field.default_factory is MISSING else field.default_factory()
            found[field.name] = made if field.default is MISSING else field.default
    return found


def _texts(method: type[Condenser]) -> str:
    shown = {None: "none", "": "''"}
    pairs = [
        f"{key}={shown.get(value, value) if isinstance(value, str | None) else value}"
        for key, value in _defaults(method).items()
    ]
    return ", ".join(pairs) or "none"


def plain_text(document: str, settable: Set[str]) -> tuple[str, dict[str, str]]:
    """A docstring without markup, and the entries of its arguments that are in ``settable``."""
    head, _, entries = without_markup(document, "'").partition("Args:\n")
    found = {one[1]: one[0].rstrip() for one in ENTRY.finditer(entries)}
    kept = {name: entry for name, entry in found.items() if settable & set(name.split(", "))}
    return head.rstrip(), kept
