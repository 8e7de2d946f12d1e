"""Which form a student takes."""

from __future__ import annotations

from gcsr.condense.trajectory.students.autograd import AutogradStudent
from gcsr.condense.trajectory.students.base import Student
from gcsr.condense.trajectory.students.first_layer import FirstLayerStudent
from gcsr.condense.trajectory.students.span import SpanStudent
from gcsr.condense.trajectory.students.weights import WeightsStudent
from gcsr.models import Model
from gcsr.models.sgc import SGC


def student_for(model: Model, nodes: int, features: int) -> Student:
    """The cheapest exact form for a model and a size."""
    if isinstance(model, SGC) and not model.relu and model.hops == 2:
        return SpanStudent() if nodes <= features else WeightsStudent()
    if nodes <= features and FirstLayerStudent.covers(model):
        return FirstLayerStudent(model)
    return AutogradStudent(model)
