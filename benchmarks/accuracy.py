"""Accuracy cells: condense several graphs, test them, and keep each result as a JSON row.

    python benchmarks/accuracy.py --out results/cora.json cora:70 cora:70:prior=predicted
    python benchmarks/accuracy.py --out results/table4.json --test gcn,sgc,mlp cora:70
    python benchmarks/accuracy.py --out results/baselines.json herding/cora:70 whole/cora

A cell is ``[method/]dataset:nodes[:key=value...]``; settings are added to the authors' preset
(``--preset``), and ``inductive=true`` concerns the data. ``whole/dataset`` trains on the whole graph,
``pseudo/dataset`` does so with pseudo-labels of the nodes without a training label.
Rows of cells that are already in the file are replaced.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import gcsr
from gcsr.methods.base import code_versions
from gcsr.paper.published import TABLE2, TABLE3, TABLE4, TEST_MODELS, WHOLE
from gcsr.utils.devices import machine_name, pick_device

# Cora 70 by test model (Table 4) and by condensing model (Table 3).
PUBLISHED_TEST = {model: TABLE4["cora"]["gcsr"][model] for model in TEST_MODELS}
PUBLISHED_CONDENSING = {model: mean for model, (mean, _) in TABLE3["gcsr"].items()}


def published(
    method: str, dataset: str, nodes: int, settings: dict[str, Any], test: str
) -> float | None:
    condensing = settings.get("model", "sgc")
    if method == "gcsr" and (dataset, nodes) == ("cora", 70):
        if condensing != "sgc":
            return PUBLISHED_CONDENSING.get(condensing) if test == "gcn" else None
        if test != "gcn":
            return PUBLISHED_TEST.get(test)
    if test != "gcn" or set(settings) - {"prior"}:
        return None
    if method == "whole":
        return WHOLE.get(dataset, (None, None))[0]
    return TABLE2.get(method, {}).get((dataset, nodes), (None, None))[0]


def parse(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", default="gcn")
    parser.add_argument("--method", default="gcsr")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--graphs", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    for name, kind in (("dropout", float), ("epochs", int), ("hidden_channels", int)):
        parser.add_argument(f"--{name}", type=kind, default=None, help="of the test networks")
    measure_cells(parser, measured)


def measure_cells(
    parser: argparse.ArgumentParser,
    measured: Callable[[str, argparse.Namespace], Iterable[dict[str, Any]]],
) -> None:
    """Read the command line and put the rows of its cells into a file, in place of older ones."""
    parser.add_argument("cells", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--root", default=None)
    arguments = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if arguments.out.exists():
        rows = {row["cell"]: row for row in json.loads(arguments.out.read_text())}
    for cell in arguments.cells:
        for row in measured(cell, arguments):
            rows[row["cell"]] = row
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps([rows[k] for k in sorted(rows)], indent=1) + "\n")


def measured(cell: str, arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row per test model."""
    method, name = cell.split("/") if "/" in cell else (arguments.method, cell)
    dataset, *rest = name.split(":")
    on_the_whole = method in ("whole", "pseudo")
    extra = rest if on_the_whole else rest[1:]
    settings = {key: parse(value) for key, value in (item.split("=", 1) for item in extra)}
    inductive = settings.pop("inductive", None)
    graph = gcsr.load(dataset, root=arguments.root, inductive=inductive)
    device = pick_device(arguments.device)
    began = time.perf_counter()
    if not on_the_whole:
        nodes = int(rest[0])
        seeds = range(arguments.seed, arguments.seed + arguments.graphs)
        small = gcsr.condense_many(
            graph,
            nodes=nodes,
            method=method,
            preset=arguments.preset,
            seeds=seeds,
            device=device,
            **settings,
        )
    seconds = time.perf_counter() - began
    for test in arguments.test.split(","):
        options: dict[str, Any] = {"model": test, "runs": arguments.runs, "device": device}
        other = {
            name: getattr(arguments, name)
            for name in ("dropout", "epochs", "hidden_channels")
            if getattr(arguments, name) is not None
        }
        recipe = {name: value for name, value in other.items() if name != "hidden_channels"}
        options |= {name: value for name, value in other.items() if name == "hidden_channels"}
        options |= {"recipe": gcsr.TrainingRecipe(**recipe)} if recipe else {}
        told: dict[str, Any] = {}
        if on_the_whole:
            nodes = graph.num_nodes
            outcome = gcsr.evaluate_full(graph, pseudo_labels=method == "pseudo", **options)
            command = (
                f"gcsr evaluate --full --data {dataset} --model {test} --runs {arguments.runs}"
                + (" --pseudo-labels" if method == "pseudo" else "")
            )
        else:
            outcome = gcsr.evaluate(small, graph, **options)
            told = {key: small[0].provenance[key] for key in ("revisions", "settings", "notes")}
            if method == "auto":
                told["chosen"] = [one.provenance["automatic"]["chosen"] for one in small]
                told["plan"] = small[0].provenance["automatic"]["plan"]
            sets = "".join(f" --set {key}={value}" for key, value in settings.items())
            sets += " --inductive" if inductive else ""
            command = (
                f"gcsr condense {dataset} --nodes {nodes} --method {method} --preset"
                f" {arguments.preset}{sets} --seed {arguments.seed} --graphs {arguments.graphs}"
                f" --out {dataset}-{nodes}.safetensors && gcsr evaluate {dataset}-{nodes}-*.safetensors"
                f" --data {dataset}{' --inductive' if inductive else ''} --model {test}"
                f" --runs {arguments.runs}"
            )
        asked = "".join(f" --{name} {value}" for name, value in other.items())
        command += asked
        if set(other) - {"dropout"}:
            # The command line trains test networks as the paper does, dropout aside.
            sizes = f"--graphs {arguments.graphs} --runs {arguments.runs}"
            command = f"python benchmarks/accuracy.py {sizes}{asked} --out rows.json {cell}"
        later = f":seeds={arguments.seed}-{arguments.seed + arguments.graphs - 1}"
        key = f"{method}/{arguments.preset}/{name}{later if arguments.seed else ''}"
        key += "".join(f":test-{name}={value}" for name, value in other.items()) + f"/{test}"
        row = {
            "cell": key,
            "published": published(method, dataset, nodes, settings, test),
            "graphs": 1 if on_the_whole else arguments.graphs,
            **outcome.to_dict(),
            "condense_seconds": seconds,
            "device": machine_name(device) if device.type == "cuda" else "cpu",
            "data": graph.content_hash,
            "versions": code_versions(),
            **told,
            "command": command,
        }
        shown = f"{key}: {outcome} published {row['published']} condense {seconds:.1f} s"
        print(f"{shown}, evaluate {outcome.seconds:.1f} s", flush=True)
        yield row


if __name__ == "__main__":
    main()
