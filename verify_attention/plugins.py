"""The registries: every invariant, feature and implementation that the package has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from verify_attention.model import Feature, Implementation, Invariant
from verify_attention.registry import discover, names


def invariants() -> dict[str, Invariant]:
    """Return all invariants by name, in the order of their names."""
    return discover("verify_attention.invariants", "INVARIANT")


def features() -> dict[str, Feature]:
    """Return all features by the name that a case gives them, in the order in which they act."""
    found = discover("verify_attention.features", "FEATURE").values()
    return {feature.name: feature for feature in sorted(found, key=lambda feature: feature.order)}


@cache
def feature(name: str) -> Feature:
    """Return one feature by the name that a case gives it, and load no other."""
    found: Feature = import_module(f"verify_attention.features.{name}").FEATURE
    return found


def features_among(given: Iterable[object]) -> list[Feature]:
    """Return the features that are among some names, in the order in which they act, and load no other."""
    known = names("verify_attention.features")
    return sorted((feature(str(name)) for name in given if name in known), key=lambda each: each.order)


def implementations() -> dict[str, Implementation]:
    """Return what can be put under test, by name."""
    return discover("verify_attention.implementations", "IMPLEMENTATION")
