"""Arrays, and the words that have a fixed set of values."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.int_]
Condition: TypeAlias = Literal["none", "q", "k", "qk"]
Expectation: TypeAlias = Literal["holds", "breaks", "within-rounding"]
Cause: TypeAlias = Literal["mathematics", "rounding", "implementation"]
Verdict: TypeAlias = Literal["proved", "refuted", "bounded", "undecided", "skipped"]
Status: TypeAlias = Literal["pass", "fail", "inconclusive", "skipped", "crashed"]

CONDITIONS: tuple[Condition, ...] = ("none", "q", "k", "qk")
STATUSES: tuple[Status, ...] = ("pass", "fail", "inconclusive", "skipped", "crashed")
BROKEN: frozenset[Status] = frozenset({"fail", "inconclusive", "crashed"})
QUANTITIES = ("scores", "weights", "output")
