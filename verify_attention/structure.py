"""What claims about structure have in common: heads, order, masks and caches."""

from __future__ import annotations

import numpy as np

from verify_attention import departures, formula
from verify_attention.model import Array, Case, Indices

MOST_ROWS = 32  # that are asked about one by one


def showing_weights(case: Case) -> Case:
    """Return the case with the identity for values, and nothing added to them: its output `[H, Tq, Tk]` is the weights.

    An implementation that shows only its output shows its weights so.
    """
    if case.values is None and case.bV is None and "appended_key" not in case.features:
        return case
    features = dict(case.features)
    if "appended_key" in features:
        nothing = np.zeros((len(case.keys), case.keys.shape[1]))
        features["appended_key"] = {**features["appended_key"], "value": nothing}
    return case.but(values=None, bV=None, features=features)


def without(case: Case, *names: str) -> Case:
    """Return the case without some of its features."""
    return case.but(features={name: value for name, value in case.features.items() if name not in names})


def spread(case: Case) -> Array:
    """Return how far apart the products of each row are over its visible keys, `[H, Tq, 1]`.

    Where something beside them does not move along, it is how far they are from 0. Where the spread is 0, no factor
    on the products changes a weight.
    """
    products, seen = formula.products(case).value, departures.visible(case)
    if "shift-invariant softmax" in departures.taken(case):
        farthest: Array = np.abs(products).max(axis=-1, keepdims=True)
        return farthest
    high, low = (products, products) if seen is None else (np.where(seen, products, edge) for edge in (-np.inf, np.inf))
    apart: Array = high.max(axis=-1, keepdims=True) - low.min(axis=-1, keepdims=True)
    return apart


def some_rows(count: int) -> Indices:
    """Return the rows that are asked about one by one, `[n]`: all, or some from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_ROWS)).astype(int))
