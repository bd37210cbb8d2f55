"""In which order cases are tried: those first on which mistakes show."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations

from verify_attention.functions import SAID
from verify_attention.model import Case


def telling_first(cases: Sequence[Case]) -> list[Case]:
    """Return the cases in an order in which mistakes show early: each time the one with most that is new.

    Where nothing is new any more it begins again; of equally rich cases the smallest comes first.
    """
    left = sorted(cases, key=lambda case: math.prod(case.scores_shape) * case.d_k)  # stable: then in their order
    traits = {id(case): _traits(case) for case in left}
    ordered, met = list[Case](), set[Hashable]()
    while left:
        best = max(left, key=lambda case: len(traits[id(case)] - met))
        if met and not traits[id(best)] - met:
            met = set()
            continue
        left.remove(best)
        ordered.append(best)
        met |= traits[id(best)]
    return ordered


def _traits(case: Case) -> frozenset[Hashable]:
    """Return what a case has that some mistake may depend on."""
    heads, rows, keys = case.scores_shape
    flags = {
        "grouped": 1 < len(case.keys) < heads,
        "several rows": rows > 1,
        "as many rows as keys": rows == keys,
        "fewer rows than keys": rows < keys,
        "values": case.values is not None,
        "V bias": case.bV is not None,
        "scale": case.scale != 1 / math.sqrt(case.d_k),
        "layer": case.W_O is not None,
        "latent": case.latent is not None,
        "printed": case.published is not None,
    }
    there = [name for name, given in flags.items() if given]
    met = [*case.features, *combinations(sorted(case.features), 2)]
    said = [("said", one) for one in met] if case.features.keys() <= SAID else []  # functions are asked of these only
    return frozenset({*there, *case.tags, *case.expect.items(), *met, *said})
