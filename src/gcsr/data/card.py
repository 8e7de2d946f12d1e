"""A page of Markdown about a condensed graph, for whoever gets its file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from gcsr.utils.formatting import byte_count, counted, printable
from gcsr.utils.safe_io import is_number, part

if TYPE_CHECKING:
    from gcsr.data.condensed import CondensedGraph

# Their nodes are real ones.
SELECTIONS = ("random", "herding", "kcenter", "bonsai")


def card(
    small: CondensedGraph,
    accuracies: Sequence[object],
    license_name: str,
    privacy: Sequence[str] = (),
) -> str:
    """The card, with a header that hubs of datasets read."""
    from jinja2 import Environment  # noqa: PLC0415 - needed for cards alone
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(  # noqa: S701 - every value is escaped, as Markdown
        finalize=lambda value: value if isinstance(value, Markup) else _text(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": _number, "byte_count": byte_count}
    template = environment.from_string(files("gcsr.data").joinpath("card.md").read_text("utf-8"))

    made = small.provenance
    source, chosen = part(made, "dataset"), part(part(made, "automatic"), "chosen")
    values = part(made, "validation").get("values")
    versions = sorted(part(made, "versions").items())
    plain = re.fullmatch(r"[\w.+-]+", license_name) is not None
    return template.render(
        small=small,
        made=made,
        source=source,
        chosen=chosen,
        described=small.describe(),
        # A JSON string is one of YAML too.
        license=Markup(license_name if plain else json.dumps(license_name)),  # noqa: S704
        license_name=license_name,
        name=source.get("name", "an unnamed graph"),
        nodes=counted(small.num_nodes, "node"),
        method=made.get("method", "?"),
        seed=made.get("seed", "?"),
        edges=int(small.adjacency.count_nonzero() - small.adjacency.diag().count_nonzero()),
        accuracies=accuracies,
        scores=[one for one in values if is_number(one)] if isinstance(values, list) else [],
        settings=json.dumps(part(made, "settings"), sort_keys=True),
        versions=", ".join(f"{name} {one}" for name, one in versions),
        selects=chosen.get("method", made.get("method")) in SELECTIONS,
        privacy=privacy,
    )


def _text(value: object) -> str:
    """A text of a file of unknown origin that cannot be read as Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(value))


def _number(value: object) -> str:
    return f"{value:,}" if is_number(value) else "?"
