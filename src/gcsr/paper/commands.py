"""The commands that measure one cell by hand."""

from __future__ import annotations

from gcsr.condense import paper_settings
from gcsr.paper.cells import STATISTICS, WHOLE_GRAPH, Cell, Protocol


def command(cell: Cell, protocol: Protocol) -> str:
    """What to type for the same numbers."""
    if cell.method == STATISTICS:
        return f"gcsr reproduce table1 --dataset {cell.dataset}"
    if cell.look and cell.method == WHOLE_GRAPH:
        return f"gcsr reproduce {cell.look} --dataset {cell.dataset}"
    recipe = protocol.recipe(cell.dataset)
    test = (
        f"--data {cell.dataset} --model {cell.test} --runs {protocol.runs} --epochs {recipe.epochs}"
    )
    if cell.method == WHOLE_GRAPH:
        return f"gcsr evaluate --full {test}"
    nodes = cell.nodes or 0
    model = dict(cell.settings).get("model", "sgc")
    base, _ = paper_settings(cell.method, cell.dataset, nodes, model=model)
    chosen = cell.condenser(protocol).settings
    given = dict(cell.settings)
    if protocol.quick:
        # What a smoke run cuts short differs from the preset, or from the method's own default.
        full = cell.condenser(Protocol(protocol.graphs, protocol.runs)).settings
        given |= {key: value for key, value in chosen.items() if value != full[key]}
    sets = "".join(
        f" --set {key}={value}" for key, value in given.items() if base.get(key) != value
    )
    name = f"{cell.dataset}-{nodes}"
    graphs = f"--graphs {protocol.graphs} --out {name}.safetensors"
    files = f"{name}.safetensors" if protocol.graphs == 1 else f"{name}-*.safetensors"
    then = f"gcsr evaluate {files} {test}"
    if cell.cut:
        then = f"gcsr reproduce table4 --dataset {cell.dataset}  # cuts A' below {cell.cut:g}"
    if cell.look:
        first = files.replace("*", "0")
        then = f"gcsr analyse {first} --data {cell.dataset} --figures {name}"
    return (
        f"gcsr condense {cell.dataset} --nodes {nodes} --method {cell.method} --preset paper{sets}"
        f" {graphs} && {then}"
    )
