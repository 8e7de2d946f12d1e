"""Whether a study's file holds what a study holds, and nothing that works by itself.

A SQLite file may come with triggers, views and expressions that run when its tables are used. A study
has tables, indexes and plain columns; whatever else there is, is refused before Optuna opens it.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from gcsr.errors import InputError, require
from gcsr.tune.space import Choices, Dimension
from gcsr.untrusted import UNREADABLE, reason

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
