"""Parts of a case: chosen heads, rows or keys, and the blocks of a large one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from verify_attention.departures import feature, in_order
from verify_attention.model import BLOCK, Array, Case, Hides, Indices, Latent

AXES = {
    "q": ("H", "Tq", "d_k"),
    "keys": ("G", "Tk", "d_k"),
    "bQ": ("H", "d_k"),
    "bK": ("G", "d_k"),
    "values": ("G", "Tk", "d_v"),
    "bV": ("G", "d_v"),
    "W_O": ("H", "d_v", "d_out"),
}
LATENT_AXES = {"c": ("Tk", "d_c"), "W_UK": ("H", "d_c", "d_n"), "W_UV": ("H", "d_c", "d_v")}


def rows(case: Case, chosen: Indices) -> Case:
    """Return the case with some of its queries, in the given order, `[Tq']`; each keeps its position."""
    return chosen_along(spelled_out(case), {"Tq": chosen})


def keys(case: Case, chosen: Indices) -> Case:
    """Return the case with some of its keys, in the given order, `[Tk']`; each keeps its position.

    Values that are the identity become explicit: the output keeps its width.
    """
    return chosen_along(spelled_out(with_values(case)), {"Tk": chosen})


def heads(case: Case, chosen: Indices) -> Case:
    """Return the case with some of its query heads, `[H']`, each with a key-value head of its own."""
    return chosen_along(case, {"H": chosen, "G": case.kv_head[chosen]})


def first_tokens(case: Case, queries: int, keys: int, since: int = 0) -> Case:
    """Return the case as it was when it had so many queries and keys: nothing but the alignment gives positions.

    Of the queries, those before `since` are left out: they came at an earlier step.
    """
    return chosen_along(with_values(case), {"Tq": np.arange(since, queries), "Tk": np.arange(keys)})


def values(case: Case) -> Array:
    """Return the values, `[G, Tk, d_v]`: copies of the identity where the case gives none."""
    if case.values is not None:
        return case.values
    identity = np.eye(case.d_v)
    return np.broadcast_to(identity, (len(case.keys), *identity.shape)).copy()


def with_values(case: Case) -> Case:
    """Return the case with explicit values."""
    return case if case.values is not None else case.but(values=values(case))


def spelled_out(case: Case) -> Case:
    """Return a case that says the same without positions that follow from the place of a row or a key.

    Causality and windows become a mask, ALiBi a score bias, positions of a rotation explicit.
    """
    features = dict(case.features)
    for each in in_order(case):
        said = {} if each.name == "mask" else said_without_positions(case, each.name)
        if not said:
            continue
        features.pop(each.name)
        for name, value in said.items():
            if name == "mask" and name in features:
                features[name] = features[name] & value
            elif name == "score_bias" and name in features:
                features[name] = features[name] + value
            else:
                features[name] = value
    return case.but(features=features, whole=None, first_head=0, first_row=0)


def said_without_positions(case: Case, name: str) -> Mapping[str, Any]:
    """Return features that say what one of the case's says by the places of rows and keys."""
    own = feature(name)
    if isinstance(own.act, Hides):
        return {"mask": np.broadcast_to(own.act.core(case), case.scores_shape)}
    return {} if own.spell_out is None else own.spell_out(case)


def widened(case: Case, count: int = 1) -> dict[str, Any]:
    """Return the features of a case with `count` more channels of zeros in whatever is as wide as keys."""
    return _parameters(case, lambda array, axes: _padded(array, count) if axes[-1] == "d_k" else array)


def _padded(array: Array, count: int) -> Array:
    return np.concatenate([array, np.zeros((*array.shape[:-1], count))], axis=-1)


def chosen_along(case: Case, chosen: Mapping[str, Any]) -> Case:
    """Return the case with some of its heads, rows and so on, by the letters of axes: what is left moves up."""
    parts = _parts(case, chosen)
    return case.but(**parts, published=None, expect={}, whole=None, first_head=0, first_row=0)


def _parts(case: Case, chosen: Mapping[str, Any]) -> dict[str, Any]:
    def taken(array: Array, axes: tuple[str, ...]) -> Array:
        for number, letter in enumerate(axes):
            if letter in chosen:
                array = array[(slice(None),) * number + (chosen[letter],)]
        return array

    arrays = {name: getattr(case, name) for name in AXES}
    parts: dict[str, Any] = {name: taken(array, AXES[name]) for name, array in arrays.items() if array is not None}
    if case.latent is not None:
        latent = {name: taken(getattr(case.latent, name), axes) for name, axes in LATENT_AXES.items()}
        parts["latent"] = Latent(**latent)
    return {**parts, "features": _parameters(case, taken)}


def _parameters(case: Case, change: Any) -> dict[str, Any]:
    """Return the features of a case with each array changed, given its axes."""
    changed = dict(case.features)
    for name in case.features:
        for path, shape in feature(name).arrays.items():
            if not path:
                changed[name] = change(changed[name], shape.axes)
            elif isinstance(changed[name], Mapping) and changed[name].get(path[0]) is not None:
                changed[name] = {**changed[name], path[0]: change(changed[name][path[0]], shape.axes)}
    return changed


def blocks(case: Case, largest: int = BLOCK) -> Iterator[Case]:
    """Yield the case in blocks of about `largest` scores: rows are independent, and so are heads.

    A small case is its own only block. A block has one head and at least two rows where the case has them.
    """
    heads, rows, keys = case.scores_shape
    if heads * rows * keys <= largest:
        yield case.but(whole=case)  # what is remembered of a block goes with it
        return
    count = max(1, rows // max(2, largest // keys))
    edges = [rows * index // count for index in range(count + 1)]
    for head in range(heads):
        for start, stop in pairwise(edges):
            yield _block(case, head, start, stop)


def first_row(block: Case) -> Case:
    """Return the block of one row that is the first of the same head."""
    whole = block if block.whole is None else block.whole
    return _block(whole, block.first_head, 0, 1)


def _block(case: Case, head: int, start: int, stop: int) -> Case:
    kv = int(case.kv_head[head])
    one, rows = slice(head, head + 1), slice(start, stop)
    printed = case.published and replace(
        case.published,
        numbers={
            quantity: {condition: array[one, rows] for condition, array in by_condition.items()}
            for quantity, by_condition in case.published.numbers.items()
        },
    )
    parts = _parts(case, {"H": one, "G": slice(kv, kv + 1), "Tq": rows})
    return case.but(**parts, published=printed, whole=case, first_head=head, first_row=start)
