"""The automatic mode: candidates, a judge that reads validation labels alone, and a race of them."""

from gcsr.condense.automatic.calibration import Calibration, calibrate
from gcsr.condense.automatic.candidates import Candidate
from gcsr.condense.automatic.judge import Judge, Mark
from gcsr.condense.automatic.opinion import Opinion, second_opinion
from gcsr.condense.automatic.parts import PARTS
from gcsr.condense.automatic.plan import Plan, plan_for
from gcsr.condense.automatic.race import Contest, Entry, race
from gcsr.condense.automatic.remembered import remembering

__all__ = [
    "PARTS",
    "Calibration",
    "Candidate",
    "Contest",
    "Entry",
    "Judge",
    "Mark",
    "Opinion",
    "Plan",
    "calibrate",
    "plan_for",
    "race",
    "remembering",
    "second_opinion",
]
