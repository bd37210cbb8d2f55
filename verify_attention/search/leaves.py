"""The numbers of a case, wherever they are, by their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from verify_attention.model import Case
from verify_attention.search.writing import needed

Path = tuple[str, ...]
ARRAYS = ("q", "keys", "bQ", "bK", "values", "bV", "W_O")
STORED = ("c", "W_UK", "W_UV")


def leaves(case: Case) -> Iterator[tuple[Path, Any]]:
    """Yield every number and array of a case with its path; what follows from a latent is not among them."""
    for name in ARRAYS:
        array = getattr(case, name)
        if array is not None and not (case.latent is not None and name == "values"):
            yield (name,), array
    for name in STORED if case.latent is not None else ():
        yield ("latent", name), getattr(case.latent, name)
    for name in case.features:
        own = needed(name, case)
        if isinstance(own, Mapping):
            yield from ((("features", name, key), value) for key, value in own.items())
        else:
            yield ("features", name), own


def with_leaf(case: Case, path: Path, value: Any) -> Case:
    """Return the case with another number or array at a path."""
    first, *rest = path
    if first == "latent" and case.latent is not None:
        return case.but(latent=replace(case.latent, **{rest[0]: value}))
    if first != "features":
        return case.but(**{first: value}, latent=case.latent, expect=case.expect)
    own = value if len(rest) == 1 else {**needed(rest[0], case), rest[1]: value}
    return case.but(features={**case.features, rest[0]: own})
