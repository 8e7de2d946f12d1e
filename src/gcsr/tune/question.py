"""What a study answers; two studies with the same question may share a file."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gcsr.api import make_condenser
from gcsr.condense import Condenser
from gcsr.condense.labels import class_budget
from gcsr.condense.select import QUICK
from gcsr.errors import InputError, require
from gcsr.graph import Graph
from gcsr.tune.grids import named_space
from gcsr.tune.space import Space, Value
from gcsr.views import CondensingView, View

# The judge of every trial. Its networks are none of those that choose an iterate, which start from
# other weights: an iterate is not judged by who chose it.
JUDGE_NETWORKS, JUDGE_SEED = 5, 1
JUDGE = (
    f"{JUDGE_NETWORKS} GCNs, {QUICK.epochs} epochs, scored every {QUICK.validate_every}, seed"
    f" {JUDGE_SEED}"
)
# At most this many combinations of ends are tried before a space is refused.
COMBINATIONS = 256


@dataclass(frozen=True, eq=False)
class Question:
    """Which settings of a method make the graph of that size that validates best?

    The graph is only kept to make the winner again; trials see ``view``, which has no test label.
    """

    graph: Graph = field(repr=False)
    nodes: int
    method: str
    space: Space
    preset: str
    seed: int
    graphs: int

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        nodes: int | None,
        ratio: float | None,
        method: str,
        space: object,
        changes: Mapping[str, object],
        preset: str,
        seed: int,
        graphs: int,
    ) -> Question:
        """Everything checked that can be checked before the first trial."""
        for name, value, least in (("seed", seed, 0), ("graphs", graphs, 1)):
            fine = isinstance(value, int) and not isinstance(value, bool) and value >= least
            require(fine, f"{name}: {value!r} is not accepted; a whole number >= {least} is.")
        whole = space_for(method, space, changes)
        base, _ = make_condenser(
            graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings={}
        )
        asked = cls(graph, 0, method, whole, preset, seed, graphs)
        visible = asked.view().visible
        size = base.size(visible.num_nodes)
        class_budget(visible.train_labels, visible.num_classes, size)
        asked = cls(graph, size, method, whole, preset, seed, graphs)
        asked._check_ends()
        return asked

    @property
    def seeds(self) -> range:
        """The seeds of the graphs of every trial."""
        return range(self.seed, self.seed + self.graphs)

    def view(self) -> CondensingView:
        """All that a trial may look at."""
        return View(self.graph).condensing()

    def condenser(self, values: Mapping[str, Value]) -> tuple[Condenser, str]:
        """The condenser of a trial, and the name of the preset behind it."""
        made, name = make_condenser(
            self.graph,
            nodes=self.nodes,
            ratio=None,
            method=self.method,
            preset=self.preset,
            settings={**self.space.fixed, **values},
        )
        require(
            not made.leaks_test_labels,
            "prior: 'all' counts test labels, which tuning never sees; ask for prior=predicted or"
            " prior=train.",
        )
        return made, name

    def identity(self) -> dict[str, Any]:
        """What must be the same for trials to be compared."""
        return {
            "data": f"{self.graph.name} {self.graph.content_hash}",
            "setting": "inductive" if self.graph.inductive else "transductive",
            "method": self.method,
            "nodes": self.nodes,
            "preset": self.preset,
            "space": self.space.to_dict(),
            "seed": self.seed,
            "graphs": self.graphs,
            "judge": JUDGE,
        }

    def _check_ends(self) -> None:
        """Every end of every dimension must be accepted together with some ends of the others."""
        ends = {name: d.ends for name, d in self.space.searched.items()}
        if not ends:
            self.condenser({})
        for name, mine in ends.items():
            others = {other: theirs for other, theirs in ends.items() if other != name}
            for end in mine:
                self._check_end({name: end}, others)

    def _check_end(self, own: dict[str, Value], others: dict[str, tuple[Value, ...]]) -> None:
        first: InputError | None = None
        for ends in itertools.islice(itertools.product(*others.values()), COMBINATIONS):
            try:
                self.condenser({**dict(zip(others, ends, strict=True)), **own})
            except InputError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first


def space_for(method: str, source: object, changes: Mapping[str, object]) -> Space:
    """The space of a name, a file or a mapping, with changes.

    With no source it is what the changes search or, if that is nothing, the paper's grid.
    """
    own = Space.of(method, changes)
    if source is None:
        return own if own.searched else named_space(method, "paper").with_changes(own)
    if isinstance(source, Space):
        return source.with_changes(own)
    if isinstance(source, Mapping):
        return Space.of(method, source).with_changes(own)
    return named_space(method, str(source)).with_changes(own)
