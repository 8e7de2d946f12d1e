"""A page of Markdown about a condensed graph, for whoever gets its file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
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
    plain = re.fullmatch(r"[\w.+-]+", license_name) is not None
    lines = (
        "---",
        # A JSON string is one of YAML too.
        f"license: {license_name if plain else json.dumps(license_name)}",
        "tags: [graph-condensation, node-classification]",
        "---",
        *_sizes(small),
        *_accuracies(small, accuracies),
        *_source(small, license_name),
        *_leaks(small, privacy),
        *_loading(),
    )
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    """A text of a file of unknown origin that cannot be read as Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(value))


def _number(value: object) -> str:
    return f"{value:,}" if is_number(value) else "?"


def _sizes(small: CondensedGraph) -> Iterator[str]:
    made = small.provenance
    source, chosen = part(made, "dataset"), part(part(made, "automatic"), "chosen")
    name = _text(source.get("name", "an unnamed graph"))
    by = f", which chose {_text(chosen.get('method'))}" if chosen else ""
    seed = _text(made.get("seed", "?"))
    yield f"# {name} in {counted(small.num_nodes, 'node')}"
    yield ""
    yield (
        f"A graph for node classification, condensed from {name} by the method"
        f" {_text(made.get('method', '?'))}{by}, seed {seed}. A graph neural network is trained on it"
        " and then used on the original graph."
    )
    described = small.describe()
    edges = int(small.adjacency.count_nonzero() - small.adjacency.diag().count_nonzero())
    rows = (
        ("nodes", f"{small.num_nodes:,}", _number(source.get("num_nodes"))),
        ("edges (both directions)", f"{edges:,}", _number(source.get("num_edges"))),
        ("features", f"{small.x.shape[1]:,}", _number(source.get("num_features"))),
        ("classes", f"{small.num_classes:,}", _number(source.get("num_classes"))),
        ("bytes", byte_count(small.stored_bytes), byte_count(small.original_bytes)),
    )
    yield ""
    yield "| | condensed | original |"
    yield "|---|---|---|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""
    yield f"Labels are {described['labels']}; numbers are {described['stored_dtype']}."
    for note in small.size_note:
        yield f"Note: {note}."


def _accuracies(small: CondensedGraph, accuracies: Sequence[object]) -> Iterator[str]:
    yield ""
    yield "## Accuracy"
    yield ""
    yield from (f"- test accuracy: {_text(one)}" for one in accuracies)
    values = part(small.provenance, "validation").get("values")
    scores = [one for one in values if is_number(one)] if isinstance(values, list) else []
    if scores:
        yield f"- validation accuracy while condensing: {100 * max(scores):.1f} %"
    if not accuracies:
        name = _text(part(small.provenance, "dataset").get("name", "DATA"))
        yield f"- test accuracy: not recorded; `gcsr evaluate FILE --data {name}` measures it"


def _source(small: CondensedGraph, license_name: str) -> Iterator[str]:
    made = small.provenance
    source = part(made, "dataset")
    seen = "training nodes and the edges among them" if source.get("inductive") else "all nodes"
    settings = json.dumps(part(made, "settings"), sort_keys=True)
    versions = ", ".join(f"{name} {one}" for name, one in sorted(part(made, "versions").items()))
    yield from (
        "",
        "## Source and license",
        "",
        f"- original: {_text(source.get('name', '?'))}, content hash"
        f" {_text(source.get('content_hash', '?'))}",
        f"- seen while condensing: {seen}; features: {_text(source.get('features', '?'))}",
        f"- license: {_text(license_name)}; the license of the original data applies to what is made"
        " from them",
        f"- settings: {_text(settings)}",
        f"- versions: {_text(versions or '?')}",
    )


def _leaks(small: CondensedGraph, privacy: Sequence[str]) -> Iterator[str]:
    made = small.provenance
    method = part(part(made, "automatic"), "chosen").get("method", made.get("method"))
    yield from ("", "## Leaks", "")
    if small.leaks_test_labels:
        yield "- **Test labels of the original went into this graph: its accuracy is no fair score.**"
    elif "leaks_test_labels" in made:
        yield "- No test label was read while condensing."
    else:
        yield "- The file does not say whether test labels were read while condensing."
    if made.get("pseudo_labels"):
        yield "- Pseudo-labels of unlabeled nodes were used."
    if method in SELECTIONS:
        yield "- Its nodes are real ones: rows of the original's features are in this file."
    else:
        yield (
            "- Its features were computed from those of real nodes, without any guarantee of privacy."
        )
    yield from (f"- {_text(one)}." for one in privacy)
    if not privacy:
        yield "- What networks trained on it give away: not measured; `gcsr privacy FILE` measures it."


def _loading() -> Iterator[str]:
    yield from (
        "",
        "## How to load",
        "",
        "```python",
        "import gcsr",
        "",
        'small = gcsr.CondensedGraph.load("FILE.safetensors")',
        "data = small.to_pyg()  # a torch_geometric.data.Data",
        "```",
    )
