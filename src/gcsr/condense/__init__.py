"""From a view of the real graph to a condensed one."""

from gcsr.condense.condenser import Condenser
from gcsr.condense.methods import (
    DCG,
    GCSR,
    MTT,
    SFGC,
    SGDD,
    Automatic,
    Bilevel,
    Clusters,
    Coarsening,
    GCond,
    GCondX,
    Herding,
    KCenter,
    Random,
)
from gcsr.condense.presets import PRESETS, paper_settings, preset_settings
from gcsr.condense.registry import build, method, methods, setting_name

__all__ = [
    "DCG",
    "GCSR",
    "MTT",
    "PRESETS",
    "SFGC",
    "SGDD",
    "Automatic",
    "Bilevel",
    "Clusters",
    "Coarsening",
    "Condenser",
    "GCond",
    "GCondX",
    "Herding",
    "KCenter",
    "Random",
    "build",
    "method",
    "methods",
    "paper_settings",
    "preset_settings",
    "setting_name",
]
