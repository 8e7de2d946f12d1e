"""What a condensed graph discloses: membership inference, and rows that are near real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gcsr.analysis.nearest import nearest_rows, sample_nodes
from gcsr.data.condensed import CondensedGraph
from gcsr.data.features import select_rows, take_rows
from gcsr.data.graph import Graph
from gcsr.data.views import Target, View
from gcsr.evaluation.cost import RANDOM, SMALL, WHOLE, random_batches, random_subsets
from gcsr.evaluation.intervals import Accuracy
from gcsr.evaluation.origin import require_origin
from gcsr.evaluation.trial import Measured, NetworkTester
from gcsr.training.fit import Fitted, TrainingRecipe
from gcsr.utils.devices import make_generator
from gcsr.utils.errors import require, require_integer
from gcsr.utils.progress import Progress, ProgressOption, prefixed, shows_progress
from gcsr.utils.safe_io import known

STATEMENT = (
    "Nothing is promised: a condensed graph is not anonymous, and condensing is not differentially"
    " private. Its features and labels are computed from real ones; a method that selects nodes copies"
    " them. An attack that fails here says nothing about a stronger one."
)
NAMES = {WHOLE: "the whole graph", SMALL: "this file", RANDOM: "a random subset of its bytes"}
COLUMNS = (
    "AUC, loss, %",
    "AUC, likelihood ratio, %",
    "caught, loss, %",
    "caught, likelihood ratio, %",
    "accuracy gap, points",
)
# Members and others that are attacked, rows that are compared, and false positives that are allowed.
MOST_ATTACKED, MOST_COMPARED, FALSE_POSITIVES = 2000, 5000, 0.01


@dataclass(frozen=True)
class Attack:
    """How well an attacker distinguishes training nodes from test nodes, in percent over runs.

    ``auc`` is the area under the ROC curve (50: guessing), ``caught`` the share of training nodes that
    are recognized while 1 % of the test nodes are mistaken for one. Prefixes: ``loss`` thresholds the
    loss; ``ratio`` is the likelihood-ratio attack. ``gap`` is the accuracy on the attacked training
    nodes less that on the attacked test nodes.
    """

    loss_auc: Accuracy
    loss_caught: Accuracy
    ratio_auc: Accuracy
    ratio_caught: Accuracy
    gap: Accuracy


@dataclass(frozen=True)
class Memorization:
    """Euclidean distances of condensed rows of features to their nearest real rows.

    Attributes:
        copies: condensed rows that equal a training row.
        rows: condensed rows.
        to_training, to_held_out: median distance to equally many training and test rows.
        held_out_to_training: median distance of test rows to these training rows.
        nearer_to_training: percent of condensed rows that are nearer to a training row than to a test
            row; ties count half. 50 is what rows that memorize nothing of the training nodes have.
        compared: rows of each kind.
    """

    copies: int
    rows: int
    to_training: float
    to_held_out: float
    held_out_to_training: float
    nearer_to_training: float
    compared: int


@dataclass(frozen=True)
class Privacy(Measured):
    """Attacks on networks trained on the whole graph, on the condensed one and on a random subset."""

    method: str | None
    nodes: int
    shadows: int
    attacked: int
    attacks: dict[str, Attack]
    memorization: Memorization
    statement: str

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was measured, for a card."""
        found, near = self.attacks[SMALL], self.memorization
        return (
            f"membership inference against networks trained on this graph: AUC {found.loss_auc} (loss)"
            f" and {found.ratio_auc} (likelihood ratio, {self.shadows} shadow networks); guessing has"
            f" 50 %, the whole graph {self.attacks[WHOLE].ratio_auc}",
            f"{near.copies:,} of {near.rows:,} condensed rows equal a training row;"
            f" {near.nearer_to_training:.0f} % are nearer to a training row than to one of equally"
            " many test rows (50 %: nothing is memorized)",
        )

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A table: what was trained on, and the numbers of :data:`COLUMNS`."""
        found = []
        for name, a in self.attacks.items():
            numbers = (a.loss_auc, a.ratio_auc, a.loss_caught, a.ratio_caught, a.gap)
            found.append((NAMES[name], *(str(one).removesuffix(" %") for one in numbers)))
        return found

    @property
    def distances(self) -> str:
        """The memorization in a sentence."""
        near = self.memorization
        return (
            f"median distance of condensed rows to {near.compared:,} training rows"
            f" {near.to_training:.3g}, to as many test rows {near.to_held_out:.3g}; of test rows to"
            f" the training rows {near.held_out_to_training:.3g}"
        )


@shows_progress
def privacy(
    small: CondensedGraph,
    graph: object,
    *,
    model: str = "gcn",
    runs: int = 3,
    shadows: int = 16,
    recipe: TrainingRecipe | None = None,
    hidden_channels: int = 256,
    seed: int = 0,
    device: str | torch.device = "auto",
    check_origin: bool = True,
    progress: ProgressOption = None,
) -> Privacy:
    r"""Attack networks trained on the whole graph, on the condensed one and on a random subset.

    The question is whether a node was a training node. Members are training nodes, the others as many
    test nodes of the same classes. The loss attack (Yeom et al., 2018) ranks nodes by the probability
    :math:`p` of their class. The likelihood-ratio attack (Carlini et al., 2022) ranks them by

    .. math:: \log \frac{N(\phi; \mu_{in}, \sigma_{in})}{N(\phi; \mu_{out}, \sigma_{out})},
        \qquad \phi = \log \frac{p}{1 - p},

    with each node's mean over shadow networks that were, or were not, trained on it, and a variance
    common to all nodes. Shadow networks are trained on the whole graph with random halves of the
    attacked nodes as training nodes; an attacker who condenses for every shadow may do better.

    Args:
        small: the condensed graph.
        graph: the real graph that it was made from; its test labels are read.
        model: the network, by name.
        runs: networks that are attacked, per graph.
        shadows: shadow networks, at least 4.
        recipe: how all of them are trained; by default the paper's protocol.
        hidden_channels, seed, device, check_origin, progress: as in :func:`gcsr.evaluate`.
    """
    real = require_origin([small], graph, check_origin)
    require_integer("shadows", shadows, 4)
    tester = NetworkTester.of("privacy", real, model, runs, recipe, hidden_channels, seed, device)
    members, others = attacked_nodes(real, seed)
    view = tester.view
    asked = (_part(view.training(), members), _part(view.test(), others))
    own = shadow_scores(members, others, shadows, tester, progress)

    subsets = random_subsets(small, view.condensing().visible, seed, runs)
    groups = {
        WHOLE: tester.real_batches(view.training(), range(runs)),
        SMALL: tester.condensed_batches([small], runs),
        RANDOM: random_batches(tester, subsets),
    }
    attacks = {}
    for name, batches in groups.items():
        fitted = tester.fitted(batches, prefixed(progress, name))
        attacks[name] = _attack(*_scores(tester, fitted, asked), *own)
    return Privacy(
        method=known(small.provenance, "method", str),
        nodes=small.num_nodes,
        shadows=shadows,
        attacked=members.numel(),
        attacks=attacks,
        memorization=memorization(small, view, seed, progress),
        statement=STATEMENT,
        **tester.described(model, runs),
    )


def attacked_nodes(graph: Graph, seed: int) -> tuple[Tensor, Tensor]:
    """Places in the training and in the test set: equally many of every class."""
    generator = make_generator(seed, "attacked nodes")
    parts: tuple[list[Tensor], list[Tensor]] = ([], [])
    sets = graph.train, graph.test
    orders = [torch.randperm(nodes.numel(), generator=generator) for nodes in sets]
    share = min(1.0, MOST_ATTACKED / max(1, graph.train.numel()))
    for c in range(graph.num_classes):
        own = [order[graph.y[nodes[order]] == c] for order, nodes in zip(orders, sets, strict=True)]
        count = min(math.ceil(share * own[0].numel()), own[1].numel())
        for part, places in zip(parts, own, strict=True):
            part.append(places[:count])
    members, others = (torch.cat(part).sort().values for part in parts)
    require(
        members.numel() > 1,
        "graph must have two training and two test nodes of the same classes to attack, got"
        f" {members.numel()} of each.",
    )
    return members, others


def _part(target: Target, places: Tensor) -> Target:
    return replace(target, nodes=target.nodes[places], labels=target.labels[places])


def _scores(
    tester: NetworkTester, fitted: Sequence[Fitted], asked: Sequence[Target]
) -> tuple[Tensor, Tensor]:
    """For every network: phi of the nodes of all targets, and whether each is predicted rightly."""
    phi, right = [], []
    for target in asked:
        labels = target.labels.to(tester.device)
        logits = torch.cat(list(tester.logits(fitted, target))).double()
        index = labels.expand(logits.shape[0], -1).unsqueeze(-1)
        # log p - log(1 - p), without the rounding of 1 - p.
        others = logits.scatter(-1, index, -torch.inf).logsumexp(-1)
        phi.append(logits.gather(-1, index).squeeze(-1) - others)
        right.append(logits.argmax(-1) == labels)
    return torch.cat(phi, 1).nan_to_num().cpu(), torch.cat(right, 1).cpu()


def shadow_scores(
    members: Tensor, others: Tensor, shadows: int, tester: NetworkTester, progress: Progress
) -> tuple[Tensor, Tensor]:
    """Phi of every attacked node for every shadow network, and which of them it was trained on."""
    graph = tester.graph
    ids = torch.cat([graph.train[members], graph.test[others]])
    generator = make_generator(tester.seed, "shadow networks")
    phi, inside = [], []
    for shadow in range(shadows):
        # Pairs of complements, so that every node is in half of the shadows.
        if shadow % 2 == 0:
            half = torch.zeros(ids.numel(), dtype=torch.bool)
            half[torch.randperm(ids.numel(), generator=generator)[: ids.numel() // 2]] = True
        else:
            half = ~half
        # A graph keeps the nodes of a split sorted by their number.
        parts = [which.nonzero()[:, 0] for which in (half, ~half)]
        order = torch.cat([places[ids[places].argsort()] for places in parts])
        known = int(half.sum())
        part = replace(graph, train=ids[order[:known]], test=ids[order[known:]])
        own = NetworkTester(tester.model, part, tester.device, tester.recipe, tester.seed)
        training = own.view.training()
        batches = own.real_batches(training, range(shadow, shadow + 1))
        show = prefixed(progress, f"shadow network {shadow + 1} of {shadows}")
        found, _ = _scores(own, own.fitted(batches, show), (training, own.tested))
        phi.append(torch.empty_like(found[0]).scatter(0, order, found[0]))
        inside.append(half)
    return torch.stack(phi), torch.stack(inside)


def likelihood_ratio(phi: Tensor, shadows: Tensor, inside: Tensor) -> Tensor:
    """The log-likelihood ratio of ``(networks, nodes)`` values, from those of shadow networks."""
    scores = []
    for which, sign in ((inside, 1.0), (~inside, -1.0)):
        count = which.sum(0).clamp_min(1)
        mean = (shadows * which).sum(0) / count
        spread = ((shadows - mean) ** 2 * which).sum() / max(1, int(which.sum()) - mean.numel())
        variance = spread.clamp_min(1e-12)
        scores.append(-sign * ((phi - mean) ** 2 / (2 * variance) + 0.5 * variance.log()))
    return scores[0] + scores[1]


def _attack(phi: Tensor, right: Tensor, shadows: Tensor, inside: Tensor) -> Attack:
    half = phi.shape[1] // 2
    found = {}
    for name, scores in (("loss", phi), ("ratio", likelihood_ratio(phi, shadows, inside))):
        both = [auc_and_caught(one[:half].numpy(), one[half:].numpy()) for one in scores]
        for what, values in zip(("auc", "caught"), zip(*both, strict=True), strict=True):
            found[f"{name}_{what}"] = Accuracy.of([100 * value for value in values])
    gaps = right[:, :half].double().mean(1) - right[:, half:].double().mean(1)
    return Attack(**found, gap=Accuracy.of((100 * gaps).tolist()))


def auc_and_caught(members: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve, and the true positive rate at the allowed false positive rate."""
    from scipy.stats import mannwhitneyu  # noqa: PLC0415 - takes a moment to import

    auc = mannwhitneyu(members, others).statistic / (members.size * others.size)
    allowed = int(FALSE_POSITIVES * others.size)
    threshold = np.sort(others)[::-1][allowed]
    return float(auc), float((members > threshold).mean())


def memorization(small: CondensedGraph, view: View, seed: int, progress: Progress) -> Memorization:
    """Compare condensed rows with training rows and with equally many test rows."""
    training, test = view.training(), view.test()
    count = min(training.nodes.numel(), test.nodes.numel(), MOST_COMPARED)
    train_rows, test_rows = (
        select_rows(one.x, one.nodes[sample_nodes(one.nodes.numel(), count, seed)])
        for one in (training, test)
    )
    rows = small.x.detach().cpu().float()
    every = select_rows(training.x, training.nodes)
    places, _ = nearest_rows(rows, every, progress=progress)
    nearest = take_rows(every, places[:, 0])
    # A file in half precision holds rounded copies.
    nearest = nearest.half().float() if small.half else nearest
    _, near = nearest_rows(rows, train_rows)
    _, far = nearest_rows(rows, test_rows)
    queries = take_rows(test_rows, sample_nodes(count, small.num_nodes, seed))
    _, baseline = nearest_rows(queries, train_rows)
    nearer = (near < far).double() + 0.5 * (near == far).double()
    return Memorization(
        copies=int((rows == nearest).all(1).sum()),
        rows=small.num_nodes,
        to_training=float(near.median()),
        to_held_out=float(far.median()),
        held_out_to_training=float(baseline.median()),
        nearer_to_training=100 * float(nearer.mean()),
        compared=count,
    )
