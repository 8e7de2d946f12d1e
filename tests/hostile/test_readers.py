"""Properties of every reader: any bytes are accepted or refused in one sentence, and nothing else.

The same targets that the fuzzer drives by coverage (``python -m fuzz``), here for a moment each.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.containers import Change
from fuzz.target import survives
from fuzz.targets import TARGETS

# Milliseconds an input; the others take a tenth of a second.
QUICK = [name for name in TARGETS if name not in ("study", "report", "rows-page", "command-line")]
EVERY = [
    pytest.param(name, marks=pytest.mark.needs("optuna")) if name == "study" else name
    for name in TARGETS
]
FEW = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("name", EVERY)
def test_seeds_are_accepted(name):
    """Otherwise the fuzzer would begin behind the first check."""
    target = TARGETS[name]
    accepted = [survives(target, seed) for seed in target.seeds()]
    assert any(accepted) if name in ("command-line", "space") else all(accepted)


@pytest.mark.parametrize("name", QUICK)
def test_any_bytes(name):
    @FEW
    @given(st.binary(max_size=300))
    def holds(data: bytes) -> None:
        survives(TARGETS[name], data)

    holds()


@pytest.mark.parametrize("name", QUICK)
def test_any_cut(name):
    target = TARGETS[name]
    seed = target.seeds()[0]
    for place in sorted({len(seed) * i // 24 for i in range(24)} | {len(seed) - 1}):
        survives(target, seed[:place])


@pytest.mark.parametrize("name", QUICK)
def test_any_bit(name):
    target = TARGETS[name]

    @FEW
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        seed = bytearray(data.draw(st.sampled_from(target.seeds())))
        for place in data.draw(st.lists(st.integers(0, 8 * len(seed) - 1), min_size=1, max_size=4)):
            seed[place // 8] ^= 1 << place % 8
        survives(target, bytes(seed))

    holds()


@pytest.mark.parametrize("name", [name for name in QUICK if TARGETS[name].container])
def test_a_changed_part_in_a_sound_whole(name):
    target = TARGETS[name]

    @FEW
    @given(st.integers(0, 2**32), st.binary(min_size=1, max_size=8))
    def holds(seed: int, noise: bytes) -> None:
        rng = random.Random(seed)
        data = rng.choice(target.seeds())
        survives(target, target.container.changed(data, _overwritten(noise, rng), rng))

    holds()


def _overwritten(noise: bytes, rng: random.Random) -> Change:
    def change(part: bytes) -> bytes:
        place = rng.randrange(len(part) + 1)
        return part[:place] + noise + part[place + len(noise) :]

    return change


def test_containers_keep_files_readable():
    """A change that changes nothing: what is put together again is what was taken apart."""
    for name in ("graph-npz", "condensed", "experts", "planetoid", "graphsaint", "ogb-archive"):
        target = TARGETS[name]
        data = target.seeds()[0]
        tries = [
            survives(target, target.container.changed(data, lambda part: part, random.Random(i)))
            for i in range(12)
        ]
        assert sum(tries) >= 6, name
