"""Search for an architecture on a condensed graph, then train the winner on the whole one.

    python examples/architecture_search.py                          # digits, needs no download
    python examples/architecture_search.py --data cora --nodes 70 --iterations 1000

Five architectures are trained on the small graph and ranked by validation accuracy. To see how far that
ranking can be trusted, all five are also trained on the whole graph, which a real search would not do,
and the rank correlation (Spearman) of both is printed. Test accuracy is looked at once, for the winner.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr
from sklearn.base import clone

import gcsr

ARCHITECTURES = ("mlp", "sgc", "gcn", "appnp", "cheby")
# What the command line does not change is cloned from here.
CONDENSER = gcsr.GCSR(nodes=50, alpha=1.0, beta=1.0)


@dataclass(frozen=True)
class Found:
    """What the search came to."""

    small: dict[str, float]
    whole: dict[str, float]
    winner: str
    rank_correlation: float
    test_accuracy: float


def main(argv: Sequence[str] | None = None) -> Found:
    """Search, compare, and train the winner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="digits", help="a dataset's name or a graph file")
    parser.add_argument("--nodes", type=int, default=50, help="condensed nodes")
    parser.add_argument("--iterations", type=int, default=200, help="of condensing")
    parser.add_argument("--experts", type=int, default=10, help="of condensing")
    parser.add_argument("--runs", type=int, default=2, help="networks per architecture")
    parser.add_argument("--epochs", type=int, default=150, help="per network")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    graph = gcsr.load(args.data)
    how = {
        "runs": args.runs,
        "recipe": gcsr.TrainingRecipe(epochs=args.epochs),
        "seed": args.seed,
    }

    began = time.perf_counter()
    condenser = clone(CONDENSER)
    condenser.set_params(nodes=args.nodes, iterations=args.iterations, experts=args.experts)
    small = condenser.fit(graph, seed=args.seed).condensed_
    condensing = time.perf_counter() - began
    began = time.perf_counter()
    on_small = {
        name: validation(gcsr.evaluate(small, graph, model=name, **how)) for name in ARCHITECTURES
    }
    searching = time.perf_counter() - began
    winner = max(on_small, key=lambda name: on_small[name])

    began = time.perf_counter()
    whole = {name: gcsr.evaluate_full(graph, model=name, **how) for name in ARCHITECTURES}
    searching_whole = time.perf_counter() - began
    on_whole = {name: validation(result) for name, result in whole.items()}
    correlation = float(
        spearmanr([on_small[n] for n in ARCHITECTURES], [on_whole[n] for n in ARCHITECTURES])[0]
    )

    print(f"{graph.name}: validation accuracy in percent, mean of {args.runs} networks")
    print(f"{'architecture':<14}{'on ' + str(small.num_nodes) + ' nodes':>14}{'on all':>10}")
    for name in sorted(ARCHITECTURES, key=lambda name: -on_small[name]):
        print(f"{name:<14}{on_small[name]:>14.1f}{on_whole[name]:>10.1f}")
    print(f"rank correlation between the two: {correlation:.2f} (of {len(ARCHITECTURES)} ranks)")
    best = max(on_whole.values())
    print(
        f"winner on the small graph: {winner}; on the whole graph it validates"
        f" {best - on_whole[winner]:.1f} points below the best of the five"
    )
    print(
        f"seconds: {condensing:.1f} to condense, {searching:.1f} to search on the small graph,"
        f" {searching_whole:.1f} on the whole one"
    )
    # Only now, and only for the winner.
    print(f"{winner} trained on the whole graph, test accuracy: {whole[winner].mean:.1f} %")
    return Found(on_small, on_whole, winner, correlation, whole[winner].mean)


def validation(result: gcsr.Evaluation) -> float:
    """What a search may look at."""
    return float(np.mean(result.validation))


if __name__ == "__main__":
    main()
