"""Condensation methods, one short file each."""

from gcsr.condense.methods.coarsening import Coarsening
from gcsr.condense.methods.gcsr import GCSR
from gcsr.condense.methods.herding import Herding
from gcsr.condense.methods.kcenter import KCenter
from gcsr.condense.methods.mtt import MTT
from gcsr.condense.methods.random import Random
from gcsr.condense.methods.sfgc import SFGC

__all__ = ["GCSR", "MTT", "SFGC", "Coarsening", "Herding", "KCenter", "Random"]
