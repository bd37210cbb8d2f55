"""Which query rows are drawn as bars, and what is left out so that the picture can be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_attention.languages import ENGLISH, Language
from verify_attention.model import CONDITIONS, Array, Condition

DOWN = 8  # panels one below the other
MOST_KEYS = 64
LARGEST = 1e300
FEW, SOME = 4, 16  # keys for which three panels, or two, stand side by side


@dataclass(frozen=True)
class Panel:
    """One query row: a number for each key under each condition; NaN where there is none. `keys` counts all of them."""

    case: str
    place: str
    numbers: Mapping[Condition, Array]
    keys: int
    shifted: bool = False

    @property
    def title(self) -> str:
        """The case, and the head and row where there are several."""
        return ", ".join(filter(None, (self.case, self.place)))


def panels(
    entries: Iterable[tuple[str, Mapping[Condition, Any], bool]], say: Language = ENGLISH
) -> tuple[list[Panel], list[str]]:
    """Return a panel for each query row that can be drawn, and in words what is left out.

    An entry is a case's id, one array `[H, Tq, Tk]` for each condition, and whether keys have shifts of their own. Any
    other thing in the place of an array (None, a summary) is left out.
    """
    found: list[Panel] = []
    absent: dict[str, list[str]] = {}
    for name, shown, shifted in entries:
        arrays = {condition: _array(shown.get(condition)) for condition in CONDITIONS}
        if any(array is None for array in arrays.values()):
            large = any(shown.get(condition) is not None for condition in CONDITIONS)
            why = "too large to be stored whole" if large else "not shown by the implementation"
            absent.setdefault(why, []).append(name)
        else:
            found += _rows(name, arrays, shifted, say)
    drawn = found[: _most(found)]
    left_out = [f"{_listed(names)}: {why}" for why, names in absent.items()]
    if len(found) > len(drawn):
        left_out.append(f"{len(found) - len(drawn):,} of {len(found):,} query rows")
    wide = list(dict.fromkeys(panel.case for panel in drawn if panel.keys > MOST_KEYS))
    if wide:
        left_out.append(f"keys behind the first {MOST_KEYS} of {_listed(wide)}")
    return drawn, left_out


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _most(found: Sequence[Panel]) -> int:
    """Return how many of the first panels are drawn: as many side by side as their keys allow."""
    return max(DOWN * columns for columns in (1, 2, 3) if columns == 1 or across(found[: DOWN * columns]) >= columns)


def across(found: Sequence[Panel]) -> int:
    """Return how many panels stand side by side: the more keys, the fewer."""
    keys = max((panel.keys for panel in found), default=1)
    return min(3 if keys <= FEW else 2 if keys <= SOME else 1, max(len(found), 1))


def _array(shown: Any) -> Array | None:
    """Return numbers, NaN where not finite or too large for a scale; None where they are absent or summarised."""
    if not isinstance(shown, np.ndarray):
        return None
    made = np.array(shown, dtype=float)
    made[~(np.abs(made) <= LARGEST)] = np.nan
    return made


def _rows(name: str, arrays: Mapping[Condition, Any], shifted: bool, say: Language) -> Iterable[Panel]:
    heads, rows, keys = arrays["none"].shape
    for head in range(heads):
        for row in range(rows):
            place = [say("head {index}", index=head)] if heads > 1 else []
            place += [say("row {index}", index=row)] if rows > 1 else []
            numbers = {condition: array[head, row, :MOST_KEYS] for condition, array in arrays.items()}
            yield Panel(name, ", ".join(place), numbers, keys, shifted)
