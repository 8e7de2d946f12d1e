"""CUDA graphs: work that is recorded once and replayed without the host.

Small kernels take less time than launching them one by one. What is recorded must read and write the
same tensors every time and must never wait for the device.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Sequence

import torch

logger = logging.getLogger(__name__)


def warm_up(body: Callable[[], None], times: int = 2) -> None:
    """Run the work on a side stream: libraries choose kernels and take workspaces now."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(times):
            body()
    torch.cuda.current_stream().wait_stream(side)


def record(
    body: Callable[[], None], generators: Iterable[torch.Generator] = ()
) -> Callable[[], None]:
    """The work, recorded but not run; what it did before must be warm. ``body`` if that fails.

    A recorded graph has addresses, not tensors: the result keeps ``body``, and with it what it
    reads, alive. ``generators`` are those it draws from: every replay then draws anew.
    """
    graph, collects = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()  # freeing an older graph while one is recorded would break both
    try:
        for generator in generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            body()
    except RuntimeError as error:
        logger.debug("CUDA graph capture failed, running eagerly: %s", error)
        return body
    finally:
        if collects:
            gc.enable()

    def replay(_alive: object = body) -> None:
        graph.replay()

    return replay


def capture(body: Callable[[], None], buffers: Sequence[torch.Tensor]) -> Callable[[], None]:
    """The same after warming up. ``buffers`` are all tensors that the work changes."""
    before = tuple(buffer.clone() for buffer in buffers)
    for _ in range(2):
        warm_up(body, 1)
        for buffer, saved in zip(buffers, before, strict=True):
            buffer.copy_(saved)
    return record(body)
