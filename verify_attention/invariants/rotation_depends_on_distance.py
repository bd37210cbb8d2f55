"""One number added to all positions changes no score, for a rotation sees only distances.

(R_i·x)·(R_j·y) = x·R_{j−i}·y, with x = q_i + bQ and y = k_j + bK where the biases turn along, and with x = q_i and y
= k_j where there are none. Positions of 5 and of 1000 more are asked for; at 1000 the angles themselves are rounded,
so that the limit there is the rounding bound. An appended key does not turn: only the scores of the others are
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from verify_attention import departures, formula, structure
from verify_attention.agreement import agreement
from verify_attention.model import Array, Case, Condition, Fault, Implementation, Invariant, Sides
from verify_attention.pipeline import CORE, biased_keys, biased_queries

NEAR, FAR = 5.0, 1000.0


def applies(case: Case) -> str | None:
    """Ask for a rotation that nothing follows but biases."""
    if "rope" not in case.features:
        return "the case has no rope"
    if case.features.get("qk_norm", {}).get("rotation") == "before":
        return "a norm follows the rotation"
    return None


def sides(case: Case, attend: Implementation) -> Iterator[Sides]:
    """Compare answers at other positions: with both biases where they turn along, and with none."""
    parts: tuple[Literal["output", "weights", "scores"], ...] = ("output", "weights", "scores")
    turning = case.features["rope"]["bias"] == "before"
    conditions: tuple[Condition, ...] = ("qk", "none") if turning else ("none",)
    pairs = [(condition, given := case.under(condition), *_both(given)) for condition in conditions]
    for part in ("scores",) if "appended_key" in case.features else parts:
        for condition, given, near, far in pairs:
            moves = _moves(given)
            of = f"[{condition}], positions +{NEAR:g}"
            yield from agreement(given, near, attend, of=of, parts=(part,), moves=moves)
            of = f"[{condition}], positions +{FAR:g}"
            yield from agreement(given, far, attend, of=of, parts=(part,), moves=moves, far=True)


def _both(case: Case) -> tuple[Case, Case]:
    return at(case, NEAR, NEAR), at(case, FAR, FAR)


def at(case: Case, queries: float, keys: float) -> Case:
    """Return the case with numbers added to the positions of queries and of keys."""
    own = case.features["rope"]
    moved = {**own, "q_positions": own["q_positions"] + queries, "k_positions": own["k_positions"] + keys}
    return case.but(features={**case.features, "rope": moved})


def _moves(case: Case) -> Array:
    """Return by what the scores of each row would move if the queries alone were elsewhere, `[H, Tq, 1]`."""
    change = formula.scores(at(case, NEAR, 0.0)).value - formula.scores(case).value
    seen = departures.visible(case)
    return np.abs(change if seen is None else np.where(seen, change, 0.0)).max(axis=-1, keepdims=True)


def _rotating(case: Case, **changes: object) -> Case:
    """Return the case with other parameters of its rotation."""
    if "rope" not in case.features:
        return case
    return case.but(features={**case.features, "rope": {**case.features["rope"], **changes}})


def _times(case: Case, name: str, factor: float) -> Case:
    return case if "rope" not in case.features else _rotating(case, **{name: factor * case.features["rope"][name]})


INVARIANT = Invariant(
    __name__,
    __doc__,
    formula="S at positions (i + c, j + c) = S at positions (i, j)",
    source="the definition of RoPE",
    applies=applies,
    where="the case has rope, and no norm after it",
    on_request=True,
    whole=True,
    vacuous="positions do not matter",
    own_limit=True,
    sides=sides,
    faults=(
        Fault(
            "queries turn in the layout half, keys in the interleaved one",
            CORE.but(
                queries=lambda case: biased_queries(_rotating(case, layout="half")),
                keys=lambda case: biased_keys(_rotating(case, layout="interleaved")),
            ),
        ),
        Fault("keys are not rotated", CORE.but(keys=lambda case: biased_keys(structure.without(case, "rope")))),
        Fault(
            "queries turn the other way", CORE.but(queries=lambda case: biased_queries(_times(case, "q_positions", -1)))
        ),
        Fault("cached keys are rotated twice", CORE.but(keys=lambda case: biased_keys(_times(case, "k_positions", 2)))),
    ),
)
