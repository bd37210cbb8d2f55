"""Remember what was computed of a case as long as the case lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from verify_attention.model import Case

Result = TypeVar("Result")


def once_per_case(function: Callable[[Case], Result]) -> Callable[[Case], Result]:
    """Compute a function of a case once for each case."""
    known: WeakKeyDictionary[Case, Result] = WeakKeyDictionary()

    @wraps(function)
    def remembered(case: Case) -> Result:
        if case not in known:
            known[case] = function(case)
        return known[case]

    return remembered
