"""Trees: what they are, how they are read, written, drawn, averaged and scored, how distances become one."""

from prpn.config import Builder
from prpn.trees.average import average
from prpn.trees.from_distances import build, has_ties
from prpn.trees.tree import Tree

__all__ = ["Builder", "Tree", "average", "build", "has_ties"]
