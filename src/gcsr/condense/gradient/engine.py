"""The loop of gradient matching: epochs of outer steps, each epoch with a network of its own.

On CUDA the four kinds of steps (X' or generator, first of an epoch or not) are recorded as CUDA graphs
when they are first needed and replayed from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gcsr.capture import record, warm_up
from gcsr.condense.gradient.step import Step
from gcsr.condense.recovery import Recovery
from gcsr.devices import stream
from gcsr.errors import InputError
from gcsr.models import Params, init_batch
from gcsr.progress import Progress

# Of every PERIOD epochs the first STRUCTURAL move the generator, the others X'.
PERIOD, STRUCTURAL = 50, 10
# Epochs between two states that a run could go back to; copying one takes as long as a few steps.
REMEMBER_EVERY = 10


@dataclass(frozen=True)
class Schedule:
    """How long the loop is."""

    epochs: int
    outer: int

    @staticmethod
    def structural(epoch: int) -> bool:
        """Whether an epoch moves the generator."""
        return epoch % PERIOD < STRUCTURAL


def match_gradients(
    step: Step,
    schedule: Schedule,
    *,
    seeds: Sequence[int],
    progress: Progress,
    look: Callable[[int, Step], None] | None = None,
    look_at: Container[int] = (),
    recovery: Recovery | None = None,
) -> Tensor:
    """Run the loop in place; returns the mean matching loss of every epoch ``(epochs, graphs)``.

    ``look`` is called before the epochs ``look_at`` names and at the end. A graph whose loss is not
    finite goes back to the last good state with half of its rates; if that does not help it is an
    error. ``recovery`` knows where the run was when its process ended, and tells of what happened.
    """
    recovery = recovery or Recovery()
    losses = torch.zeros((schedule.epochs, len(seeds)), dtype=torch.float64)
    epoch, values = recovery.begin(step.buffers, losses)
    step.go_on(values, recovery)
    advance = Advance(step)
    while epoch < schedule.epochs:
        if look is not None and epoch in look_at:
            look(epoch, step)
        structural = step.structure is not None and schedule.structural(epoch)
        step.begin(epoch, fresh_networks(step, seeds, epoch), structural)
        for outer in range(schedule.outer):
            advance(structural=structural, train=outer > 0)
        losses[epoch] = step.loss.cpu() / schedule.outer
        bad = ~torch.isfinite(losses[epoch])
        epoch += 1
        remembered = epoch % REMEMBER_EVERY == 0 or epoch == schedule.epochs
        if remembered:
            bad |= ~torch.isfinite(step.x.flatten(1)).all(1).cpu()
        if not bool(bad.any()):
            if remembered:
                recovery.accept(epoch, step.buffers, losses, step.values)
            progress("condensing", epoch, schedule.epochs)
            continue
        back = recovery.retreat(epoch, bad, step.buffers, losses)
        if back is None:
            raise InputError(step.complaint.removesuffix(".") + recovery.saved_at + ".")
        epoch = back
        step.slow_down(recovery)
        advance = Advance(step)
    if look is not None:
        look(schedule.epochs, step)
    return losses


def fresh_networks(step: Step, seeds: Sequence[int], epoch: int) -> Params:
    """The network that every graph's epoch begins with."""
    generators = [stream(seed, f"theta of epoch {epoch}") for seed in seeds]
    features, classes = int(step.x.shape[-1]), int(step.classes.targets.shape[-1])
    return step.learner.params(init_batch(step.learner.model, features, classes, generators))


class Advance:
    """Runs a step the fastest way that works here."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._recorded: dict[tuple[bool, bool], Callable[[], None]] = {}

    def __call__(self, *, structural: bool, train: bool) -> None:
        """One step of that kind."""
        if not self._step.x.is_cuda or not self._step.capturable(structural):
            self._step(structural=structural, train=train)
            return
        kind = (structural, train)
        if kind not in self._recorded:
            self._recorded[kind] = self._record(structural, train)
        self._recorded[kind]()

    def _record(self, structural: bool, train: bool) -> Callable[[], None]:
        buffers = self._step.buffers
        before = tuple(buffer.clone() for buffer in buffers)

        def restore() -> None:
            for buffer, saved in zip(buffers, before, strict=True):
                buffer.copy_(saved)

        def body() -> None:
            self._step(structural=structural, train=train)

        for _ in range(2):
            warm_up(body, 1)
            restore()
        return record(body)
