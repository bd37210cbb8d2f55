"""Compare stored arrays with fresh ones: whole, or summarised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from verify_attention import comparison, rounding
from verify_attention.model import Array, Case, Flags, Tolerance
from verify_attention.sealing import Document
from verify_attention.summary import LARGEST


def traces_differ(entry: Document, fresh: Document, case: Case, tolerance: Tolerance, intact: bool) -> Iterator[str]:
    """Compare stored traces of the core with fresh ones, within tolerance and what two machines may round apart."""
    with np.errstate(all="ignore"):
        bounds = rounding.overall(case)
    for condition, shown in fresh["conditions"].items():
        for name, now in shown.items():
            place = f"conditions.{condition}.{name}"
            said = entry["conditions"][condition][name]
            if said is None and now is None:  # nothing that the core has: no LSE without softmax
                continue
            if said is not None and now is not None and is_summary(said) != is_summary(now):
                yield f"{place}: is {'' if is_summary(said) else 'not '}summarised, unlike the others"
                continue
            bound = np.inf if np.isnan(bounds[name]) else bounds[name]  # what overflowed bounds nothing
            forgiven = 2 * bound if intact else 0.0
            yield from _numbers_differ(said, now, place, tolerance if intact else Tolerance(0, 0), forgiven)


def _numbers_differ(said: Any, now: Any, place: str, tolerance: Tolerance, forgiven: float) -> Iterator[str]:
    """Name the first number of an array, or each of a summary, that is not what it should be."""
    if said is None or now is None:
        yield f"{place}: is missing" if said is None else f"{place}: is there, but the core has none"
        return
    if is_summary(now):
        for name in ("shape", "smallest", "largest", "mean"):
            one, other = (np.array(summary[name], dtype=np.float64) for summary in (said, now))
            if one.shape != other.shape or not _agree(one, other, tolerance, forgiven).all():
                yield f"{place}.{name}: says {said[name]!r}, judged anew {now[name]!r}"
        return
    one, other = np.array(said, dtype=np.float64), np.array(now, dtype=np.float64)
    wrong = ~_agree(one, other, tolerance, forgiven)
    if wrong.any():
        first = tuple(map(int, np.argwhere(wrong)[0]))
        where = "".join(f"[{index}]" for index in first)
        one_said, other_said = ("null" if np.isnan(array[first]) else str(array[first]) for array in (one, other))
        yield f"{place}{where}: says {one_said}, judged anew {other_said}"


def _agree(one: Array, other: Array, tolerance: Tolerance, forgiven: float) -> Flags:
    limit = np.maximum(comparison.limit_of(tolerance, one, other), forgiven)
    same: Flags = (np.abs(one - other) <= limit) | (np.isnan(one) & np.isnan(other))
    return same


def is_summary(value: Any) -> bool:
    """Say whether a stored array is a summary."""
    return isinstance(value, dict) and "sha256" in value


def summarised_for_size(entry: Document) -> bool:
    """Say whether arrays of a case are summarised because they are large, and none that is not."""
    arrays = [array for shown in entry["conditions"].values() for array in shown.values()]
    return any(map(is_summary, arrays)) and detail_of(arrays) == "auto"


def detail_of(arrays: Iterable[Any]) -> str:
    """Say with which detail arrays were stored.

    `full` where one is whole that `auto` would have summarised; `summary` where one is summarised that `auto` would
    have kept.
    """
    for array in arrays:
        if isinstance(array, list) and np.array(array, dtype=object).size > LARGEST["auto"]:
            return "full"
        if is_summary(array) and math.prod(array["shape"]) <= LARGEST["auto"]:
            return "summary"
    return "auto"
