"""Query heads that share a key-value head answer as if each had its own copy of it.

Query head h uses key-value head h // (H / G), with its keys, values and biases. Posed with every key-value head
repeated for its query heads, so that there are as many of both, the question is the same. An order that goes around,
h mod G, agrees where G is 1 or H; so does any other where all key-value heads are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import numpy as np

from verify_attention import formula, selection
from verify_attention.agreement import agreement
from verify_attention.departures import feature
from verify_attention.model import Array, Case, Fault, Implementation, Indices, Invariant, Sides, Trace
from verify_attention.pipeline import CORE, mixed_values

EQUAL = "all key-value heads are equal"
Part: TypeAlias = Literal["output", "weights", "scores"]
MEASURED: dict[Part, Callable[[Case], Array]] = {
    "output": formula.output,
    "weights": formula.shares,
    "scores": lambda case: formula.uncovered(case).value,
}


def applies(case: Case) -> str | None:
    """Ask for query heads that share a key-value head, and for one that others do not use."""
    if len(case.keys) == len(case.q):
        return "each query head has a key-value head of its own"
    return f"vacuous: {EQUAL}" if equal_heads(case) else None


def equal_heads(case: Case) -> bool:
    """Say whether all key-value heads are the same, with all that features give to each."""
    arrays = [case.keys, case.bK, case.values, case.bV]
    for name, own in case.features.items():
        arrays += [own[path[0]] if path else own for path in _of_heads(name)]
    return all(array is None or bool((array == array[:1]).all()) for array in arrays)


def _of_heads(name: str) -> list[tuple[str, ...]]:
    """Return the parameters of a feature that each key-value head has for itself."""
    return [path for path, shape in feature(name).arrays.items() if shape.axes[0] == "G"]


def with_the_next_head(case: Case) -> Case:
    """Return the case with the key-value head of the next group for each query head, and with as many of both."""
    own, step = selection.heads(case, np.arange(len(case.q))), len(case.q) // len(case.keys)

    def moved(array: Array | None) -> Array | None:
        return None if array is None else np.roll(array, -step, axis=0)

    features = {}
    for name, given in own.features.items():
        paths = _of_heads(name)
        parts = {path[0]: moved(given[path[0]]) for path in paths if path}
        features[name] = {**given, **parts} if parts else moved(given) if paths else given
    changed = {name: moved(getattr(own, name)) for name in ("keys", "bK", "values", "bV")}
    return own.but(**changed, features=features)


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the case with the one whose key-value heads are repeated, both biases in place."""
    grouped = case.under("qk")
    repeated, other = selection.heads(grouped, np.arange(len(case.q))), None
    if case.features or case.expect:  # plain cases may be heads of many that are judged together: no head is the next
        other = with_the_next_head(grouped)
    for part, measured in MEASURED.items():
        moves = None if other is None else measured(repeated) - measured(other)
        yield from agreement(grouped, repeated, attend, parts=(part,), moves=moves)


def using(case: Case, kv_head: Indices) -> Trace:
    """Let query head h use the key-value head that is given for it."""
    own = selection.heads(case, np.arange(len(case.q)))
    values = None if case.values is None else case.values[kv_head]
    bias = None if case.bV is None else case.bV[kv_head]
    return CORE(own.but(keys=case.keys[kv_head], bK=case.bK[kv_head], values=values, bV=bias))


def tiled(case: Case) -> Trace:
    """Go around the key-value heads: query head h uses h mod G."""
    return using(case, np.arange(len(case.q)) % len(case.keys))


def first_only(case: Case) -> Trace:
    """Use key-value head 0 for the query heads of all groups, where they are grouped."""
    return using(case, case.kv_head * (len(case.keys) == len(case.q)))


def tiled_values(case: Case, weights: Array) -> Array:
    """Go around the values, after scores with the right keys."""
    heads = selection.heads(case, np.arange(len(case.q)))
    order = np.arange(len(case.q)) % len(case.keys)
    values = None if case.values is None else case.values[order]
    return mixed_values(heads.but(values=values, bV=None if case.bV is None else case.bV[order]), weights)


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="attention(q, k, v) with G heads = attention(q, repeat(k), repeat(v)) with H heads",
    source="the definition of grouped-query attention",
    applies=applies,
    where="there are fewer key-value heads than query heads, and they are not all equal",
    whole=True,
    vacuous=EQUAL,
    sides=sides,
    faults=(
        Fault("key-value heads are tiled instead of repeated", tiled),
        Fault("only key-value head 0 is used", first_only),
        Fault("values are tiled instead of repeated", CORE.but(mix=tiled_values)),
    ),
)
