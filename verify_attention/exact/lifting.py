"""A case whose numbers are of another kind: the binary64 numbers that an implementation sees, taken exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from verify_attention.exact.arrays import Kind, array_of
from verify_attention.model import EXACT, Case

ARRAYS = ("q", "keys", "bQ", "bK", "values", "bV", "W_O")


def lifted(case: Case, kind: Kind) -> Case:
    """Return the case in numbers of a kind; its scale stays a float, which every product takes for what it is."""

    def taken(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: taken(part) for name, part in value.items()}
        if isinstance(value, np.ndarray) and value.dtype != bool:
            return array_of(kind, value)
        return array_of(kind, value) if isinstance(value, float) else value

    arrays = {name: taken(getattr(case, name)) for name in ARRAYS}
    latent = case.latent and replace(case.latent, **{name: taken(part) for name, part in vars(case.latent).items()})
    features = {name: taken(value) for name, value in case.features.items()}
    if latent is not None:  # keys and values follow from it without rounding
        turned = case.d_k - latent.W_UK.shape[-1]
        arrays["keys"] = np.concatenate([arrays["keys"][..., :turned], latent.c @ latent.W_UK], axis=-1)
        arrays["values"] = latent.c @ latent.W_UV
    return case.but(**arrays, latent=latent, features=features, precision=EXACT, whole=None)
