"""The Optuna study behind a search: in memory, or in a SQLite file that outlives the process."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcsr.devices import stream
from gcsr.errors import InputError, require
from gcsr.tune.soundness import require_sound_file
from gcsr.untrusted import UNREADABLE, reason

if TYPE_CHECKING:
    import optuna

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
    own = stream(seed, f"trial {ordinal}").initial_seed() % 2**32
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
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(f"study: {path} cannot be opened ({error.strerror}).") from None
    try:
        # Not the kind of lock that SQLite takes: the two do not meet.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head = os.pread(handle, len(_SQLITE), 0)
        require(head in (b"", _SQLITE), f"study: {path} is not a study but something else.")
        yield
    except BlockingIOError:
        raise InputError(f"study: {path} is in use by another process.") from None
    finally:
        os.close(handle)


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
