"""From a view of the real graph to a condensed one."""

from gcsr.condense.condenser import Condenser
from gcsr.condense.methods import GCSR, MTT, SFGC, Coarsening, Herding, KCenter, Random
from gcsr.condense.presets import PRESETS, paper_settings, preset_settings
from gcsr.condense.registry import build, method, methods, setting_name

__all__ = [
    "GCSR",
    "MTT",
    "PRESETS",
    "SFGC",
    "Coarsening",
    "Condenser",
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
