"""A layer's output is the sum of what each head alone sends through its own block of W_O.

Concat(o_0, …, o_{H−1})·W_O multiplies head h's channels by the rows h·d_v to (h + 1)·d_v of W_O, its block W_O[h], and
adds; so the layer is Σ_h o_h·W_O[h]. The right side asks for every head by itself, as a case of one head. A V bias adds
the same to every row of the layer: Σ_h bV·W_O[h], with the bV of the key-value head that head h uses, as the weights of
a row sum to one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention import departures, formula, mistakes, rounding, selection
from verify_attention.model import CONDITIONS, Array, Case, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, merged_heads


def applies(case: Case) -> str | None:
    """Ask for W_O, and for a case whose heads are judged together."""
    return "the case has no W_O" if case.W_O is None else None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare the layer with the sum over heads, and the layer with bV and without."""
    if case.W_O is None:
        return
    for condition in CONDITIONS:
        yield _by_heads(case.under(condition), case.W_O, attend, f"layer[{condition}] − Σ_h o_h·W_O[h]")
    if case.bV is not None and "rows sum to one" not in departures.taken(case):
        yield _without_bias(case.under("qk"), case.W_O, case.bV[case.kv_head], attend)


def _by_heads(case: Case, projection: Array, attend: Implementation, of: str) -> Sides:
    layer = attend(case).layer
    alone = [selection.heads(case, np.array([head])).but(W_O=None) for head in range(len(case.q))]
    parts = [attend(one).output[0] @ block for one, block in zip(alone, projection, strict=True)]
    sizes = formula.output(case)
    moves = np.abs(sizes[1:] @ projection[1:]).sum(axis=0)
    errors = np.concatenate([rounding.output(one) for one in alone])
    return Sides(
        of,
        layer[None],
        np.sum(parts, axis=0)[None],
        rounding=(_bound(case, projection) + (errors @ np.abs(projection)).sum(axis=0))[None],
        axis="channel",
        moves=moves[None],
    )


def _without_bias(case: Case, projection: Array, bias: Array, attend: Implementation) -> Sides:
    without = case.but(bV=None)
    constant = (bias[:, None] @ projection).sum(axis=0)
    size = (np.abs(bias)[:, None] @ np.abs(projection)).sum(axis=0)
    added = case.precision.accumulated(projection[..., 0].size + 4) * size
    return Sides(
        "layer[bV] − layer[no bV]",
        attend(case).layer[None],
        attend(without).layer[None] + constant,
        rounding=(_bound(case, projection) + _bound(without, projection) + added)[None],
        axis="channel",
        moves=constant[None],
    )


def _bound(case: Case, projection: Array) -> Array:
    """Bound the error of the layer, `[Tq, d_out]`: that of the heads, and of the sum over their channels.

    The sum counts twice: for the right side adds as many products.
    """
    error, size = rounding.output(case), np.abs(formula.output(case))
    with np.errstate(invalid="ignore"):  # no promise times a block of zeros
        summed = error + 2 * case.precision.accumulated(projection[..., 0].size + 4) * (size + error)
        bound: Array = (summed @ np.abs(projection)).sum(axis=0)
    return np.nan_to_num(bound, nan=np.inf, posinf=np.inf)


def without_a_transpose(projection: Array, output: Array) -> Array:
    """Put heads side by side in the order in which they lie in memory."""
    heads, rows, width = output.shape
    return np.asarray(output.reshape(rows, heads * width) @ projection.reshape(heads * width, -1))


def channels_before_heads(projection: Array, output: Array) -> Array:
    """Put the heads' first channels side by side, then their second, and so on."""
    heads, rows, width = output.shape
    return np.asarray(output.transpose(1, 2, 0).reshape(rows, width * heads) @ projection.reshape(heads * width, -1))


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="Concat(o_0, …, o_{H−1})·W_O = Σ_h o_h·W_O[h];  layer(bV) = layer(0) + Σ_h bV·W_O[h]",
    source="Muxuan Liu, model learning notes, chapter 2: MultiHead = Concat(head_1, …, head_h) W_O",
    applies=applies,
    where="the case has W_O",
    whole=True,
    vacuous="one head alone makes the layer, or the others add nothing",
    sides=sides,
    faults=(
        Fault("heads are merged without a transpose", CORE.but(layer=without_a_transpose)),
        Fault("channels stand before heads when they are merged", CORE.but(layer=channels_before_heads)),
        Fault("W_O's blocks are in reverse", CORE.but(layer=lambda matrix, output: merged_heads(matrix[::-1], output))),
        Fault(
            "every head goes through head 0's block of W_O",
            CORE.but(layer=lambda matrix, output: merged_heads(np.broadcast_to(matrix[:1], matrix.shape), output)),
        ),
        Fault(
            "only head 0 reaches the layer", CORE.but(layer=lambda matrix, output: merged_heads(matrix[:1], output[:1]))
        ),
        Fault("the V bias is dropped", CORE.but(mix=mistakes.values_without_bias)),
    ),
)
