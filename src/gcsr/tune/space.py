"""What is searched: for every setting a value, some values, or a range.

Written as text, in ``--set`` and in TOML files alike: ``alpha=1`` is fixed, ``alpha=0.1,1,10`` are
choices, ``alpha=0.1..10`` is a range and ``alpha=0.1..10:log`` one in which every decade is as likely.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcsr.condense.registry import known_setting, setting_kinds
from gcsr.condense.registry import method as method_of
from gcsr.condense.texts import kinds_of, value_of
from gcsr.errors import InputError, require
from gcsr.untrusted import reason

if TYPE_CHECKING:
    import optuna

Value = None | bool | int | float | str
# The size of the condensed graph is what is asked for, never what is searched.
SIZES = ("nodes", "ratio")
SYNTAX = "a value, a,b,c, low..high or low..high:log"


@dataclass(frozen=True)
class Choices:
    """One of these; a single one is fixed."""

    values: tuple[Value, ...]

    @property
    def count(self) -> int | None:
        """How many candidates there are."""
        return len(self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        """Candidates that are refused if any is."""
        return self.values

    def suggest(self, trial: optuna.Trial, name: str) -> Value:
        """The trial's value."""
        chosen: Value = trial.suggest_categorical(name, self.values)
        return chosen

    def __str__(self) -> str:
        return ",".join(text_of(value) for value in self.values)


@dataclass(frozen=True)
class Range:
    """Any number, or whole number, from ``low`` to ``high``, both included."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @property
    def count(self) -> int | None:
        """How many candidates there are; ``None``: no end of them."""
        return int(self.high - self.low) + 1 if self.whole else None

    @property
    def ends(self) -> tuple[Value, ...]:
        """Candidates that are refused if any is."""
        return self.low, self.high

    def suggest(self, trial: optuna.Trial, name: str) -> Value:
        """The trial's value."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def __str__(self) -> str:
        return f"{text_of(self.low)}..{text_of(self.high)}{':log' if self.log else ''}"


Dimension = Choices | Range


@dataclass(frozen=True)
class Space:
    """The dimensions of a search, by the name of the setting."""

    dimensions: Mapping[str, Dimension]

    @classmethod
    def of(cls, method: str, given: Mapping[str, object]) -> Space:
        """Dimensions from text or from Python values; what is wrong is one sentence."""
        chosen = method_of(method)
        kinds = setting_kinds(chosen)
        dimensions: dict[str, Dimension] = {}
        for name, what in given.items():
            key = known_setting(chosen, name)
            require(key not in SIZES, f"{name}: is not searched; it is given once, on its own.")
            require(key not in dimensions, f"{name}: given twice.")
            dimensions[key] = dimension(name, what, kinds[key])
        return cls(dimensions)

    @classmethod
    def read(cls, method: str, path: Path) -> Space:
        """A TOML file of ``name = value`` lines: texts as above, numbers, or lists of choices."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"space: {path} cannot be read ({error.strerror}).") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"space: {path} is not TOML ({reason(error)}).") from None
        return cls.of(method, content)

    @cached_property
    def fixed(self) -> dict[str, Value]:
        """Settings with a single value."""
        return {k: d.ends[0] for k, d in self.dimensions.items() if d.count == 1}

    @cached_property
    def searched(self) -> dict[str, Dimension]:
        """Settings with several."""
        return {k: d for k, d in self.dimensions.items() if d.count != 1}

    @property
    def count(self) -> int | None:
        """How many candidates there are; ``None``: no end of them."""
        counts = [d.count for d in self.searched.values()]
        return None if None in counts else math.prod(c for c in counts if c is not None)

    def with_changes(self, other: Space) -> Space:
        """This space with the other's dimensions in place of its own and beside them."""
        return Space({**self.dimensions, **other.dimensions})

    def to_dict(self) -> dict[str, str]:
        """Every dimension as text."""
        return {name: str(d) for name, d in self.dimensions.items()}


def dimension(name: str, given: object, kind: Any) -> Dimension:
    """A dimension for a field of that kind."""
    if isinstance(given, Choices | Range):
        return given
    if isinstance(given, str):
        low, dots, rest = given.partition("..")
        if dots:
            return _range(name, given, low, rest, kind)
        given = given.split(",")
    if not isinstance(given, list | tuple):
        given = [given]
    return Choices(_values(name, given, kind))


def _values(name: str, given: Iterable[object], kind: Any) -> tuple[Value, ...]:
    values: list[Value] = []
    for one in given:
        plain = one is None or isinstance(one, bool | int | float | str)
        require(plain, f"{name}: {one!r} is not accepted; {SYNTAX} is.")
        value = value_of(name, str(one).strip(), kind)
        finite = not isinstance(value, float) or math.isfinite(value)
        require(finite and value != "", f"{name}: {str(one)!r} is not accepted; a finite value is.")
        require(value not in values, f"{name}: {text_of(value)} is given twice.")
        values.append(value)
    require(len(values) > 0, f"{name}: is empty; {SYNTAX} is accepted.")
    return tuple(values)


def _range(name: str, text: str, low: str, rest: str, kind: Any) -> Range:
    kinds = kinds_of(kind)
    number = float if float in kinds else int
    require(
        number in kinds,
        f"{name}: {text!r} is not accepted; a range is for numbers, a,b,c for these.",
    )
    high, colon, how = rest.partition(":")
    require(not colon or how == "log", f"{name}: {text!r} is not accepted; {SYNTAX} is.")
    first, last = (value_of(name, end.strip(), number) for end in (low, high))
    require(
        math.isfinite(first) and math.isfinite(last) and first < last,
        f"{name}: {text!r} is not accepted; the first end of a range is below the second.",
    )
    require(
        not how or first > 0,
        f"{name}: {text!r} is not accepted; a range with :log begins above 0.",
    )
    return Range(first, last, log=bool(how), whole=number is int)


def text_of(value: Value) -> str:
    """A value as it is written on the command line, exactly."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)
