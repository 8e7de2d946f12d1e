"""Condensation methods, one short file each."""

from gcsr.condense.methods.auto import Automatic
from gcsr.condense.methods.bilevel import Bilevel
from gcsr.condense.methods.clusters import Clusters
from gcsr.condense.methods.coarsening import Coarsening
from gcsr.condense.methods.dcg import DCG
from gcsr.condense.methods.gcond import GCond
from gcsr.condense.methods.gcond_x import GCondX
from gcsr.condense.methods.gcsr import GCSR
from gcsr.condense.methods.herding import Herding
from gcsr.condense.methods.kcenter import KCenter
from gcsr.condense.methods.mtt import MTT
from gcsr.condense.methods.random import Random
from gcsr.condense.methods.sfgc import SFGC
from gcsr.condense.methods.sgdd import SGDD

__all__ = [
    "DCG",
    "GCSR",
    "MTT",
    "SFGC",
    "SGDD",
    "Automatic",
    "Bilevel",
    "Clusters",
    "Coarsening",
    "GCond",
    "GCondX",
    "Herding",
    "KCenter",
    "Random",
]
