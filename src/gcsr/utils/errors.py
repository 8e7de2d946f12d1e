"""The exception for invalid input, and checks of settings and of arguments, which raise it."""

from __future__ import annotations

import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial, wraps
from types import NoneType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

P = ParamSpec("P")
T = TypeVar("T")
POSITIONAL, EMPTY = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
# Fields of gcsr.TrainingRecipe, which functions take as ``recipe``.
RECIPE_FIELDS = ("epochs", "lr", "weight_decay", "dropout", "validate_every")
_NUMBER = re.compile(r"\d+")


class InputError(ValueError):
    """Invalid input. The message is one sentence: the field, what is accepted and what was given.

    The command line prints the message and exits with code 2. Nothing was written.
    """


class InputWarning(UserWarning):
    """Input that is used in part, or with a choice made for the user. The message is one sentence."""


def warn_user(sentence: str) -> None:
    """Issue an :class:`InputWarning` for the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "gcsr":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, InputWarning, stacklevel=level)


def require(condition: bool, message: str) -> None:
    """Raise :class:`InputError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)


def require_one_of(field: str, value: object, accepted: Iterable[object]) -> None:
    """Raise :class:`InputError` unless ``value`` is among ``accepted``."""
    accepted = list(accepted)
    if value not in accepted:
        names = [str(name) for name in accepted]
        meant = suggestion(str(value), names, cutoff=0.66)
        raise InputError(f"{field} must be one of {', '.join(names)}, got {value!r}{meant}.")


def suggestion(given: str, accepted: Sequence[str], *, cutoff: float = 0.6) -> str:
    """`` (did you mean NAME?)`` if an accepted name is similar, otherwise an empty string."""
    # A name that differs in its number only is not similar: table9 is not a typo of table5.
    letters = _NUMBER.sub("0", given.lower())
    names = [
        name for name in accepted if _NUMBER.sub("0", name) != letters or name == given.lower()
    ]
    for word in (given, given.lower()):
        # Similar names come first, and of those with equally few edits the first is taken.
        near = get_close_matches(word, names, n=max(1, len(names)), cutoff=cutoff)
        meant = min(near, key=partial(_edits, word), default="")
        if meant and _edits(word, meant) <= max(1, len(word) // 2):
            return f" (did you mean {meant}?)"
    longer = [name for name in names if name.startswith(f"{given}_")]
    return f" (did you mean {longer[0]}?)" if len(longer) == 1 else ""


def _edits(one: str, other: str) -> int:
    """Letters to insert, remove, replace or swap with their neighbor (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted)))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def require_known(name: str, what: str, accepted: Iterable[str], *, given: str = "") -> None:
    """``name`` must be accepted as ``what``: "a setting of gcsr". ``given`` is how it was written."""
    accepted = list(accepted)
    if name not in accepted:
        raise InputError(f"{given or name} is not {what}{hint(name, accepted)}.")


def require_integer(name: str, value: object, least: int = 0, most: int | None = None) -> None:
    """``value`` must be an integer of at least ``least`` and at most ``most``."""
    fine = isinstance(value, int) and not isinstance(value, bool) and value >= least
    fine = fine and (most is None or value <= most)  # type: ignore[operator]
    upper = "" if most is None else f" and <= {most}"
    require(fine, f"{name} must be an integer >= {least}{upper}, got {value!r}.")


def require_truth(name: str, value: object) -> None:
    """``value`` must be true or false, of Python or NumPy: a text such as "no" is true."""
    fine = isinstance(plain_number(value), bool)
    require(fine, f"{name} must be true or false, got {value!r}.")


def whole_number(settings: object, *names: str, least: int = 0) -> None:
    """Each named field must be an integer of at least ``least``."""
    for name in names:
        require_integer(name, getattr(settings, name), least)


def plain_number(value: Any) -> Any:
    """A scalar of NumPy or torch as one of Python, as in files; anything else as it is."""
    return value.item() if getattr(value, "shape", None) == () else value


def real_number(
    settings: object,
    *names: str,
    least: float = 0.0,
    most: float = math.inf,
    above: bool = False,
    below: bool = False,
) -> None:
    """Each named field must be a finite number in the range.

    ``above`` excludes the lower end, ``below`` the upper end.
    """
    bounds = f"{'>' if above else '>='} {least:g}"
    if math.isfinite(most):
        bounds += f" and {'<' if below else '<='} {most:g}"
    for name in names:
        value: Any = getattr(settings, name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        fine = number and math.isfinite(value) and least <= value <= most
        fine = fine and not (above and value == least) and not (below and value == most)
        require(fine, f"{name} must be a number {bounds}, got {value!r}.")


@dataclass(frozen=True)
class Bounds:
    """In the annotation of a number: what :func:`real_number` accepts."""

    least: float = 0.0
    most: float = math.inf
    above: bool = False
    below: bool = False

    @property
    def whole(self) -> tuple[int, int | None]:
        """The least and the largest integer; ``None``: any."""
        least = math.floor(self.least) + 1 if self.above else math.ceil(self.least)
        if not math.isfinite(self.most):
            return least, None
        return least, math.ceil(self.most) - 1 if self.below else math.floor(self.most)


Whole = Annotated[int, Bounds()]
Count = Annotated[int, Bounds(least=1)]
Weight = Annotated[float, Bounds()]
Rate = Annotated[float, Bounds(above=True)]
Share = Annotated[float, Bounds(most=1.0)]
PositiveShare = Annotated[float, Bounds(most=1.0, above=True)]


_annotations = cache(partial(get_type_hints, include_extras=True))


def check_fields(settings: object) -> None:
    """Check a frozen dataclass by its annotations: :class:`Bounds`, literals and truth values.

    Scalars of NumPy or torch are replaced by those of Python.
    """
    annotations = _annotations(cast("Any", type(settings)))
    for name, given in list(vars(settings).items()):
        value = plain_number(given)
        object.__setattr__(settings, name, value)
        kind = annotations[name]
        if NoneType in get_args(kind):
            if value is None:
                continue
            kind = get_args(kind)[0]
        if kind is bool:
            require(isinstance(value, bool), f"{name} must be true or false, got {value!r}.")
        elif get_origin(kind) is Literal:
            require_one_of(name, value, get_args(kind))
        elif get_origin(kind) is Annotated and get_args(kind)[0] is int:
            require_integer(name, value, *get_args(kind)[1].whole)
        elif get_origin(kind) is Annotated:
            real_number(settings, name, **vars(get_args(kind)[1]))


class NamedSettings:
    """Base of dataclasses that raise :class:`InputError` where Python would raise ``TypeError``."""

    def __new__(cls, *args: object, **settings: object) -> Self:
        """Refuse settings that the class does not have, and values without a name it needs."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        kinds = [one.kind for one in parameters]
        name = getattr(cls, "name", f"gcsr.{cls.__name__}")
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            for given in settings:
                require_known(given, f"a setting of {name}", [one.name for one in parameters])
        if args and set(kinds) == {inspect.Parameter.KEYWORD_ONLY}:
            raise InputError(f"settings of {name} must be given by name, got the bare {args[0]!r}.")
        return super().__new__(cls)


# -- Arguments of public functions: those that a function does not have end in one sentence -----------


def checks_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """A function that raises :class:`InputError` where Python would raise ``TypeError``."""

    @wraps(function)
    def call(*args: P.args, **given: P.kwargs) -> T:
        require_arguments(function, args, given)
        return function(*args, **given)

    return call


def require_arguments(
    function: Callable[..., Any], args: Collection[Any], given: Mapping[str, Any]
) -> None:
    """Refuse a call with unknown, missing or too many arguments."""
    error = ""
    try:
        inspect.signature(function).bind(*args, **given)
    except TypeError as refused:
        error = str(refused)
    if error:
        raise InputError(_sentence(function, args, given, error))
    recipe = given.get("recipe")
    if recipe is not None and not hasattr(recipe, "validate_every"):
        raise InputError(f"recipe must be a gcsr.TrainingRecipe(epochs=...), got {recipe!r}.")


def argument_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is not one.VAR_KEYWORD if one.name != "self"]


def _sentence(
    function: Callable[..., Any], args: Collection[Any], given: Mapping[str, Any], error: str
) -> str:
    call = f"gcsr.{function.__qualname__}"
    parameters = inspect.signature(function).parameters
    accepted = argument_names(function)
    bound = "self" in parameters
    if len(accepted) + bound == len(parameters):  # no others are passed on
        for name in given:
            require_known(name, f"an argument of {call}", accepted)
    positional = [name for name in accepted if parameters[name].kind is POSITIONAL]
    if len(args) > len(positional) + bound:
        others = ", ".join(accepted[len(positional) :])
        return (
            f"{call} takes only {' and '.join(positional)} without a name, got"
            f" {len(args) - bound} values; name the others: {others}."
        )
    missing = [
        name
        for name in accepted[len(args) - bound :]
        if parameters[name].default is EMPTY and name not in given
    ]
    if missing:
        needed = ", ".join(name for name in positional if parameters[name].default is EMPTY)
        return f"{' and '.join(missing)} must be given to {call}({needed or '...'})."
    return f"{call}: {error}."


def hint(name: str, accepted: Sequence[str]) -> str:
    """What is meant by a name that is not accepted, and what is accepted."""
    if name in RECIPE_FIELDS and "recipe" in accepted:
        return f"; give recipe=gcsr.TrainingRecipe({name}=...)"
    return f"{suggestion(name, accepted)}; accepted: {', '.join(accepted)}"


def require_keyword(
    name: str,
    function: Callable[..., Any],
    settings: Iterable[str],
    of: str,
    options: Sequence[str] = (),
) -> None:
    """Refuse a keyword that a function neither has nor passes on.

    Passed on are ``settings``, which a message calls ``of``, and ``options`` of reading the data.
    """
    arguments = [*argument_names(function), *options]
    settings = [one for one in settings if one not in arguments]
    if name in settings:
        return
    if name in RECIPE_FIELDS and "recipe" in arguments:
        meant = hint(name, arguments)
    else:
        meant = (
            f"{suggestion(name, [*arguments, *settings])}; arguments: {', '.join(arguments)};"
            f" settings: {', '.join(sorted(settings)) or 'none'}"
        )
    raise InputError(f"{name} is neither an argument of gcsr.{function.__name__} nor {of}{meant}.")
