"""Trees: what they are, how they are written and drawn, how syntactic distances become one."""

from prpn.trees.from_distances import Builder, build, has_ties
from prpn.trees.tree import Tree

__all__ = ["Builder", "Tree", "build", "has_ties"]
