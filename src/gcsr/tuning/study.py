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
from gcsr.data.views import CondensingView, View
from gcsr.engines.iterates import QUICK
from gcsr.methods.base import Condenser
from gcsr.starts.budget import class_budget
from gcsr.tuning.space import Choices, Dimension, Space, Value, named_space
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import InputError, require
from gcsr.utils.locks import lock_file
from gcsr.utils.safe_io import UNREADABLE, reason

if TYPE_CHECKING:
    import optuna

# -- Whether a study's file holds what a study holds, and nothing that works by itself ---------------


NOTE = "note"
_REFUSED: tuple[type[Exception], ...] = (*UNREADABLE, sqlite3.Error)
_PLAIN_CHECK = re.compile(r"CHECK \(\w+ ?(=\d+|IN \([\w', ]+\))\)")
_ACTIVE = re.compile(r"\b(CHECK|DEFAULT|GENERATED|AS|SELECT|VIRTUAL|WHERE|USING)\b", re.IGNORECASE)


def require_sound_file(path: Path) -> None:
    """Refuse a file with anything but plain tables, or whose pages do not fit together."""
    if not path.stat().st_size:
        return
    try:
        # For writing, so that what a killed process left half done is rolled back as usual.
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            parts = connection.execute("SELECT type, sql FROM sqlite_master").fetchall()
            plain = all(_is_plain(kind, text) for kind, text in parts)
            sound = plain and connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except _REFUSED as error:
        raise InputError(f"study: {path} cannot be used ({reason(error)}).") from None
    require(plain, f"study: {path} holds more than the plain tables of a study.")
    require(sound, f"study: {path} is damaged.")


def _is_plain(kind: object, text: object) -> bool:
    if kind not in ("table", "index") or not isinstance(text, str | None):
        return False
    return not _ACTIVE.search(_PLAIN_CHECK.sub("", text or ""))


def require_sound_trials(
    path: Path | None, optuna: Any, trials: Iterable[Any], searched: Mapping[str, Dimension]
) -> None:
    """Refuse finished trials of another search than this one, however they came into the file."""
    expected = {name: _distribution(optuna, one) for name, one in searched.items()}
    for trial in trials:
        value, complete = trial.value, trial.state == optuna.trial.TrialState.COMPLETE
        require(
            trial.distributions == expected
            and isinstance(trial.user_attrs.get(NOTE, ""), str)
            and (not complete or (isinstance(value, float) and math.isfinite(value))),
            f"study: trial {trial.number} of {path} is not one of this search.",
        )


def _distribution(optuna: Any, one: Dimension) -> Any:
    kinds = optuna.distributions
    if isinstance(one, Choices):
        return kinds.CategoricalDistribution(one.values)
    if one.whole:
        return kinds.IntDistribution(int(one.low), int(one.high), log=one.log)
    return kinds.FloatDistribution(one.low, one.high, log=one.log)


# -- What a study answers; two studies with the same question may share a file -----------------------


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
class StudySpec:
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
    ) -> StudySpec:
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


STUDY_NAME = "gcsr"
_IDENTITY = "question"
_SQLITE = b"SQLite format 3\0"
# Trials before the first may be pruned.
UNPRUNED_TRIALS = 5


def import_optuna() -> Any:
    """Optuna, or a sentence that says how to get it."""
    try:
        import optuna  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            "optuna: is not installed; `pip install 'gcsr[tune]'` brings it."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@contextmanager
def open_study(path: Path | None, identity: dict[str, Any]) -> Iterator[optuna.Study]:
    """The study of that file, begun or continued; only one process at a time may have it.

    A study with another identity is refused. What a killed process left running is marked as failed.
    """
    optuna = import_optuna()
    with ExitStack() as stack:
        storage = None
        if path is not None:
            stack.enter_context(_locked(path))
            require_sound_file(path)
            storage = stack.enter_context(_storage(optuna, path))
        try:
            study = _begun_or_continued(optuna, storage, path, identity)
        except InputError:
            raise
        except (*_storage_errors(optuna), *UNREADABLE) as error:
            raise InputError(f"study: {path} cannot be used ({reason(error)}).") from None
        yield study


def _begun_or_continued(
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
    known = study.user_attrs.get(_IDENTITY)
    require(known is not None or not trials, f"study: {path} was not made by gcsr tune.")
    if known is None:
        study.set_user_attr(_IDENTITY, identity)
    else:
        require(isinstance(known, dict), f"study: {path} was not made by gcsr tune.")
        _require_same(path, known, json.loads(json.dumps(identity)))
    for trial in trials:
        if not trial.state.is_finished():
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def sampler(seed: int, ordinal: int) -> Any:
    """A fresh sampler for the trial that ``ordinal`` finished ones come before.

    Its numbers depend on nothing else, so that a study that was interrupted proposes what it would
    have proposed anyway.
    """
    own = make_generator(seed, f"trial {ordinal}").initial_seed() % 2**32
    return import_optuna().samplers.TPESampler(seed=own)


def _require_same(path: Path | None, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    for name, wanted in ours.items():
        found = theirs.get(name)
        require(
            found == wanted,
            f"study: {path} was made with {name} {_said(found)}, not {_said(wanted)}; name another"
            " file.",
        )


def _said(value: object) -> str:
    if isinstance(value, dict):
        value = "; ".join(f"{key}={one}" for key, one in value.items()) or "(nothing to search)"
    return reason(ValueError(str(value)))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file; the system lets go of it when the process ends, whatever ends it."""
    require(not path.is_dir(), f"study: {path} is a folder; the name of a file is needed.")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"study: {path} cannot be opened ({error.strerror}).") from None
    try:
        _lock(path, handle)
        head = os.read(handle, len(_SQLITE))
        require(head in (b"", _SQLITE), f"study: {path} is not a study but something else.")
        yield
    finally:
        os.close(handle)


def _lock(path: Path, handle: int) -> None:
    try:
        lock_file(handle, wait=False)
    except BlockingIOError:
        raise InputError(f"study: {path} is in use by another process.") from None
    except OSError as error:
        raise InputError(f"study: {path} cannot be locked ({error.strerror}).") from None


def _storage_errors(optuna: Any) -> tuple[type[Exception], ...]:
    import sqlalchemy  # noqa: PLC0415 - comes with Optuna

    return AssertionError, sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.OptunaError


@contextmanager
def _storage(optuna: Any, path: Path) -> Iterator[Any]:
    import sqlalchemy  # noqa: PLC0415 - comes with Optuna

    url = sqlalchemy.engine.URL.create("sqlite", database=str(path))
    try:
        storage = optuna.storages.RDBStorage(url.render_as_string(hide_password=False))
    except (*_storage_errors(optuna), *UNREADABLE) as error:
        raise InputError(f"study: {path} cannot be used ({reason(error)}).") from None
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()
