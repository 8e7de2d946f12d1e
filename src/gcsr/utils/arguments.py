"""Arguments of public functions: those that a function does not have end in one sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from gcsr.utils.errors import InputError, suggestion

P = ParamSpec("P")
T = TypeVar("T")
POSITIONAL, EMPTY = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
# Fields of gcsr.TrainingRecipe, which functions take as ``recipe``.
RECIPE_FIELDS = ("epochs", "lr", "weight_decay", "dropout", "validate_every")


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
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        raise InputError(_sentence(function, signature, args, given, str(error))) from None
    recipe = given.get("recipe")
    if recipe is not None and not hasattr(recipe, "validate_every"):
        raise InputError(f"recipe must be a gcsr.TrainingRecipe(epochs=...), got {recipe!r}.")


def argument_names(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.kind is not one.VAR_KEYWORD if one.name != "self"]


def _sentence(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: Collection[Any],
    given: Mapping[str, Any],
    error: str,
) -> str:
    call = f"gcsr.{function.__qualname__}"
    parameters = signature.parameters
    accepted = argument_names(function)
    bound = "self" in parameters
    if len(accepted) + bound == len(parameters):  # no others are passed on
        for name in given:
            if name not in accepted:
                return f"{name} is not an argument of {call}{hint(name, accepted)}."
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
