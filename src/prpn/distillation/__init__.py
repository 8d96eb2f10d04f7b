"""The accuracy of a crowd at the cost of one: several parsers share their distances, and one network learns the trees.

raw text ── parsers ──> distances ── mean ─┬──> one tree a sentence ── heights ──> student: a parsing network by itself
         └─ marks ──> where marks would be ┘
"""

from prpn.distillation.lessons import Lessons, mark_lessons, tree_lessons
from prpn.distillation.run import distill
from prpn.distillation.student import Student, splitting_loss

__all__ = ["Lessons", "Student", "distill", "mark_lessons", "splitting_loss", "tree_lessons"]
