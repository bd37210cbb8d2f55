"""The registries: every invariant, feature and implementation that the package has."""

from __future__ import annotations

from verify_attention.model import Feature, Implementation, Invariant
from verify_attention.registry import discover


def invariants() -> dict[str, Invariant]:
    """Return all invariants by name, in the order of their names."""
    return discover("verify_attention.invariants", "INVARIANT")


def features() -> dict[str, Feature]:
    """Return all features by the name that a case gives them."""
    return {feature.name: feature for feature in discover("verify_attention.features", "FEATURE").values()}


def implementations() -> dict[str, Implementation]:
    """Return what can be put under test, by name."""
    return discover("verify_attention.implementations", "IMPLEMENTATION")
