"""An implementation that answers from stored traces: what a results file says that it showed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_attention import departures
from verify_attention.model import CONDITIONS, Array, Case, Condition, Flags, Trace

CHANGED = "a case that was changed in another way"
NOT_STORED = "not in the results file"
# As the engine words it: results hold no layer, and no arguments.
NO_LAYER, NO_ARGUMENTS = (f"not shown: the implementation does not show its {part}" for part in ("layer", "arguments"))


@dataclass(frozen=True)
class Recorded:
    """The traces of one case under the four conditions, as arrays over the whole case."""

    traces: Mapping[Condition, Mapping[str, Array]]
    is_core: bool = False  # whether they are the core's

    def __call__(self, case: Case) -> Trace:
        """Answer for the case, or a block of it, under a condition.

        Raises:
            NotImplementedError: the case was changed in another way, or its arrays were not stored.

        """
        if case.condition is None:
            raise NotImplementedError(CHANGED)
        stored = self.traces.get(case.condition, {})
        if "output" not in stored:
            raise NotImplementedError(NOT_STORED)
        heads, rows, _ = case.scores_shape
        place = slice(case.first_head, case.first_head + heads), slice(case.first_row, case.first_row + rows)
        parts = {name: array[place] for name, array in stored.items()}
        seen = departures.visible(case)
        if seen is not None and "scores" in parts:  # −∞ is stored as null
            hidden = ~seen & np.isnan(parts["scores"])
            parts["scores"] = np.where(hidden, departures.hidden_score(case), parts["scores"])
        return Trace(parts.pop("output"), parts)


def overflowed(case: Case, stored: Recorded) -> bool:
    """Say whether a stored array has a null where no key is hidden: −∞, ∞ and NaN cannot be told apart then."""
    seen = departures.visible(case)
    hidden: Flags | bool = False if seen is None else ~seen
    return any(
        bool((np.isnan(array) & ~(hidden if name == "scores" else False)).any())
        for shown in stored.traces.values()
        for name, array in shown.items()
    )


def recorded(conditions: Mapping[str, Mapping[str, Any]], is_core: bool = False) -> Recorded:
    """Read stored traces: arrays of numbers, with NaN for null. A condition with a summary in it was not stored."""
    traces: dict[Condition, dict[str, Array]] = {}
    for condition in CONDITIONS:
        shown = {name: array for name, array in conditions[condition].items() if array is not None}
        if all(isinstance(array, list) for array in shown.values()):
            traces[condition] = {name: np.array(array, dtype=np.float64) for name, array in shown.items()}
    return Recorded(traces, is_core)
