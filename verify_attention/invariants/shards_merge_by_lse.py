"""Keys may be cut in two, and the halves merged by their LSE.

Softmax over a shard divides by that shard's sum of exponentials, and l_1, l_2 are its logarithms. So l = log(exp(l_1)
+ exp(l_2)) is the LSE of all keys, and o = exp(l_1 − l)·o_1 + exp(l_2 − l)·o_2 their output: this is how ring
attention and split key-value caches work. Rows count that see a key in both shards. A key that a feature adds would
be counted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from verify_attention import departures, mistakes, rounding, selection
from verify_attention.model import Array, Case, Fault, Flags, Implementation, Indices, Invariant, Sides
from verify_attention.pipeline import CORE


def applies(case: Case) -> str | None:
    """Ask for a cut that leaves a row keys on both sides."""
    if not departures.has_lse(case):
        return "what stands for softmax has no LSE"
    if case.keys.shape[1] < 2 or not _cut(case)[1].any():
        return "no cut leaves a row a key on both sides, for all heads"
    return None


def _cut(case: Case) -> tuple[int, Flags]:
    """Return where to cut the keys, and the rows that see a key on both sides in every head, `[Tq]`.

    It is the cut with the most such rows, and of these the one nearest to a third of the keys, rounded down: shards
    of equal size forgive an LSE that is off by the logarithm of their size.
    """
    count, seen = case.keys.shape[1], departures.visible(case)
    cuts = sorted(range(1, count), key=lambda cut: abs(cut - count // 3))
    if seen is None:
        return cuts[0], np.ones(case.q.shape[1], dtype=bool)
    both = {cut: _on_both_sides(seen, cut) for cut in cuts}
    best = max(cuts, key=lambda cut: int(both[cut].sum()))  # the first of equals
    return best, both[best]


def _on_both_sides(seen: Flags, cut: int) -> Flags:
    both = seen[..., :cut].any(axis=-1) & seen[..., cut:].any(axis=-1)
    return np.asarray(both.all(axis=0), dtype=bool)


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare output, weights and LSE of the whole with those of two shards merged, both biases in place."""
    whole = case.under("qk")
    cut, counted = _cut(whole)
    places = np.arange(case.keys.shape[1])
    rows = np.flatnonzero(counted)
    shards = [selection.keys(selection.rows(whole, rows), part) for part in (places[:cut], places[cut:])]
    traces = [attend(shard) for shard in shards]
    total = np.logaddexp(*(trace.lse for trace in traces))
    shares = [np.exp(trace.lse - total)[..., None] for trace in traces]
    output = sum(share * trace.output for share, trace in zip(shares, traces, strict=True))
    yield _of_rows("output", attend(whole).output, output, rows, _bound(rounding.output, whole, shards, rows))
    off = sum(rounding.lse(shard) for shard in shards) + 2 * rounding.lse(whole)[:, rows]
    yield _of_rows("lse", attend(whole).lse, total, rows, off)
    weights = np.concatenate([share * trace.weights for share, trace in zip(shares, traces, strict=True)], axis=-1)
    bound = rounding.promising(_bound(rounding.weights, whole, shards, rows))
    yield _of_rows("weights", attend(whole).weights, weights, rows, bound)


def _bound(of: Callable[[Case], Array], whole: Case, shards: list[Case], rows: Indices) -> Array:
    """Bound the error of the whole and of what is merged, `[H, rows, n]`.

    With shares x and 1 − x, the error is a mean of both shards' errors and what the shares move: dx, which is
    x·(1 − x)·d(l_1 − l_2), is at most a quarter of the error of both LSE, and |o_1 − o_2| at most twice the largest
    value. The computed shares are rounded by about u·|l|, which is below the bound of the LSE of the whole.
    """
    off = 0.5 * sum(rounding.lse(shard) for shard in shards) + 2 * rounding.lse(whole)[:, rows]
    parts = np.maximum(*(of(shard) for shard in shards))
    largest = 1.0 if of is rounding.weights else _largest(whole)
    bound: Array = of(whole)[:, rows] + parts + off[..., None] * largest
    return bound


def _of_rows(of: str, left: Array, merged: Array, rows: Indices, bound: Array) -> Sides:
    """Compare the rows that were merged; the others do not count."""
    right, spread = left.copy(), np.zeros((*left.shape[:2], *bound.shape[2:]))
    right[:, rows], spread[:, rows] = merged, bound
    counts = np.zeros(left.shape, dtype=bool)
    counts[:, rows] = True
    return Sides(of, left, right, rounding=spread, axis="channel" if of == "output" else "key", counts=counts)


def _largest(case: Case) -> float:
    value = 1.0 if case.values is None else float(np.abs(case.values).max())
    return value + (0.0 if case.bV is None else float(np.abs(case.bV).max()))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="o = exp(l_1 − l)·o_1 + exp(l_2 − l)·o_2 with l = log(exp(l_1) + exp(l_2))",
    source="the definition of softmax; ring and split-KV attention",
    needs=frozenset({"exponential weights", "rows sum to one"}),
    applies=applies,
    where="some row sees keys on both sides of a cut",
    on_request=True,
    whole=True,
    sides=sides,
    faults=(
        Fault("the LSE lacks the row's maximum", CORE.but(softmax=mistakes.lse_without_maximum)),
        Fault("the LSE is the logarithm of the mean", CORE.but(softmax=mistakes.lse_of_the_mean)),
        Fault("the LSE is a power of two", CORE.but(softmax=mistakes.lse_in_base_two)),
        Fault("each shard has an undeclared key of zeros", CORE.but(softmax=mistakes.undeclared_zero_key)),
    ),
)
