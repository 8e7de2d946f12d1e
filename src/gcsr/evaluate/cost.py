"""The cost sheet: everything measured on this machine in one run."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from gcsr.condense.sparsify import Sparsifier
from gcsr.condensed import STORED_DTYPES, CondensedGraph
from gcsr.devices import pick_device
from gcsr.evaluate.origin import (
    PSEUDO_LABELS_NOTE,
    labeler_of,
    require_origin,
    used_pseudo_labels,
)
from gcsr.evaluate.protocol import check_numbers
from gcsr.evaluate.pseudo import PseudoLabels
from gcsr.evaluate.sheet import Accuracy, CostSheet, StoredForm, TrainedOn, break_even, verdict
from gcsr.evaluate.subset import random_subsets
from gcsr.evaluate.timing import training_seconds
from gcsr.evaluate.trial import Batch, Trial, condensed_batches, real_batches
from gcsr.graph import Graph
from gcsr.graph.stored import require_in_memory
from gcsr.models import testing_model
from gcsr.progress import Progress, silent
from gcsr.stored import adjacency_bytes, stored_adjacency_bytes
from gcsr.training import TrainingRecipe, paper_recipe
from gcsr.views import View

SMALL, RANDOM, WHOLE, PSEUDO = "condensed", "random", "whole", "whole with pseudo-labels"
T = TypeVar("T")
PROTOCOL, ALONE = "protocol", "alone"


def cost(
    small: CondensedGraph,
    graph: Graph,
    *,
    model: str = "gcn",
    runs: int = 5,
    sparsify: str = "auto",
    recipe: TrainingRecipe | None = None,
    hidden: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    any_graph: bool = False,
    progress: Progress = silent,
) -> CostSheet:
    """What a condensed graph costs and saves: seconds, bytes, accuracy, and when it has paid.

    Seconds and memory of condensing come with the file; the rest is measured now: one network after
    the other for time, ``runs`` networks per graph for accuracy. ``sparsify`` is the rule behind the
    sparsified forms (see :func:`gcsr.sparsify`); a file that is sparsified already keeps its own.
    Run r of the random subset has a subset of its own.
    """
    check_numbers(graph, runs, hidden)
    require_origin([small], graph, any_graph)
    require_in_memory(graph, "graph")
    sparsifier = Sparsifier(rule=sparsify, seed=seed)
    recipe = recipe or paper_recipe(graph.name)
    target = pick_device(device)
    began = time.perf_counter()
    view = View(graph)
    condensing = view.condensing()
    trial = Trial(testing_model(model, hidden), view, target, recipe, seed)

    rule = _own_rule(small)
    if rule is None:
        pruned = sparsifier(small, condensing, target, progress)
        rule = str(pruned.provenance["stored"]["rule"])
        shapes = {"dense": small, "sparsified": pruned}
        # Where nothing is cut the second form has no zeros, and neither has a file that is smaller so.
        same = rule == "none" and small.describe()["stored_adjacency"] == "sparse"
        own = "sparsified" if same else "dense"
    else:
        shapes = {"dense": small, "sparsified": small}
        own = "sparsified"
    ways = {
        (shape, dtype): shapes[shape].stored_as(dtype)
        for shape in shapes
        for dtype in STORED_DTYPES
    }
    in_file = (own, "float16" if small.half else "float32")

    itemsize = 2 if small.half else 4
    subsets = random_subsets(condensing.visible, small.stored_bytes, itemsize, seed, runs)
    groups: dict[Any, list[Batch]] = {}
    for way, stored in ways.items():
        groups[way] = condensed_batches(trial, [stored], runs)
    groups[RANDOM] = [
        batch
        for run, subset in enumerate(subsets)
        for batch in real_batches(trial, subset.target, graph.num_classes, range(run, run + 1))
    ]
    groups[WHOLE] = real_batches(trial, view.training(), graph.num_classes, range(runs))
    labels = None
    # Every visible node of an inductive graph has a label.
    if used_pseudo_labels(small) and not graph.inductive:
        labels = PseudoLabels.of(trial, progress, labeler_of(small))
        groups[PSEUDO] = labels.batches(trial, range(runs))
    accuracy = _accuracies(trial, groups, ways, progress)
    timed = {SMALL: groups[in_file][0]}
    timed |= {what: groups[what][0] for what in (RANDOM, WHOLE, PSEUDO) if what in groups}
    recipes = {PROTOCOL: recipe, ALONE: replace(recipe, validate_every=recipe.epochs)}
    seconds = training_seconds(trial, timed, recipes, progress)

    original = graph.stored_parts

    def trained(what: str, nodes: int, size: int, scores: Accuracy) -> TrainedOn:
        return TrainedOn(nodes, size, seconds[what, PROTOCOL], seconds[what, ALONE], scores)

    first = subsets[0]
    whole_nodes = condensing.visible.num_nodes
    took = _condense_seconds(small)
    times = {r: (took, seconds[SMALL, r], seconds[WHOLE, r]) for r in recipes}
    return CostSheet(
        dataset=graph.name,
        method=_word(small, "method"),
        model=model,
        runs=runs,
        recipe=vars(recipe),
        seed=seed,
        device=target.type,
        machine=_machine(target),
        leaks_test_labels=small.leaks_test_labels,
        condense_seconds=took,
        condense_memory_bytes=_measured(small, "peak_memory_bytes", int),
        condensed_on=_word(small, "device"),
        file_bytes=small.stored_bytes,
        original_features_bytes=original.features,
        original_adjacency_bytes=original.adjacency,
        original_bytes=original.total,
        sparsified_by=rule,
        forms=tuple(
            _form(stored, shape, dtype, accuracy[shape, dtype], (shape, dtype) == in_file)
            for (shape, dtype), stored in ways.items()
        ),
        condensed=trained(SMALL, small.num_nodes, small.stored_bytes, accuracy[in_file]),
        random=trained(RANDOM, first.target.nodes.numel(), first.size.total, accuracy[RANDOM]),
        whole=trained(WHOLE, whole_nodes, original.total, accuracy[WHOLE]),
        whole_with_pseudo_labels=None
        if labels is None
        else trained(PSEUDO, whole_nodes, original.total, accuracy[PSEUDO]),
        pseudo_labels=None if labels is None else labels.accuracies(trial),
        break_even=break_even(*times[PROTOCOL]),
        break_even_alone=break_even(*times[ALONE]),
        verdict=verdict(*times[PROTOCOL]),
        notes=tuple(
            filter(
                None,
                [
                    PSEUDO_LABELS_NOTE if used_pseudo_labels(small) else None,
                    first.note,
                    _beaten(accuracy[in_file], accuracy[RANDOM]),
                    *_notes(small, original.total, target),
                ],
            )
        ),
        seconds=time.perf_counter() - began,
    )


def _beaten(condensed: Accuracy, random: Accuracy) -> str | None:
    if condensed.mean >= random.mean:
        return None
    return (
        f"real nodes of the same bytes test better ({random}) than the condensed ones ({condensed}):"
        " condensing was not worth it"
    )


def _own_rule(small: CondensedGraph) -> str | None:
    """The rule that the file was sparsified by, if it was."""
    stored = small.provenance.get("stored")
    rule = stored.get("rule") if isinstance(stored, dict) else None
    return rule if isinstance(rule, str) and rule != "none" else None


def _accuracies(
    trial: Trial,
    groups: dict[Any, list[Batch]],
    ways: dict[Any, CondensedGraph],
    progress: Progress,
) -> dict[Any, Accuracy]:
    """Of every group of batches; forms that are the same graph are trained once."""
    twins = {way: _first_like(ways, way) for way in ways}
    needed = [group for group in groups if twins.get(group, group) == group]
    test, _ = trial.scores([batch for group in needed for batch in groups[group]], progress)
    counts = [sum(len(batch.networks) for batch in groups[group]) for group in needed]
    parts: Sequence[Tensor] = (100 * test.double().cpu()).split(counts)
    found = {g: Accuracy.of(part.tolist()) for g, part in zip(needed, parts, strict=True)}
    return {group: found[twins.get(group, group)] for group in groups}


def _first_like(ways: dict[Any, CondensedGraph], way: Any) -> Any:
    this = ways[way]
    for other, graph in ways.items():
        if torch.equal(graph.adjacency, this.adjacency) and torch.equal(graph.x, this.x):
            return other
    return way


def _form(
    stored: CondensedGraph, shape: str, dtype: str, accuracy: Accuracy, in_file: bool
) -> StoredForm:
    itemsize = 2 if stored.half else 4
    a = stored.adjacency
    features, labels = stored.x.numel() * itemsize, stored.y.nbytes
    dense, _ = adjacency_bytes(a, itemsize, features + labels)
    sparse = stored_adjacency_bytes(a, itemsize, features + labels)
    edges = dense if shape == "dense" else sparse
    total = features + edges + labels
    return StoredForm(shape, dtype, features, edges, labels, total, accuracy, in_file)


def _word(small: CondensedGraph, name: str) -> str | None:
    value = small.provenance.get(name)
    return value if isinstance(value, str) else None


def _measured(small: CondensedGraph, name: str, kind: type[T]) -> T | None:
    """A measured number of the provenance; a file by another program may lack it."""
    measured = small.provenance.get("measured")
    value = measured.get(name) if isinstance(measured, dict) else None
    return value if isinstance(value, kind) else None


def _condense_seconds(small: CondensedGraph) -> float | None:
    seconds = _measured(small, "seconds", float)
    return None if seconds is None else seconds + (_measured(small, "storing_seconds", float) or 0)


def _notes(small: CondensedGraph, original: int, device: torch.device) -> list[str]:
    notes = []
    if small.stored_bytes >= original:
        notes.append(
            f"the file takes {small.stored_bytes:,} bytes, the whole graph {original:,}: nothing is"
            " saved where real features are sparse and condensed ones are not"
        )
    made_on = _word(small, "device")
    if made_on is not None and made_on != device.type:
        notes.append(
            f"condensed on {made_on}, trained on {device.type}: seconds are of two devices"
        )
    if (_measured(small, "experts", dict) or {}).get("cached"):
        notes.append("the experts were trained earlier: their seconds are not part of condensing's")
    together = _measured(small, "graphs_together", int) or 1
    if together > 1:
        notes.append(
            f"{together} graphs were condensed together: each has its share of the seconds"
        )
    if device.type == "cpu":
        notes.append("on a CPU every network is trained on one thread")
    return notes


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, torch {torch.__version__}"
    return f"{platform.system()} {platform.machine()}, torch {torch.__version__}"
