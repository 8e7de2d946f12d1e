"""From a view of the real graph to a condensed one."""

from gcsr.condense.condenser import Condenser
from gcsr.condense.methods import DCG, GCSR, MTT, SGDD, GCond, GCondX, Random
from gcsr.condense.presets import PRESETS, paper_settings
from gcsr.condense.registry import build, method, methods, setting_name

__all__ = [
    "DCG",
    "GCSR",
    "MTT",
    "PRESETS",
    "SGDD",
    "Condenser",
    "GCond",
    "GCondX",
    "Random",
    "build",
    "method",
    "methods",
    "paper_settings",
    "setting_name",
]
