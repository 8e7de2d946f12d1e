"""The Optuna study behind a search: in memory, or in a SQLite file that outlives the process."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcsr.api import make_condenser
from gcsr.data.graph import Graph
from gcsr.data.views import View
from gcsr.engines.iterates import QUICK
from gcsr.methods.base import Condenser
from gcsr.starts.sample import TooFewNodesError, class_budget
from gcsr.tuning.space import Space, Value, import_optuna
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, require, require_integer
from gcsr.utils.safe_io import accessing, lock_file, parsing, reason

if TYPE_CHECKING:
    import optuna

STUDY_NAME = "gcsr"
# User attributes of a study and of a trial.
IDENTITY, NOTE = "identity", "note"
# What the identity and the scorer in it were called before version 0.4.
OLD_IDENTITY, OLD_SCORER = "question", "judge"
# Trials before the first may be pruned.
UNPRUNED_TRIALS = 5
# Networks that score every trial. Other networks, with other initial weights, choose an iterate.
SCORER_NETWORKS, SCORER_SEED = 5, 1
SCORER = (
    f"{SCORER_NETWORKS} GCNs, {QUICK.epochs} epochs, scored every {QUICK.validate_every}, seed"
    f" {SCORER_SEED}"
)
# At most this many combinations of ends are tried before a space is refused.
COMBINATIONS = 256
_SQLITE = b"SQLite format 3\0"
_PLAIN_CHECK = re.compile(r"CHECK \(\w+ ?(=\d+|IN \([\w', ]+\))\)")
_ACTIVE = re.compile(r"\b(CHECK|DEFAULT|GENERATED|AS|SELECT|VIRTUAL|WHERE|USING)\b", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class StudySpec:
    """What a study searches: a method, a size and a space of settings.

    The graph is only kept to make the best result again; trials see no test labels.
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
        ratio: float | None = None,
        method: str,
        space: Space,
        preset: str = "default",
        seed: int = 0,
        graphs: int = 1,
    ) -> StudySpec:
        """Everything checked that can be checked before the first trial."""
        require_integer("seed", seed)
        require_integer("graphs", graphs, 1)
        base, _ = make_condenser(
            graph, nodes=nodes, ratio=ratio, method=method, preset=preset, settings={}
        )
        visible = View(graph).condensing().visible
        size = base.size(visible.num_nodes)
        try:
            class_budget(visible.train_strata, visible.num_classes, size)
        except TooFewNodesError as error:
            if ratio is None:
                raise
            raise error.of_ratio(ratio, visible.num_nodes) from None
        spec = cls(graph, size, method, space, preset, seed, graphs)
        spec._check_ends()
        return spec

    @property
    def seeds(self) -> range:
        """The seeds of the graphs of every trial."""
        return range(self.seed, self.seed + self.graphs)

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
            "prior must be predicted or train, got 'all', which counts test labels.",
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
            "scorer": SCORER,
        }

    def _check_ends(self) -> None:
        """Every end of every dimension must be accepted together with some ends of the others."""
        ends = {name: d.ends for name, d in self.space.searched.items()}
        if not ends:
            self.condenser({})
        for name, end in ((name, end) for name, own in ends.items() for end in own):
            errors = []
            together = itertools.product(*(ends | {name: (end,)}).values())
            for values in itertools.islice(together, COMBINATIONS):
                try:
                    self.condenser(dict(zip(ends, values, strict=True)))
                except InputError as error:
                    errors.append(error)
                else:
                    break
            else:
                raise errors[0]


@contextmanager
def open_study(path: Path | None, identity: dict[str, Any]) -> Iterator[optuna.Study]:
    """The study of that file, new or continued; only one process at a time may have it.

    A study with another identity is refused. What a killed process left running is marked as failed.
    """
    optuna = import_optuna()
    with ExitStack() as stack:
        storage = None
        if path is not None:
            stack.enter_context(_locked(path))
            require_sound_file(path)
        with parsing(f"study: {path} cannot be used"):
            if path is not None:
                from sqlalchemy.engine import URL  # noqa: PLC0415 - comes with Optuna

                url = URL.create("sqlite", database=str(path))
                storage = optuna.storages.RDBStorage(url.render_as_string(hide_password=False))
                stack.callback(storage.engine.dispose)
                stack.callback(storage.remove_session)
            study = _new_or_continued(optuna, storage, path, identity)
        yield study


def _new_or_continued(
    optuna: Any, storage: Any, path: Path | None, identity: dict[str, Any]
) -> Any:
    study = optuna.create_study(
        study_name=STUDY_NAME,
        storage=storage,
        direction="maximize",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=UNPRUNED_TRIALS),
        load_if_exists=True,
    )
    trials = study.get_trials(deepcopy=False)
    known = study.user_attrs.get(IDENTITY, study.user_attrs.get(OLD_IDENTITY))
    if isinstance(known, dict) and OLD_SCORER in known:
        known = {**known, "scorer": known[OLD_SCORER]}
    if known is None and not trials:
        study.set_user_attr(IDENTITY, identity)
    else:
        require(isinstance(known, dict), f"study: {path} was not made by gcsr tune.")
        for name, wanted in json.loads(json.dumps(identity)).items():
            found = known.get(name)
            require(
                found == wanted,
                f"study: {path} was made with {name} {_shown(found)}, not {_shown(wanted)}; name"
                " another file.",
            )
    for trial in trials:
        if not trial.state.is_finished():
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _shown(value: object) -> str:
    if isinstance(value, dict):
        value = "; ".join(f"{key}={one}" for key, one in value.items()) or "(nothing to search)"
    return reason(value)


def sampler(seed: int, ordinal: int) -> Any:
    """A new sampler for the trial after ``ordinal`` finished ones.

    It depends on nothing else, so a continued study proposes the same as an uninterrupted one.
    """
    own = make_generator(seed, f"trial {ordinal}").initial_seed() % 2**32
    return import_optuna().samplers.TPESampler(seed=own)


# -- files that may come from elsewhere --------------------------------------------------------------


def require_sound_file(path: Path) -> None:
    """Refuse a file with anything but plain tables, or whose pages do not fit together."""
    if not path.stat().st_size:
        return
    with parsing(f"study: {path} cannot be used"), closing(sqlite3.connect(path)) as connection:
        # For writing, so that what a killed process left half done is rolled back as usual.
        connection.execute("PRAGMA trusted_schema=OFF")
        parts = connection.execute("SELECT type, sql FROM sqlite_master").fetchall()
        plain = all(_is_plain(kind, text) for kind, text in parts)
        sound = plain and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    require(plain, f"study: {path} holds more than the plain tables of a study.")
    require(sound, f"study: {path} is damaged.")


def _is_plain(kind: object, text: object) -> bool:
    if kind not in ("table", "index") or not isinstance(text, str | None):
        return False
    return not _ACTIVE.search(_PLAIN_CHECK.sub("", text or ""))


def require_sound_trials(path: Path | None, trials: Iterable[Any], space: Space) -> None:
    """Refuse finished trials that are not of this search."""
    expected = space.distributions()
    complete = import_optuna().trial.TrialState.COMPLETE
    for trial in trials:
        value = trial.value
        require(
            trial.distributions == expected
            and isinstance(trial.user_attrs.get(NOTE, ""), str)
            and (trial.state != complete or (isinstance(value, float) and math.isfinite(value))),
            f"study: trial {trial.number} of {path} is not one of this search.",
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the file; the system releases it when the process ends."""
    require(not path.is_dir(), f"study must be a file, got the folder {path}.")
    with accessing(f"study: {path} cannot be opened"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with accessing(f"study: {path} cannot be locked"):
            try:
                lock_file(handle, wait=False)
            except BlockingIOError:
                raise InputError(f"study: {path} is in use by another process.") from None
        head = os.read(handle, len(_SQLITE))
        require(head in (b"", _SQLITE), f"study: {path} is not a study but something else.")
        yield
    finally:
        os.close(handle)
