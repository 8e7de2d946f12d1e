"""Devices, their memory, CUDA graphs, and random numbers that do not depend on the device."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import logging
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

from gcsr.utils.errors import InputError, require
from gcsr.utils.formatting import parse_bytes

logger = logging.getLogger(__name__)
# Assumed where the system does not report its memory.
UNKNOWN_MEMORY = 2**31
# Bytes (24GB, 2GiB) of a GPU that may be taken.
DEVICE_MEMORY_VARIABLE = "GCSR_DEVICE_MEMORY"
# The share of each CUDA device's memory that this process may take, where others use it as well.
_SHARES: dict[int, float] = {}
T = TypeVar("T")


def pick_device(name: str | torch.device = "auto") -> torch.device:
    """``auto`` is CUDA where there is one; anything else must exist.

    Of CUDA's memory this process takes at most what ``GCSR_DEVICE_MEMORY`` says.
    """
    available = torch.cuda.is_available()
    try:
        device = torch.device(("cuda" if available else "cpu") if name == "auto" else name)
    except (RuntimeError, TypeError):
        raise InputError(f"device must be auto, cpu or cuda, got {name!r}.") from None
    if not isinstance(name, torch.device):
        known = device.type in ("cpu", "cuda")
        require(known, f"device must be auto, cpu or cuda, got {name!r}.")
        exists = device.type == "cpu" or available
        require(exists, f"device must be auto or cpu without a CUDA device, got {name!r}.")
    if device.type == "cuda" and DEVICE_MEMORY_VARIABLE in os.environ:
        total = torch.cuda.mem_get_info(device)[1]
        share = min(1.0, device_memory_bytes(device) / total)
        torch.cuda.set_per_process_memory_fraction(share, device.index)
        _SHARES[device.index or 0] = share
    return device


def arithmetic(device: torch.device) -> list[str]:
    """What decides the last bit of a product; folders may be shared between machines."""
    if device.type == "cuda":
        return [device.type, torch.cuda.get_device_name(device)]
    return [device.type, platform.machine(), torch.backends.cpu.get_cpu_capability()]


def machine_name(device: torch.device) -> str:
    """The name of the GPU, or of the system and the processor's architecture."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.system()} {platform.machine()}"


def make_generator(seed: int, purpose: str) -> torch.Generator:
    """A CPU generator for one purpose.

    Streams of different purposes are independent, so that drawing more numbers for one (another
    schedule, another initialization) never changes the other. Numbers are always drawn on the CPU:
    the same seed means the same draw on every device.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


def peak_memory_bytes(device: torch.device) -> int | None:
    """Largest memory so far: of the CUDA allocator since it was reset, or of this process.

    A process's peak is that of all it has done: after a second condensation in one process it is the
    larger of the two, and of what came before. It is not reset, because others may be reading it.
    ``None`` where the system does not report it (Windows).
    """
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    peak = _proc_bytes("/proc/self/status", "VmHWM")
    if peak is not None:
        return peak
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    # On Linux this would include the peak of the process that started this one.
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(largest if sys.platform == "darwin" else largest * 1024)


def within_memory(work: Callable[[int], T], size: int, what: str) -> T:
    """``work(size)``, and once more with half the size where the device's memory does not suffice.

    If that does not suffice either, it raises :class:`InputError`. ``what`` names the items of which
    ``size`` are processed at a time.
    """
    least = max(1, size // 2)
    for most in sorted({size, least}, reverse=True):
        if most < size:
            logger.warning(
                "memory of the device: %d %s at a time were too many; trying %d.", size, what, most
            )
            torch.cuda.empty_cache()
        # The error is gone before the second time: it keeps what it saw alive.
        with suppress(torch.OutOfMemoryError):
            return work(most)
    raise InputError(
        f"device must have memory for {what}, got one on which {least} at a time are too many; fewer"
        " nodes, a lower expert_memory or another device (cpu) need less of it."
    )


def share_device(device: torch.device, processes: int) -> None:
    """Let this process take only its share of the memory of a CUDA device."""
    if device.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.95 / processes, device.index)
        _SHARES[device.index or 0] = 0.95 / processes


def free_memory_bytes(device: torch.device) -> int:
    """Memory that can still be taken on the device."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        share = _SHARES.get(device.index or 0, 1.0)
        return int(min(free, share * total - torch.cuda.memory_allocated(device)))
    available = _proc_bytes("/proc/meminfo", "MemAvailable")
    if available is not None:
        return available
    if not hasattr(os, "sysconf"):
        return UNKNOWN_MEMORY
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def device_memory_bytes(device: torch.device) -> int:
    """Memory of a GPU that may be used: all of it, or as many bytes as ``GCSR_DEVICE_MEMORY`` says."""
    bound = os.environ.get(DEVICE_MEMORY_VARIABLE)
    if bound is not None:
        return parse_bytes(DEVICE_MEMORY_VARIABLE, bound)
    return int(torch.cuda.mem_get_info(device)[1])


def release_freed_memory() -> None:
    """Give what was freed back to the system; glibc keeps it for every thread that once used it."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def _proc_bytes(path: str, field: str) -> int | None:
    """A field in kB of a file of Linux's /proc; ``None`` where it cannot be read."""
    try:
        lines = Path(path).read_text(encoding="ascii").splitlines()
        return int(dict(line.split(":", 1) for line in lines)[field].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


# -- CUDA graphs: work that is recorded once and replayed without the host -----------------------------
#
# Small kernels take less time than launching them one by one. What is recorded must read and write the
# same tensors every time and must never wait for the device.


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
