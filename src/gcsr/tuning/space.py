"""What a search varies: for every setting a value, some values, or a range.

The space ``paper`` is the grid of the GCSR paper's section on hyper-parameters: N, M, the rate of X',
alpha and beta from .1 to 1000, tau from .9 to 1; gamma and the student's rate fixed. MTT and SFGC have
the part that they know; the baselines have what their authors searched or released. Rates and weights
are in the units of the base settings: relative, unless a preset or ``units=absolute`` says otherwise.
The space ``wide`` also searches what the paper fixed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gcsr.methods.base import Condenser
from gcsr.methods.registry import BUILT_IN, kinds_of, known_setting, setting_kinds, value_of
from gcsr.methods.registry import method as method_of
from gcsr.utils.errors import Bounds, InputError, require
from gcsr.utils.formatting import text_of
from gcsr.utils.safe_io import reason

Value = None | bool | int | float | str
# The size of the condensed graph is never searched.
SIZES = ("nodes", "ratio")
SYNTAX = "a value, a,b,c, low..high or low..high:log"


def import_optuna() -> Any:
    """Optuna, or an error that says how to install it."""
    try:
        import optuna  # noqa: PLC0415 - an extra
    except ImportError:
        raise InputError(
            "optuna is not installed; `pip install 'gcsr[tune]'` installs it."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass(frozen=True)
class Choices:
    """One of these values; a single one is fixed."""

    values: tuple[Value, ...]

    @property
    def count(self) -> int | None:
        """The number of candidates."""
        return len(self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        """Candidates that the method must accept."""
        return self.values

    def distribution(self) -> Any:
        """The Optuna distribution."""
        return import_optuna().distributions.CategoricalDistribution(self.values)

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
        """The number of candidates; ``None``: infinite."""
        return int(self.high - self.low) + 1 if self.whole else None

    @property
    def ends(self) -> tuple[Value, ...]:
        """Candidates that the method must accept."""
        return self.low, self.high

    def distribution(self) -> Any:
        """The Optuna distribution."""
        kinds = import_optuna().distributions
        if self.whole:
            return kinds.IntDistribution(int(self.low), int(self.high), log=self.log)
        return kinds.FloatDistribution(self.low, self.high, log=self.log)

    def __str__(self) -> str:
        return f"{text_of(self.low)}..{text_of(self.high)}{':log' if self.log else ''}"


Dimension = Choices | Range


@dataclass(frozen=True)
class Space:
    """The dimensions of a search, by the name of the setting."""

    dimensions: Mapping[str, Dimension]

    @classmethod
    def of(cls, method: str, given: Mapping[str, object]) -> Space:
        """Dimensions from texts or Python values."""
        chosen = method_of(method)
        kinds = setting_kinds(chosen)
        dimensions: dict[str, Dimension] = {}
        for name, what in given.items():
            key = known_setting(chosen, name)
            require(key not in SIZES, f"{name} cannot be searched; give it as an argument.")
            require(key not in dimensions, f"{name} must be given once, got it twice.")
            dimensions[key] = dimension(name, what, kinds[key])
        return cls(dimensions)

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
        """The number of candidates; ``None``: infinite."""
        counts = [d.count for d in self.searched.values()]
        return None if None in counts else math.prod(c for c in counts if c is not None)

    def distributions(self) -> dict[str, Any]:
        """Optuna's distributions of what is searched."""
        return {name: one.distribution() for name, one in self.searched.items()}

    def to_dict(self) -> dict[str, str]:
        """Every dimension as text."""
        return {name: str(d) for name, d in self.dimensions.items()}


def read_toml(path: Path, field: str = "") -> dict[str, Any]:
    """The content of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{field}{path} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{field}{path} is not TOML ({reason(error)}).") from None


def dimension(name: str, given: object, kind: Any) -> Dimension:
    """A dimension for a setting of that type."""
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
        require(plain, f"{name} must be {SYNTAX}, got {one!r}.")
        value = value_of(name, str(one).strip(), kind)
        finite = not isinstance(value, float) or math.isfinite(value)
        require(finite and value != "", f"{name} must be finite, got {str(one)!r}.")
        require(value not in values, f"{name}: {text_of(value)} is given twice.")
        values.append(value)
    require(len(values) > 0, f"{name} must be {SYNTAX}, got nothing.")
    return tuple(values)


def _range(name: str, text: str, low: str, rest: str, kind: Any) -> Range:
    kinds = kinds_of(kind)
    number = float if float in kinds else int
    require(number in kinds, f"{name} must be a,b,c, as only numbers have ranges, got {text!r}.")
    high, colon, how = rest.partition(":")
    require(not colon or how == "log", f"{name} must be {SYNTAX}, got {text!r}.")
    first, last = (value_of(name, end.strip(), number) for end in (low, high))
    require(
        math.isfinite(first) and math.isfinite(last) and first < last,
        f"{name} must be a range whose first end is below the second, got {text!r}.",
    )
    require(not how or first > 0, f"{name} must begin above 0 for :log, got {text!r}.")
    return Range(first, last, log=bool(how), whole=number is int)


_SPACES = tomllib.loads((files("gcsr.tuning") / "spaces.toml").read_text(encoding="utf-8"))


def _grid(table: Mapping[str, str]) -> dict[str, str]:
    """A table of ``spaces.toml`` with the group that it names."""
    own = {name: text for name, text in table.items() if name != "from"}
    return {**_grid(_SPACES["groups"][table["from"]]), **own} if "from" in table else own


# Dimensions by space, method and setting.
NAMED: dict[str, dict[str, dict[str, str]]] = {
    name: {method: _grid(table) for method, table in _SPACES[name].items()}
    for name in ("paper", "wide")
}


def space_for(method: str, source: object, changes: Mapping[str, object]) -> Space:
    """The space of a name, a file or a mapping, with changes.

    With no source it is what the changes search or, if that is nothing, the paper's grid.
    """
    own = Space.of(method, changes)
    if source is None and own.searched:
        return own
    if isinstance(source, Mapping):
        base = Space.of(method, source)
    else:
        base = named_space(method, "paper" if source is None else str(source))
    return Space({**base.dimensions, **own.dimensions})


def named_space(method: str, name: str) -> Space:
    """The space of that name, or of the TOML file of that name: lines of ``name = value``."""
    if name in NAMED:
        grid = NAMED[name].get(method)
        return around_defaults(method) if grid is None else Space.of(method, grid)
    path = Path(name)
    require(
        path.suffix == ".toml" or path.exists(),
        f"space must be {', '.join(NAMED)} or a TOML file, got {name!r}.",
    )
    return Space.of(method, read_toml(path, "space: "))


def around_defaults(method: str) -> Space:
    """Positive numbers around their defaults: real ones within a decade, whole ones within a factor 2.

    Of methods of other packages also literals, and numbers whose bounds are nearer than that.
    Truth values, zeros, and settings that bound memory or seed experts are not searched.
    """
    chosen = method_of(method)
    found = {field.name: _around(chosen, field) for field in fields(chosen)}
    return Space({name: dimension for name, dimension in found.items() if dimension is not None})


def _around(method: type[Condenser], field: Field[Any]) -> Dimension | None:
    if field.name in SIZES or field.metadata.get("resource") or field.name.endswith("seed"):
        return None

    def accepts(value: float | str) -> bool:
        settings: dict[str, Any] = {"nodes": 1, field.name: value}
        try:
            method(**settings)
        except InputError:
            return False
        return True

    kind = get_type_hints(method, include_extras=True)[field.name]
    own = method.name not in BUILT_IN  # saved studies of ours name their spaces
    if own and get_origin(kind) is Literal:
        names = [name for name in get_args(kind) if isinstance(name, str) and accepts(name)]
        return Choices(tuple(names)) if len(names) > 1 else None
    default: Any = field.default
    if isinstance(default, bool) or not isinstance(default, int | float) or default <= 0:
        return None
    bounds = next(iter(getattr(kind, "__metadata__", ()) if own else ()), Bounds())
    low: float
    high: float
    if isinstance(default, int):
        least, most = bounds.whole
        low = max(1, default // 2, least)
        high = 2 * default if most is None else min(2 * default, most)
    else:
        ends = max(default / 10, bounds.least), min(default * 10, bounds.most)
        low, high = (float(f"{end:.6g}") for end in ends)
        if not accepts(high):
            high = 1.0 if default < 1 and accepts(1.0) else default
    if own and not accepts(low):
        low = default
    if low >= high or not (accepts(low) and accepts(high)):
        return None
    return Range(low, high, log=True, whole=isinstance(default, int))
