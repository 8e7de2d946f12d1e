"""Work on graphs that do not fit into memory, by blocks of rows: the same bytes as in memory."""

from gcsr.blocks.costs import Estimate, Work, estimate
from gcsr.blocks.hops import Propagated
from gcsr.blocks.predict import accuracy_in_blocks
from gcsr.blocks.prepare import prepare_on, require_blocks
from gcsr.blocks.prior import ClassesInBlocks, class_correlation_in_blocks
from gcsr.blocks.spread import propagated_by

__all__ = [
    "ClassesInBlocks",
    "Estimate",
    "Propagated",
    "Work",
    "accuracy_in_blocks",
    "class_correlation_in_blocks",
    "estimate",
    "prepare_on",
    "propagated_by",
    "require_blocks",
]
