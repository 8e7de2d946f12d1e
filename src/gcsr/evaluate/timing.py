"""Seconds that training takes, for several graphs side by side."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace

from gcsr.evaluate.trial import Batch, Trial
from gcsr.parallel import single_threaded
from gcsr.progress import Progress, silent
from gcsr.training import TrainingRecipe

ROUNDS = 3
# What takes longer than this, all repetitions together, is not repeated again.
LONG_SECONDS = 10.0
# Enough for a CUDA device to record an epoch.
WARM_UP = 25
STAGE = "measuring time"


def training_seconds(
    trial: Trial,
    batches: Mapping[str, Batch],
    recipes: Mapping[str, TrainingRecipe],
    progress: Progress,
) -> dict[tuple[str, str], float]:
    """Median seconds to train one network, by graph and recipe.

    Every training is warmed up, then they take turns, so that whatever else the machine does meets all
    of them. On a CPU a network is trained on one thread. What is computed once per graph, whatever
    the number of networks, is not counted.
    """
    cases = [(graph, recipe) for recipe in recipes for graph in batches]
    seconds: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    steps = len(cases) * (ROUNDS + 1)
    with single_threaded():
        for done, (graph, recipe) in enumerate(cases):
            short = min(WARM_UP, recipes[recipe].epochs)
            _timed(trial, batches[graph], replace(recipes[recipe], epochs=short))
            progress(STAGE, done, steps)
        for turn in range(1, ROUNDS + 1):
            for done, case in enumerate(cases):
                if sum(seconds[case]) < LONG_SECONDS:
                    graph, recipe = case
                    seconds[case].append(_timed(trial, batches[graph], recipes[recipe]))
                progress(STAGE, turn * len(cases) + done, steps)
    progress(STAGE, steps, steps)
    return {case: statistics.median(measured) for case, measured in seconds.items()}


def _timed(trial: Trial, batch: Batch, recipe: TrainingRecipe) -> float:
    began = time.perf_counter()
    fitted = trial.train(replace(batch, networks=range(1)), recipe, silent)
    fitted.validation.cpu()  # waits for the device
    return time.perf_counter() - began
