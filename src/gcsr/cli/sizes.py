"""Numbers of bytes as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

from gcsr.errors import InputError

UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**i for i, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**i for i, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?(?:e\+?\d{1,2})?)\s*([kmgt]?i?b)?", re.ASCII)


def parse_bytes(option: str, text: str) -> int:
    """``500MB``, ``2GiB``, ``1e9`` or plain bytes; anything else is one clear sentence."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is not None and (match[2] or "") in UNITS:
        size = Decimal(match[1]) * UNITS[match[2] or ""]
        # Half a byte is a forgotten unit.
        if (match[2] or size == int(size)) and size < 2**63:
            return int(size)
    raise InputError(
        f"{option}: {text!r} is not accepted; a size such as 500MB, 2GiB or 1e9 (bytes) is."
    )


def expert_bounds(memory: str | None, disk: str | None) -> dict[str, int]:
    """What ``--expert-memory`` and ``--expert-disk`` say, by the names of the settings they bound."""
    given = {"expert_memory": memory, "expert_disk": disk}
    return {
        key: parse_bytes(f"--{key.replace('_', '-')}", text)
        for key, text in given.items()
        if text is not None
    }
