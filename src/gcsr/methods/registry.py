"""Methods by name: ours, those that were registered, and those of other packages.

A package registers methods by an entry point of the group ``gcsr.methods``, a program by
:func:`register`. Nothing here imports torch until a method is loaded.
"""

from __future__ import annotations

import inspect
import re
import sys
import traceback
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from gcsr.utils.errors import InputError, require, require_keyword, require_known, suggestion
from gcsr.utils.renamed import new_name
from gcsr.utils.safe_io import reason

if TYPE_CHECKING:
    from gcsr.methods.base import Condenser

M = TypeVar("M", bound="type[Condenser]")
# Where every method of this package is, in the order in which they are listed.
BUILT_IN = {
    "random": "gcsr.methods.selection:Random",
    "herding": "gcsr.methods.selection:Herding",
    "kcenter": "gcsr.methods.selection:KCenter",
    "coarsening": "gcsr.methods.coarsening:Coarsening",
    "dcg": "gcsr.methods.gcond:DCG",
    "gcond-x": "gcsr.methods.gcond:GCondX",
    "gcond": "gcsr.methods.gcond:GCond",
    "sfgc": "gcsr.methods.sfgc:SFGC",
    "sgdd": "gcsr.methods.gcond:SGDD",
    "mtt": "gcsr.methods.trajectory_matching:MTT",
    "gcsr": "gcsr.methods.gcsr:GCSR",
    "doscond": "gcsr.methods.gcond:DosCond",
    "dm": "gcsr.methods.dm:DM",
    "gcdm-x": "gcsr.methods.dm:GCDMX",
    "gcdm": "gcsr.methods.dm:GCDM",
    "simgc": "gcsr.methods.simgc:SimGC",
    "geom": "gcsr.methods.geom:GEOM",
    "bonsai": "gcsr.methods.bonsai:Bonsai",
    "cgc-x": "gcsr.methods.cgc:CGCX",
    "cgc": "gcsr.methods.cgc:CGC",
    "gecc": "gcsr.methods.gecc:GECC",
    "krr": "gcsr.methods.krr:KRR",
    "gdem": "gcsr.methods.gdem:GDEM",
    "clusters": "gcsr.methods.clusters:Clusters",
    "bilevel": "gcsr.methods.bilevel:Bilevel",
    "auto": "gcsr.auto.automatic:Automatic",
}
_REGISTERED: dict[str, type[Condenser]] = {}
# The letters of the paper.
ALIASES = {
    "N": "student_steps",
    "M": "expert_steps",
    "hops": "num_hops",
    "eta1": "student_lr",
    "eta2": "feature_lr",
}
# Settings that were removed, by method. Automatic once chose settings of trajectory matching.
_OF_CLUSTERS = ("tempered", "grouping", "soft_labels", "class_means", "draw")
_OF_TRAJECTORIES = (
    *("alpha", "beta", "tau", "gamma", "prior", "regularizer", "model", "units", "dtype"),
    *("student_steps", "expert_steps", "max_start", "experts", "expert_epochs", "expert_lr"),
    *("expert_weight_decay", "expert_memory", "expert_disk"),
)
_OF_MATCHING = ("window", "class_means", "draw")
REMOVED: dict[str, tuple[str, ...]] = {
    "auto": (*_OF_CLUSTERS, *_OF_TRAJECTORIES),
    "bilevel": (*_OF_CLUSTERS, *_OF_TRAJECTORIES),
    "gcsr": _OF_MATCHING,
    "mtt": _OF_MATCHING,
    "sfgc": _OF_MATCHING,
    "clusters": ("draw",),
}
# Of the setting `window` that was removed; methods that have one now count steps or epochs by it.
_REMOVED_WINDOWS = ("fixed", "expanding")


def register(method: M) -> M:
    """Make a method available under its ``name`` in this process; also a class decorator."""
    require_method(method)
    known = _REGISTERED.get(method.name, method) is not method
    require(not known, f"name must be new, got {method.name!r}, which is another method.")
    _REGISTERED[method.name] = method
    return method


def require_described(method: type[Condenser]) -> None:
    """Refuse a method without a ``name`` and a ``summary``."""
    for attribute in ("name", "summary"):
        text = getattr(method, attribute, None)
        got = "none" if text is None else repr(text)
        require(
            isinstance(text, str) and bool(text.strip()),
            f"{attribute} of the class {method.__name__} must be a text, got {got};"
            f' {attribute} = "..." in the class gives it one.',
        )


def require_method(found: type[Condenser], *, made: bool = False) -> None:
    """Refuse a class that is not a complete method, or that is called like one of this package.

    An instance may have been ``made`` with settings that have no default, and may have any name.
    """
    base = import_module("gcsr.methods.base").Condenser
    known = isinstance(found, type) and issubclass(found, base)
    require(known, f"method must be a subclass of gcsr.Condenser, got {found!r}.")
    title = found.__name__
    require(not inspect.isabstract(found), f"{title} must define run(self, ctx).")
    require_described(found)
    for one in found.__mro__:
        if issubclass(one, base) and "__dataclass_fields__" not in vars(one):
            kinds = inspect.get_annotations(one).items()
            settings = (key for key, kind in kinds if "ClassVar" not in str(kind))
            own = ", ".join(key for key in settings if key not in _class_variables(base))
            decorator = "@dataclass(frozen=True, kw_only=True)"
            require(not own, f"{one.__name__} must have {decorator} for its settings ({own}).")
    for f in fields(found):
        require(
            f.name not in _class_variables(base),
            f"{f.name} of {title} must not be a setting; remove the annotation of {f.name}.",
        )
        given = made or not f.init or f.default is not MISSING or f.default_factory is not MISSING
        require(given, f"{f.name} must have a default, {title} has none for it.")
    ours = _loaded(BUILT_IN[found.name]) if found.name in BUILT_IN and not made else found
    require(
        ours is found, f"name of {title} must be new, got {found.name!r}, which is another method."
    )


def _class_variables(base: type[Condenser]) -> set[str]:
    """The names that the base class declares as class variables."""
    kinds = inspect.get_annotations(base).items()
    return {name for name, kind in kinds if "ClassVar" in str(kind)}


def methods() -> dict[str, type[Condenser]]:
    """Every method that can be asked for by name."""
    found = {name: _loaded(place) for name, place in BUILT_IN.items()} | _REGISTERED
    for entry in entry_points(group="gcsr.methods"):
        if entry.name not in found:
            found[entry.name] = entry.load()
    return found


def method_names() -> list[str]:
    """The names of :func:`methods`, without loading them."""
    others = [entry.name for entry in entry_points(group="gcsr.methods")]
    return list(dict.fromkeys([*BUILT_IN, *_REGISTERED, *others]))


def method(name: str) -> type[Condenser]:
    """The method of that name, or a class as ``module:Class``."""
    require(isinstance(name, str), f"method must be the name of a method, got {name!r}.")
    if name in BUILT_IN:
        return _loaded(BUILT_IN[name])
    if name in _REGISTERED:
        return _REGISTERED[name]
    if ":" in name:
        return _of_module(name)
    known = method_names()
    if name not in known:
        meant = suggestion(name, known, cutoff=0.66)
        raise InputError(
            f"method must be one of {', '.join(known)} or a class as module:Class, got {name!r}{meant}."
        )
    return methods()[name]


def _of_module(place: str) -> type[Condenser]:
    """A class of an installed module, or of one in the working directory."""
    module, _, title = place.rpartition(":")
    if re.search(r"^\.|[/\\]|\.py$", module):
        meant = re.split(r"[/\\]", module.removesuffix(".py"))[-1].lstrip(".")
        raise InputError(
            f"method must be module:Class such as {meant}:{title}, got {place!r} (no path and no .py)."
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        found = _loaded(place)
    except (Exception, SystemExit) as error:  # a module of others may raise anything
        why = _why(error, module)
        raise InputError(f"method: {place!r} cannot be imported ({why}).") from None
    require_method(found)
    return found


def _why(error: BaseException, module: str) -> str:
    """Why a module cannot be imported; for an error in its code the line that raised it."""
    said = reason(error)
    if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
        first, dot, _ = module.partition(".")
        file = first if dot else f"{first}.py"
        return f"{said}; run the command in the folder of {file}, or install it"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [one for one in frames if one.name == "<module>"]
    if isinstance(error, SyntaxError) or not lines:
        return said
    return f"{type(error).__name__}: {said}, {lines[-1].filename} line {lines[-1].lineno}"


def _loaded(place: str) -> type[Condenser]:
    module, _, attribute = place.partition(":")
    found: type[Condenser] = getattr(import_module(module), attribute)
    return found


def setting_name(given: str) -> str:
    """The field that a user means: the paper's letters and dashes are accepted."""
    return ALIASES.get(given, given.replace("-", "_"))


@cache
def setting_kinds(chosen: type[Condenser]) -> dict[str, Any]:
    """The type of every setting of a method, including those that it passes on to other methods."""
    kinds: dict[str, Any] = {}
    for one in (*chosen.delegates, chosen):
        hints = get_type_hints(one)
        kinds |= {f.name: hints[f.name] for f in fields(one) if f.name != "fixed"}
    return kinds


def known_setting(
    chosen: type[Condenser],
    given: str,
    function: Callable[..., Any] | None = None,
    options: Sequence[str] = (),
) -> str:
    """The setting of the method that a user means; any other is explained.

    ``function`` is the one that was given it among its own arguments and ``options`` of the data, if
    that is how it came.
    """
    kinds = setting_kinds(chosen)
    key = setting_name(given)
    if key in kinds:
        return key
    new = new_name(key, chosen.name)
    require(new not in kinds, f"{given} is called {new} since version 0.1.")
    require(
        new not in REMOVED.get(chosen.name, ()),
        f"{given} was removed in version 0.1: {chosen.name} has no such setting; leave it out.",
    )
    of_auto = {f.name for f in fields(method("auto"))} - {"nodes", "ratio", "fixed"}
    require(
        key not in of_auto,
        f"{given} is a setting of the automatic mode, not of {chosen.name}; use method 'auto'.",
    )
    if function is not None:
        require_keyword(given, function, kinds, f"a setting of {chosen.name}", options)
    require_known(key, f"a setting of {chosen.name}", sorted(kinds), given=given)
    return key


def build(name: str, settings: Mapping[str, Any]) -> Condenser:
    """A condenser of the named method; an unknown setting is explained, not swallowed."""
    chosen = method(name)
    own = {f.name for f in fields(chosen)}
    named: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    for given, value in settings.items():
        key = known_setting(chosen, given)
        require(key not in named and key not in fixed, f"{given} is given twice.")
        if key == "window":
            _require_kept(value, setting_kinds(chosen)[key])
        (named if key in own else fixed)[key] = value
    if fixed:
        named["fixed"] = tuple(sorted(fixed.items()))
    return chosen(**named)


# -- Settings as people write them: text to the type of a method's field ------------------------------


def _require_kept(window: Any, kind: Any) -> None:
    removed = isinstance(window, str) and window in _REMOVED_WINDOWS
    require(
        not removed or int not in kinds_of(kind),
        f"window={window} was removed in version 0.1: window is an integer now; leave it out.",
    )


def value_of(key: str, text: str, kind: Any) -> Any:
    """What ``text`` means as a value of a field of that kind."""
    if key == "window":
        _require_kept(text, kind)
    choices = kinds_of(kind)
    for choice in choices:
        parse = _READ[choice][1] if choice in _READ else str
        try:
            return parse(text)
        except ValueError:
            continue
    wanted = " or ".join(_READ[choice][0] if choice in _READ else str(choice) for choice in choices)
    raise InputError(f"{key} must be {wanted}, got {text!r}.")


def kinds_of(kind: Any) -> tuple[Any, ...]:
    """The members of a union; otherwise the kind alone."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)  # 1e3 is how many people write a thousand


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _nothing(text: str) -> None:
    if text.lower() != "none":
        raise ValueError(text)


# What a message calls a type, and how its text is read.
_READ: dict[Any, tuple[str, Callable[[str], Any]]] = {
    int: ("an integer", _whole),
    float: ("a number", float),
    bool: ("true or false", _truth),
    types.NoneType: ("none", _nothing),
}
