"""Runs that were ended continue where they were, with the same bytes."""

from gcsr.checkpoint.checkpoint import Checkpoint
from gcsr.checkpoint.journal import Journal, Part, opened
from gcsr.checkpoint.packing import State

__all__ = ["Checkpoint", "Journal", "Part", "State", "opened"]
