"""The registries: every invariant, feature and implementation that the package has, and the mistakes seen in real code.

It loads modules by their names, and so it stands above them all. What needs one feature asks `departures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from verify_attention.errors import UsageError
from verify_attention.faults import Kind
from verify_attention.model import Adapter, Feature, Invariant
from verify_attention.registry import discover
from verify_attention.wording import join


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


def chosen(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Invariant]:
    """Return the invariants that names and globs choose, in the order of their names; several may stand in one text.

    Raises:
        UsageError: a name or glob matches none, or none is left.

    """
    known = invariants()
    taken = _matching(select, known) if select else set(known)
    left = taken - _matching(ignore, known)
    if not left:
        raise UsageError("--select and --ignore leave no invariant")
    return [known[name] for name in known if name in left]


def _matching(patterns: Iterable[str], known: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for pattern in (part for given in patterns for part in given.split(",")):
        matches = {name for name in known if fnmatchcase(name, pattern)}
        if not matches:
            raise UsageError(f"no invariant is called {pattern!r}{suggestion(pattern, known)}")
        found |= matches
    return found


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return which known names have a text in them, or which one is near, or else a pointer to the list."""
    names, part = list(known), name.lower().replace("_", "-")
    having = [other for other in names if part and part in other.replace("_", "-")]
    if len(having) > 1:
        return f"; names with it: {join(having)}"
    near = having or get_close_matches(name, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else "; `verify-attention list` shows all names"


def faults() -> dict[str, Kind]:
    """Return the mistakes that were seen in real code by their kind, in the order of the kinds' names."""
    return discover("verify_attention.faults", "KIND")
