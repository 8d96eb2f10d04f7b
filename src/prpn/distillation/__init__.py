"""The accuracy of a crowd at the cost of one: several parsers share their distances, and one network learns the trees.

raw text ── parsers ──> distances ── mean ──> one tree a sentence ── heights ──> student: a parsing network by itself
"""

from prpn.distillation.lessons import Lessons, read_lessons
from prpn.distillation.run import distill
from prpn.distillation.student import Student, splitting_loss

__all__ = ["Lessons", "Student", "distill", "read_lessons", "splitting_loss"]
