"""The registries: every invariant, feature and implementation that the package has.

It loads modules by their names, and so it stands above them all. What needs one feature asks `departures`.
"""

from __future__ import annotations

from verify_attention.model import Adapter, Feature, Invariant
from verify_attention.registry import discover


def invariants() -> dict[str, Invariant]:
    """Return all invariants by name, in the order of their names."""
    return discover("verify_attention.invariants", "INVARIANT")


def features() -> dict[str, Feature]:
    """Return all features by the name that a case gives them, in the order in which they act."""
    found = discover("verify_attention.features", "FEATURE").values()
    return {feature.name: feature for feature in sorted(found, key=lambda feature: feature.order)}


def implementations() -> dict[str, Adapter]:
    """Return what can be put under test by name, loaders that have loaded nothing yet."""
    return discover("verify_attention.implementations", "IMPLEMENTATION")
