"""Condensation methods, one short file each."""

from gcsr.condense.methods.dcg import DCG
from gcsr.condense.methods.gcond import GCond
from gcsr.condense.methods.gcond_x import GCondX
from gcsr.condense.methods.gcsr import GCSR
from gcsr.condense.methods.mtt import MTT
from gcsr.condense.methods.random import Random
from gcsr.condense.methods.sgdd import SGDD

__all__ = ["DCG", "GCSR", "MTT", "SGDD", "GCond", "GCondX", "Random"]
