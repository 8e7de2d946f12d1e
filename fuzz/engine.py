"""The fuzzer's own process: libFuzzer (through atheris) changes inputs and watches the coverage."""

from __future__ import annotations

import contextlib
import json
import logging
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

import atheris

LARGEST_INPUT = 1 << 18
_TOLD_EVERY = 1.0


def fuzz(name: str, seconds: int, corpus: Path, told: Path) -> None:
    """Fuzz one target for some seconds; ``told`` says what its inputs cost. Does not return."""
    import torch  # noqa: F401, PLC0415 - before instrumenting, so that it stays as fast as it is

    with atheris.instrument_imports(include=["gcsr"], enable_loader_override=False):
        from fuzz.guard import MOST_SECONDS, Guard, limit_memory  # noqa: PLC0415
        from fuzz.target import survives  # noqa: PLC0415
        from fuzz.targets import TARGETS  # noqa: PLC0415
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = corpus.with_name("words.txt")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words), encoding="ascii")
    with contextlib.redirect_stderr(None):
        for seed in target.seeds():  # what is imported on demand is nobody's memory
            survives(target, seed)
    limit_memory()
    guard = Guard(target)
    last = 0.0

    def one(data: bytes) -> None:
        nonlocal last
        try:
            guard(data)
        except Exception:
            traceback.print_exc()
            raise
        if time.monotonic() - last > _TOLD_EVERY:
            last = time.monotonic()
            costs = {"accepted": guard.accepted, "executions": guard.executions}
            costs |= {"slowest_seconds": guard.slowest, "largest_bytes": guard.largest}
            told.write_text(json.dumps(costs), encoding="ascii")

    def changed(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)  # noqa: S311
        if target.container is not None and rng.random() < 0.8:
            with contextlib.suppress(Exception):
                made = target.container.changed(
                    data, lambda part: atheris.Mutate(part, len(part) + 64), rng
                )
                if len(made) <= most:
                    return made
        return bytes(atheris.Mutate(data, most))

    options = [
        f"-max_total_time={seconds}",
        f"-timeout={MOST_SECONDS}",
        f"-max_len={LARGEST_INPUT}",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={corpus.parent}/",
        *([f"-dict={words}"] if target.words else []),
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=changed)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
