"""Search of an architecture on a condensed graph; the best few are trained on the whole graph."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gcsr.data.condensed import CondensedGraph
from gcsr.data.graph import Graph
from gcsr.data.stored_graph import require_in_memory
from gcsr.data.views import Target, View
from gcsr.evaluation.cost import RANDOM, SMALL, WHOLE, condense_seconds, random_subsets
from gcsr.evaluation.intervals import rank_correlation
from gcsr.evaluation.modules import TrainingGraph, edges_of, module_scores, train_modules
from gcsr.evaluation.origin import require_origin
from gcsr.evaluation.trial import NetworkTester
from gcsr.models.base import Model, Params, Prepared
from gcsr.models.registry import MODELS, testing_model
from gcsr.models.sparse import SparseOperator
from gcsr.models.topology import DenseOperator, Operator
from gcsr.training.classification import targets_of
from gcsr.training.fit import TrainingRecipe
from gcsr.tuning.space import Choices, Dimension, Space, Value, dimension, import_optuna
from gcsr.tuning.study import sampler
from gcsr.utils.devices import machine_name, make_generator, pick_device
from gcsr.utils.errors import InputError, require, require_integer, require_keyword, require_one_of
from gcsr.utils.progress import Progress, ProgressOption, prefixed, shows_progress, silent

Factory = Callable[[], nn.Module]
# The settings: their types, and what is searched by default.
SETTINGS: dict[str, tuple[type, str]] = {
    "model": (str, "mlp,sgc,gcn,sage,gat,appnp,cheby"),
    "hidden_channels": (int, "32,64,128,256"),
    "num_layers": (int, "2"),
    "dropout": (float, "0,0.3,0.6"),
    "lr": (float, "1e-3..0.1:log"),
    "weight_decay": (float, "1e-5..1e-2:log"),
}
OPTIMIZER_SETTINGS = ("lr", "weight_decay")
# Networks of this library have two layers and batch their runs; with another number PyG's are used.
DEEP = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT"}
OWN_LAYERS = 2
SAMPLERS = ("tpe", "random")
RECIPE = TrainingRecipe(epochs=200, validate_every=10)


@dataclass(frozen=True)
class Suggestions:
    """Suggests values as an Optuna trial does: those of ``params`` again, others at random."""

    params: dict[str, Any]
    random: np.random.Generator | None = None

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices."""
        return self._known(name, lambda draw: choices[int(draw * len(choices))])

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """A number from ``low`` to ``high``, both included."""

        def drawn(draw: float) -> float:
            if log:
                return float(low * (high / low) ** draw)
            if step is None:
                return low + draw * (high - low)
            # The last step may fall short of `high` by rounding: 0.3 // 0.1 is 2.
            steps = math.floor((high - low) / step + 1e-9)
            return min(high, low + step * int(draw * (steps + 1)))

        return float(self._known(name, drawn))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """A whole number from ``low`` to ``high``, both included."""

        def drawn(draw: float) -> int:
            if log:
                return int(low * ((high + 1) / low) ** draw)
            return low + step * int(draw * ((high - low) // step + 1))

        return int(self._known(name, drawn))

    def _known(self, name: str, drawn: Callable[[float], Any]) -> Any:
        if name not in self.params:
            if self.random is None:
                raise InputError(f"space: {name} was not suggested for this trial.")
            self.params[name] = drawn(self.random.random())
        return self.params[name]


@dataclass(frozen=True)
class Architectures:
    """What is searched: dimensions of the settings, and networks of the user.

    ``make`` makes a module of a trial. ``factories`` are modules by name, which ``model`` chooses from.
    """

    space: Space
    factories: Mapping[str, Factory]
    make: Callable[[Any], nn.Module] | None = None

    @classmethod
    def of(cls, space: object, changes: Mapping[str, object]) -> Architectures:
        """From the argument ``space`` of :func:`search`, and settings that replace its dimensions."""
        given: dict[str, object] = {}
        factories: dict[str, Factory] = {}
        make = None
        if isinstance(space, Mapping):
            named = {name: one for name, one in space.items() if callable(one)}
            require(
                not named or len(named) == len(space),
                "space must have functions that make modules, or dimensions of settings, got both.",
            )
            factories = {str(name): one for name, one in named.items()}
            given = {"model": list(factories)} if factories else dict(space)
        elif space is not None:
            require(
                callable(space) and not isinstance(space, nn.Module),
                "space must be a mapping from settings to dimensions or from names to functions that"
                f" make modules, or a function trial -> module, got {type(space).__name__}.",
            )
            make = cast("Callable[[Any], nn.Module]", space)
        given |= changes
        names: tuple[str, ...] = tuple(SETTINGS)
        if make or factories:
            names = OPTIMIZER_SETTINGS if make else ("model", *OPTIMIZER_SETTINGS)
        for name in given:
            require_one_of("space", name, names)
        found: dict[str, Dimension] = {}
        for name in names:
            kind, default = SETTINGS[name]
            found[name] = dimension(name, given.get(name, default), kind)
        return cls(Space(found), factories, make)

    def __post_init__(self) -> None:
        for name, one in self.space.dimensions.items():
            for end in one.ends:
                if name == "model":
                    require_one_of("model", end, self.factories or MODELS)
                elif SETTINGS[name][0] is int:
                    require_integer(name, end, 1)
                else:
                    replace(RECIPE, **{name: end})  # type: ignore[arg-type]
        layers = self.space.dimensions.get("num_layers")
        models = self.space.dimensions.get("model")
        if layers is not None and models is not None and layers.ends != (OWN_LAYERS,):
            deep = [one for one in models.ends if one in DEEP]
            require(bool(deep), f"num_layers must be 2 but for {', '.join(DEEP)}, got {layers}.")

    def suggest(self, trial: Any) -> dict[str, Value]:
        """The settings of a trial; ``num_layers`` only of networks that can have another number."""
        values: dict[str, Value] = {}
        for name, one in self.space.dimensions.items():
            if name != "num_layers" or values["model"] in DEEP:
                values[name] = _suggested(trial, name, one)
        if self.make is not None:
            self._made(trial)
            values |= trial.params
        return values

    def model(self, values: Mapping[str, Any], graph: Graph) -> Model | Factory:
        """The network of a trial: a model of this library, or a function that makes a module."""
        if self.make is not None:
            return lambda: self._made(Suggestions(dict(values)))
        name = str(values["model"])
        if name in self.factories:
            return self.factories[name]
        if values.get("num_layers", OWN_LAYERS) == OWN_LAYERS:
            return testing_model(name, int(values["hidden_channels"]))
        from torch_geometric.nn import models  # noqa: PLC0415 - takes seconds to import

        kind = getattr(models, DEEP[name])
        sizes = (graph.num_features, values["hidden_channels"], values["num_layers"])
        return lambda: kind(*sizes, graph.num_classes, dropout=float(values["dropout"]))

    def _made(self, trial: Any) -> nn.Module:
        try:
            made: object = None if self.make is None else self.make(trial)
        except Exception as error:
            if isinstance(error, InputError):
                raise
            name = getattr(self.make, "__name__", type(self.make).__name__)
            raise InputError(
                f"space must be a function of a trial that makes a module, but {name}(trial) raised"
                f" {type(error).__name__}: {error}"
            ) from error
        if isinstance(made, nn.Module):
            return made
        raise InputError(f"space must return a torch.nn.Module, got {type(made).__name__}.")


def _suggested(trial: Any, name: str, one: Dimension) -> Value:
    if one.count == 1:
        return one.ends[0]
    if isinstance(one, Choices):
        return trial.suggest_categorical(name, one.values)  # type: ignore[no-any-return]
    if one.whole:
        return int(trial.suggest_int(name, int(one.low), int(one.high), log=one.log))
    return float(trial.suggest_float(name, one.low, one.high, log=one.log))


# -- training on one graph ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trained:
    """Networks of one configuration: validation accuracy in percent, and what they took.

    ``test`` computes their mean test accuracy; ``None``: the networks are not kept.
    """

    validation: float
    seconds: float
    operations: float
    test: Callable[[], float] | None


@dataclass(eq=False)
class Trainer:
    """Trains configurations on one of ``graphs`` or, run by run, on one of several.

    What a model needs of a graph is prepared when it is first trained, and is part of its seconds.
    """

    graphs: Sequence[CondensedGraph | Target]
    graph: Graph
    recipe: TrainingRecipe
    runs: int
    seed: int
    device: torch.device
    _known: dict[str, tuple[NetworkTester, list[tuple[Prepared, torch.Tensor]]]] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._view = View(self.graph)

    def __call__(
        self, model: Model | Factory, values: Mapping[str, Any], progress: Progress
    ) -> Trained:
        """Train the networks of a configuration."""
        recipe = replace(self.recipe, lr=values["lr"], weight_decay=values["weight_decay"])
        began = time.perf_counter()
        if isinstance(model, Model):
            recipe = replace(recipe, dropout=values["dropout"])
            scores, operations, test = self._models(model, recipe, progress)
        else:
            scores, operations, test = self._modules(model, recipe, progress)
        mean = 100 * sum(scores) / len(scores)
        return Trained(mean, time.perf_counter() - began, operations, test)

    def _passes(self, train: float, validate: float) -> float:
        """Operations of a training: an epoch is a forward and a backward pass, of twice its work."""
        epochs = self.recipe.epochs
        return 3 * epochs * train + -(-epochs // self.recipe.validate_every) * validate

    def _models(
        self, model: Model, recipe: TrainingRecipe, progress: Progress
    ) -> tuple[list[float], float, Callable[[], float]]:
        if model.name not in self._known:
            tester = NetworkTester(model, self.graph, self.device, recipe, self.seed)
            self._known[model.name] = tester, [self._prepare(tester, g) for g in self.graphs]
        first, inputs = self._known[model.name]
        tester = copy(first)
        tester.model, tester.recipe = model, recipe
        batches = [
            batch
            for place, one in enumerate(inputs)
            for batch in tester.batches(*one, range(place, self.runs, len(inputs)))
        ]
        fitted = tester.fitted(batches, progress)
        scores = torch.cat([part.validation for part in fitted]).tolist()
        params = fitted[0].params
        on_validation = forward_operations(tester.validate, params)
        operations = sum(
            len(batch.networks)
            * self._passes(forward_operations(batch.prepared, params), on_validation)
            for batch in batches
        )

        def test() -> float:
            return 100 * float(tester.test_scores(fitted, silent).test.double().mean())

        return scores, operations, test

    def _prepare(
        self, tester: NetworkTester, graph: CondensedGraph | Target
    ) -> tuple[Prepared, torch.Tensor]:
        if isinstance(graph, CondensedGraph):
            batch = tester.condensed_batches([graph], 1)[0]
            return batch.prepared, batch.classes
        targets = targets_of(graph.labels, self.graph.num_classes)
        return tester.prepare(graph), targets.to(self.device)

    def _modules(
        self, model: Factory, recipe: TrainingRecipe, progress: Progress
    ) -> tuple[list[float], float, Callable[[], float]]:
        validation = self._view.validation()
        classes = self.graph.num_classes
        trains = [TrainingGraph.of(graph, classes, self.device) for graph in self.graphs]
        numbered = [(run, trains[run % len(trains)]) for run in range(self.runs)]
        callers, scores = train_modules(
            model, numbered, validation, recipe=recipe, seed=self.seed, progress=progress
        )
        real = edges_of(validation, self.device)
        work = []
        for edges in (trains[0].edges, real):
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                callers[0](edges)
            work.append(float(counter.get_total_flops()))

        def test() -> float:
            found = module_scores(callers, self._view.test(), self.device)
            return 100 * float(np.mean(found.test.tolist()))

        return scores, self.runs * self._passes(*work), test


def forward_operations(prepared: Prepared, params: Params) -> float:
    """Multiplications and additions of a network's products in one forward pass.

    Products with weights count the stored entries of the inputs; propagation counts those of its
    matrix, once per channel; attention counts three products per edge and channel.
    """
    inputs = prepared.inputs
    filled = inputs.matrix.nnz if isinstance(inputs, SparseOperator) else inputs.numel()
    rows = int(np.prod(inputs.shape[:-1]))
    hidden, classes = int(params[0].shape[-1]), int(params[-1].shape[-1])
    work = float(filled * hidden)
    work += rows * sum(p[0].numel() for p in params[1:])
    if prepared.inner is not None:
        work += hidden * _entries(prepared.inner.operator)
    work += classes * sum(_entries(one.operator) for one in prepared.outer)
    if prepared.edges is not None:
        first, second = (edges[0].numel() for edges in prepared.edges)
        work += 3 * (hidden * first + classes * second)
    return 2 * work


def _entries(operator: Operator) -> int:
    if isinstance(operator, DenseOperator):
        return int(operator.matrix.shape[-1] * operator.matrix.shape[-2])
    return int(operator.matrix.nnz) if isinstance(operator, SparseOperator) else 0


# -- the search --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """All configurations trained on one graph, and the winner of that search.

    Attributes:
        trained_on: ``condensed``, ``random`` (training nodes in as many bytes) or ``whole``.
        nodes, bytes: its size.
        validation: accuracy in percent of every configuration, the mean of its runs.
        seconds, operations: of every configuration.
        finalists: the best ones by number, with their validation accuracy when trained on the whole
            graph; of the whole graph itself the best.
        final_seconds, final_operations: of training the finalists.
        winner: the finalist with the best validation accuracy, and ``test`` its test accuracy.
        condense_seconds: of condensing; ``None`` where the file does not say, or nothing was condensed.
        tau, tau_interval: Kendall's rank correlation with the ranking on the whole graph.
        regret: points of validation accuracy, trained on the whole graph, by which the winner is below
            the best configuration.
    """

    trained_on: str
    nodes: int
    bytes: int
    validation: tuple[float, ...]
    seconds: tuple[float, ...]
    operations: tuple[float, ...]
    finalists: dict[int, float]
    final_seconds: float
    final_operations: float
    winner: int
    test: float | None
    condense_seconds: float | None = None
    tau: float | None = None
    tau_interval: tuple[float, float] | None = None
    regret: float | None = None

    @property
    def total_seconds(self) -> float:
        """Everything: condensing, the configurations and the finalists."""
        return (self.condense_seconds or 0.0) + sum(self.seconds) + self.final_seconds

    @property
    def total_operations(self) -> float:
        """Of the configurations and the finalists."""
        return sum(self.operations) + self.final_operations


@dataclass(frozen=True)
class SearchResult:
    """The configurations of a search, and how they rank on each graph they were trained on."""

    dataset: str
    configurations: tuple[dict[str, Any], ...]
    rankings: dict[str, Ranking]
    runs: int
    recipe: dict[str, Any]
    sampler: str
    seed: int
    device: str
    machine: str
    leaks_test_labels: bool

    def __str__(self) -> str:
        winner = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{winner} on {self.dataset}; {self.verdict}"

    @property
    def small(self) -> Ranking:
        """The ranking on the condensed graph."""
        return self.rankings[SMALL]

    @property
    def settings(self) -> dict[str, Any]:
        """The winning configuration."""
        return self.configurations[self.small.winner]

    @property
    def verdict(self) -> str:
        """What the search took, beside the same search on the whole graph where there is one."""
        small, whole = self.small, self.rankings.get(WHOLE)
        took = f"the search took {small.total_seconds:.3g} s"
        if small.condense_seconds is None:
            took += " without condensing, whose seconds the file does not say"
        else:
            took += f", {small.condense_seconds:.3g} s of it to condense"
        if whole is None:
            return took
        times = whole.total_seconds / small.total_seconds
        paid = "it pays" if times > 1 else "it does not pay"
        return (
            f"{took}; the same configurations on the whole graph took {whole.total_seconds:.3g} s:"
            f" {paid} ({times:.2g} times as fast), and the winner is {small.regret:.2f} points below"
            " the best configuration"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values = asdict(self)
        for name, one in self.rankings.items():
            totals = {"total_seconds": one.total_seconds, "total_operations": one.total_operations}
            values["rankings"][name] |= totals
        return values | {"winner": self.settings, "verdict": self.verdict}


@shows_progress
def search(
    small: CondensedGraph,
    graph: object,
    space: object = None,
    trials: int = 40,
    *,
    finalists: int = 3,
    compare: bool = False,
    sampler: str = "tpe",
    runs: int = 2,
    recipe: TrainingRecipe | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: ProgressOption = None,
    **settings: object,
) -> SearchResult:
    """Search an architecture and its training settings on a condensed graph.

    Every configuration is trained on the condensed graph and scored on the validation nodes of the
    real one. The best few are then trained on the whole graph; the winner is the one that validates
    best there. Test labels are read once, for the winner; with ``compare`` for that of each graph.

    Args:
        small: the condensed graph.
        graph: the real graph that it was made from.
        space: ``None``: models of this library (with ``num_layers`` other than 2 those of PyG), hidden
            channels, dropout, learning rate and weight decay. A mapping from these settings to
            dimensions as in :func:`gcsr.tune`; a mapping from names to functions that make modules; or
            a function ``trial -> torch.nn.Module`` that calls ``trial.suggest_categorical``,
            ``suggest_float`` and ``suggest_int``. ``lr`` and ``weight_decay`` are always searched.
        trials: number of configurations.
        finalists: how many of the best are trained on the whole graph.
        compare: train the same configurations also on the whole graph and on random training nodes in
            as many bytes, and report rank correlation and regret.
        sampler: ``tpe`` (Optuna, the extra ``tune``) or ``random``, which needs no Optuna.
        runs: networks per configuration; their mean validation accuracy is its score.
        recipe: epochs, and how often they are validated; by default 200, validated every tenth.
        seed: of the configurations and of initial weights.
        device: ``auto``, ``cpu`` or ``cuda``.
        check_origin: ``False`` accepts a condensed graph of another graph.
        progress: as in :func:`gcsr.evaluate`.
        settings: dimensions that replace those of the space; a single value is fixed.
    """
    for name in settings:
        require_keyword(name, search, SETTINGS, "a setting that it searches")
    real = require_origin([small], graph, check_origin)
    require_in_memory(real, "graph")
    architectures = Architectures.of(space, settings)
    for name, value in (("trials", trials), ("runs", runs), ("finalists", finalists)):
        require_integer(name, value, 1)
    require_integer("seed", seed)
    require_one_of("sampler", sampler, SAMPLERS)
    if compare:
        real.require_single_label("compare")
    if sampler == "tpe":
        import_optuna()
    target, recipe = pick_device(device), recipe or RECIPE
    view = View(real)
    tried = _Configurations(architectures, real, min(finalists, trials))

    def trainer(*graphs: CondensedGraph | Target) -> Trainer:
        return Trainer(graphs, real, recipe, runs, seed, target)

    found = tried.explore(trainer(small), trials, sampler, seed, progress)
    # A new trainer for every search, so that the seconds of all have the same parts.
    whole = partial(trainer, view.training())
    size = (small.num_nodes, small.stored_bytes)
    decided = tried.decide(SMALL, size, found, whole, progress)
    rankings = {SMALL: replace(decided, condense_seconds=condense_seconds(small))}
    if compare:
        visible = view.condensing().visible
        subsets = random_subsets(small, visible, seed, runs)
        targets = [one.target for one in subsets]
        drawn = tried.train(
            trainer(*targets[: len({id(one) for one in targets})]), RANDOM, progress
        )
        size = (int(targets[0].nodes.numel()), subsets[0].size.total)
        rankings[RANDOM] = tried.decide(RANDOM, size, drawn, whole, progress)
        everything = tried.train(whole(), WHOLE, progress)
        size = (visible.num_nodes, view.stored_parts.total)
        rankings[WHOLE] = tried.decide(WHOLE, size, everything, None, progress)
        reference = rankings[WHOLE].validation
        for name, one in rankings.items():
            tau, interval = rank_correlation(one.validation, reference, seed)
            regret = max(reference) - reference[one.winner]
            rankings[name] = replace(one, tau=tau, tau_interval=interval, regret=regret)
    return SearchResult(
        dataset=real.name,
        configurations=tuple(tried.known),
        rankings=rankings,
        runs=runs,
        recipe={"epochs": recipe.epochs, "validate_every": recipe.validate_every},
        sampler=sampler,
        seed=seed,
        device=target.type,
        machine=f"{machine_name(target)}, torch {torch.__version__}",
        leaks_test_labels=small.leaks_test_labels,
    )


@dataclass(eq=False)
class _Configurations:
    """The configurations of a search, trained on one graph after the other."""

    architectures: Architectures
    graph: Graph
    finalists: int
    known: list[dict[str, Any]] = field(default_factory=list)

    def _trained(self, trainer: Trainer, place: int, progress: Progress) -> Trained:
        values = self.known[place]
        return trainer(self.architectures.model(values, self.graph), values, progress)

    def explore(
        self, trainer: Trainer, trials: int, how: str, seed: int, progress: Progress
    ) -> list[Trained]:
        """Suggest configurations and train them."""
        found: list[Trained] = []
        study = import_optuna().create_study(direction="maximize") if how == "tpe" else None
        for place in range(trials):
            progress("configurations", place, trials)
            if study is None:
                own = make_generator(seed, f"configuration {place}").initial_seed()
                trial: Any = Suggestions({}, np.random.default_rng(own))
            else:
                study.sampler = sampler(seed, place)
                trial = study.ask()
            self.known.append(self.architectures.suggest(trial))
            self._append(found, trainer)
            if study is not None:
                study.tell(trial, found[-1].validation)
        progress("configurations", trials, trials)
        return found

    def train(self, trainer: Trainer, where: str, progress: Progress) -> list[Trained]:
        """Train the known configurations."""
        found: list[Trained] = []
        show, count = prefixed(progress, where), len(self.known)
        for place in range(count):
            show("configurations", place, count)
            self._append(found, trainer)
        show("configurations", count, count)
        return found

    def _append(self, found: list[Trained], trainer: Trainer) -> None:
        """Train the next configuration; a repeated one has the score of the first."""
        place = len(found)
        first = self.known.index(self.known[place])
        if first < place:
            found.append(replace(found[first], seconds=0.0, operations=0.0))
        else:
            found.append(self._trained(trainer, place, silent))
        # Only the networks of the best are kept.
        best = max(range(len(found)), key=lambda i: found[i].validation)
        found[:] = [one if i == best else replace(one, test=None) for i, one in enumerate(found)]

    def decide(
        self,
        trained_on: str,
        size: tuple[int, int],
        found: Sequence[Trained],
        whole: Callable[[], Trainer] | None,
        progress: Progress,
    ) -> Ranking:
        """Train the best configurations on the whole graph, and test the one that validates best."""
        ranked = sorted(range(len(found)), key=lambda place: -found[place].validation)
        different = [i for i in ranked if self.known.index(self.known[i]) == i]
        final = {different[0]: found[different[0]]}
        seconds = operations = 0.0
        if whole is not None:
            trainer, show = whole(), prefixed(progress, "finalist")
            best = different[: self.finalists]
            final = {place: self._trained(trainer, place, show) for place in best}
            seconds = sum(one.seconds for one in final.values())
            operations = sum(one.operations for one in final.values())
        winner = max(final, key=lambda place: final[place].validation)
        test = final[winner].test if self.graph.test.numel() else None
        return Ranking(
            trained_on,
            *size,
            tuple(one.validation for one in found),
            tuple(one.seconds for one in found),
            tuple(one.operations for one in found),
            {place: one.validation for place, one in final.items()},
            seconds,
            operations,
            winner,
            None if test is None else test(),
        )
