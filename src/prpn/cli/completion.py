"""What the shell is offered where a name is expected; where no name fits, it offers files by itself."""

from __future__ import annotations

from collections.abc import Iterable


def recipes(incomplete: str) -> list[str]:
    """Recipes of the package."""
    from prpn.config import recipe_names

    return _beginning(recipe_names(), incomplete)


def models(incomplete: str) -> list[str]:
    """Models of the package."""
    from prpn.models.folder import embedded_models

    return _beginning(embedded_models(), incomplete)


def protocols(incomplete: str) -> list[str]:
    """Ways to score trees."""
    from prpn.trees.protocols import PROTOCOLS

    return _beginning(PROTOCOLS, incomplete)


def experiments(incomplete: str) -> list[str]:
    """What `prpn reproduce` can run."""
    from prpn.reproduction.experiments import load_experiments

    return _beginning(load_experiments(), incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
