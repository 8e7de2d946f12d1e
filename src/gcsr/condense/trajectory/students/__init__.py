"""Students: N steps of SGD on the condensed graph, and how far they end from the expert.

The same function in several exact forms:

==================  ==================================================================================
:mod:`.autograd`    differentiates through any model: the reference, and what other models use
:mod:`.weights`     linear SGC with explicit weights and a hand-written adjoint (n' > d)
:mod:`.span`        linear SGC in the span of its inputs, likewise (n' <= d)
:mod:`.first_layer` GCN, SAGE, APPNP, Cheby and MLP with their first layer in that span (n' <= d)
==================  ==================================================================================
"""

from gcsr.condense.trajectory.students.autograd import AutogradStudent
from gcsr.condense.trajectory.students.base import Lesson, Student
from gcsr.condense.trajectory.students.choose import student_for

__all__ = ["AutogradStudent", "Lesson", "Student", "student_for"]
