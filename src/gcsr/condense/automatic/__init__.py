"""The automatic mode: candidates, a judge that reads validation labels alone, and a race of them."""

from gcsr.condense.automatic.candidates import Candidate
from gcsr.condense.automatic.judge import Judge
from gcsr.condense.automatic.plan import Plan, plan_for
from gcsr.condense.automatic.race import Contest, Entry, race

__all__ = ["Candidate", "Contest", "Entry", "Judge", "Plan", "plan_for", "race"]
