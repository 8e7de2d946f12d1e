"""Hashes of a fixed set of runs, to see that a change of the code changes no result.

    python benchmarks/recorded_runs.py --out before.json
    python benchmarks/recorded_runs.py --out after.json --compare before.json

Every method on digits, GCSR with the paper's preset on Cora (shortened; needs --root), evaluations with
every model, a run that is resumed, and one on a local cluster (--cluster).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

import gcsr
from gcsr.methods.registry import BUILT_IN

# Short runs of every method; the others are short by default.
BRIEF: dict[str, dict[str, Any]] = {
    "gcsr": {"iterations": 30, "experts": 3},
    "mtt": {"iterations": 30, "experts": 3},
    "sfgc": {"iterations": 30, "experts": 3},
    "geom": {"iterations": 30, "experts": 3},
    "gcond": {"epochs": 3},
    "gcond-x": {"epochs": 3},
    "dcg": {"epochs": 3},
    "sgdd": {"epochs": 3},
    "doscond": {"epochs": 30},
    "dm": {"epochs": 30},
    "gcdm-x": {"epochs": 3},
    "gcdm": {"epochs": 3},
    "simgc": {"epochs": 100},
    "krr": {"iterations": 30},
    "gdem": {"iterations": 30},
    "bilevel": {"iterations": 10},
    "auto": {"iterations": 10},
}
MODELS = ("mlp", "gcn", "sgc", "appnp", "gat", "sage-paper", "cheby-paper", "sage", "cheby")


class StoppedError(Exception):
    """Ends a run that is to be resumed."""


def digest(small: gcsr.CondensedGraph) -> str:
    """Of the tensors of a condensed graph."""
    found = hashlib.sha256()
    for part in (small.x, small.adjacency, small.y):
        found.update(part.contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def recorded(root: str | None, cluster: bool) -> dict[str, Any]:
    digits = gcsr.load("digits")
    found: dict[str, Any] = {}

    def add(name: str, make: Callable[[], Any]) -> None:
        found[name] = make()
        print(name, found[name], flush=True)

    made: dict[str, gcsr.CondensedGraph] = {}
    for name in BUILT_IN:
        made[name] = gcsr.condense(
            digits, nodes=50, method=name, seed=0, device="cpu", **BRIEF.get(name, {})
        )
        add(f"digits 50, {name}", lambda name=name: digest(made[name]))
    recipe = gcsr.TrainingRecipe(epochs=60)
    for model in MODELS:
        result = gcsr.evaluate(
            made["gcond"],
            digits,
            model=model,
            runs=2,
            recipe=recipe,
            device="cpu",
        )
        add(f"evaluation of gcond, {model}", lambda result=result: result.scores)
    settings = {"nodes": 50, "method": "bilevel", "seed": 1, "device": "cpu", "iterations": 40}
    straight = gcsr.condense(digits, **settings)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"

        def stop(stage: str, done: int, total: int) -> None:
            if stage == "condensing" and done >= 20:
                raise StoppedError

        with suppress(StoppedError):
            gcsr.condense(digits, **settings, checkpoint=path, progress=stop)
        resumed = gcsr.condense(digits, **settings, checkpoint=path)
    add("digits 50, bilevel, straight", lambda: digest(straight))
    add("digits 50, bilevel, resumed", lambda: digest(resumed))
    if root is not None:
        cora = gcsr.load("cora", root=root)
        asked = {"method": "gcsr", "preset": "paper", "iterations": 20, "experts": 2}
        small = gcsr.condense(cora, nodes=70, device="cpu", **asked)
        add("cora 70, gcsr, paper preset, shortened", lambda: digest(small))
    if cluster:
        asked = {"method": "gcsr", "iterations": 30, "experts": 3, "cluster": "local"}
        many = gcsr.condense_many(digits, nodes=50, seeds=[0, 1], device="cpu", **asked)
        add("digits 50, gcsr, on a local cluster", lambda: [digest(one) for one in many])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--compare", type=Path, default=None)
    parser.add_argument("--root", default=None)
    parser.add_argument("--cluster", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = recorded(arguments.root, arguments.cluster)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.compare is not None:
        before = json.loads(arguments.compare.read_text())
        differ = [name for name in before if found.get(name) != before[name]]
        print(f"{len(before) - len(differ)} of {len(before)} as before")
        for name in differ:
            print(f"differs: {name}")
        raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()
