"""Every target by name; a new reader is one more entry in one of these modules."""

from __future__ import annotations

from fuzz.target import Target
from fuzz.targets import (
    caches,
    command_line,
    condensed,
    datasets,
    folders,
    graphs,
    settings,
    studies,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (graphs, folders, condensed, datasets, caches, studies, settings, command_line)
    for target in module.TARGETS
}
