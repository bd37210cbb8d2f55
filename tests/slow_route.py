"""Attention with every feature by another route: lists, loops and one function of mathematics after the other.

It follows the definitions in words, shares no code with the package, and fills in its own defaults. Its arithmetic is
`math` in float64 or `mpmath` at 50 digits; all sums are `fsum`. `slow_attention` is an implementation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import permutations
from types import ModuleType
from typing import Any

import mpmath
import numpy as np

from verify_attention.model import Case, Trace

mpmath.mp.dps = 50
CONDITIONS = ("none", "q", "k", "qk")


def lists(array: Any, m: ModuleType) -> Any:
    """Return an array as nested lists of the arithmetic's numbers."""
    if isinstance(array, np.ndarray | list):
        return [lists(item, m) for item in array]
    return float(array) if m is math else m.mpf(float(array))


def dot(left: list[Any], right: list[Any], m: ModuleType) -> Any:
    return m.fsum(a * b for a, b in zip(left, right, strict=True))


def plus(*rows: list[Any]) -> list[Any]:
    return [sum(column) for column in zip(*rows, strict=True)]


def positions(case: Case) -> tuple[list[int], list[int]]:
    """Return where the queries stand on the key axis, and where the keys do."""
    keys = case.keys.shape[1]
    queries = (case.whole if case.whole is not None else case).q.shape[1]
    missing = 0 if case.features.get("causal") == "upper-left" else keys - queries
    return [case.first_row + row + missing for row in range(case.q.shape[1])], list(range(keys))


def order_of_steps(features: dict[str, Any]) -> list[str]:
    """Return bias, norm and rotation in the one order that agrees with all that is said of them."""
    steps = ["bias", *(["norm"] if "qk_norm" in features else []), *(["rotation"] if "rope" in features else [])]
    wanted = []
    if "qk_norm" in features:
        norm = features["qk_norm"]
        wanted.append(("bias", "norm") if norm.get("bias", "before") == "before" else ("norm", "bias"))
        if "rope" in features:
            wanted.append(("norm", "rotation") if norm.get("rotation", "after") == "after" else ("rotation", "norm"))
    if "rope" in features:
        bias = features["rope"].get("bias", "before")
        wanted.append(("bias", "rotation") if bias == "before" else ("rotation", "bias"))
    fitting = [order for order in permutations(steps) if all(order.index(a) < order.index(b) for a, b in wanted)]
    assert len(fitting) == 1 or (not wanted and len(steps) == 1), (wanted, fitting)
    return list(fitting[0])


def normed(vector: list[Any], own: dict[str, Any], gain: list[Any], m: ModuleType) -> list[Any]:
    """Divide by the length, the root mean square or the standard deviation, and multiply by the gain."""
    count = len(vector)
    eps = lists(own.get("eps", 1e-6), m)
    if own["kind"] == "layer":
        mean = m.fsum(vector) / count
        vector = [number - mean for number in vector]
    power = m.fsum(number * number for number in vector)
    if own["kind"] != "l2":
        power = power / count
    return [number / m.sqrt(power + eps) * factor for number, factor in zip(vector, gain, strict=True)]


def turned(vector: list[Any], position: Any, own: dict[str, Any], m: ModuleType) -> list[Any]:
    """Turn pair after pair by position·base^(−2t/r)."""
    dims = int(own.get("rotary_dims", len(vector) - len(vector) % 2))
    base = lists(own.get("base", 10000.0), m)
    result = list(vector)
    for t in range(dims // 2):
        a, b = (t, t + dims // 2) if own.get("layout", "half") == "half" else (2 * t, 2 * t + 1)
        angle = position * base ** (lists(-2 * t, m) / dims)
        result[a] = vector[a] * m.cos(angle) - vector[b] * m.sin(angle)
        result[b] = vector[a] * m.sin(angle) + vector[b] * m.cos(angle)
    return result


def prepared(case: Case, side: str, vectors: list[Any], bias: list[Any], m: ModuleType) -> list[Any]:
    """Do to every vector of every head what the features say, `[heads][rows][d_k]`."""
    features = dict(case.features)
    places = positions(case)[0 if side == "q" else 1]
    rope, norm = features.get("rope", {}), features.get("qk_norm", {})
    at = lists(rope.get(f"{side}_positions", places), m)
    ones = [lists([1.0] * case.d_k, m)] * len(vectors)
    gains = lists(norm[f"{side}_gain"], m) if f"{side}_gain" in norm else ones
    shifts = lists(features["key_shifts"], m) if side == "k" and "key_shifts" in features else None
    steps = {
        "norm": lambda vector, head, _index: normed(vector, norm, gains[head], m),
        "rotation": lambda vector, _head, index: turned(vector, at[index], rope, m),
        "bias": lambda vector, head, index: plus(vector, bias[head], *([shifts[head][index]] if shifts else [])),
    }
    order = order_of_steps(features)
    return [
        [
            reduce(lambda found, step: steps[step](found, head, index), order, vector)
            for index, vector in enumerate(rows)
        ]
        for head, rows in enumerate(vectors)
    ]


def may_see(case: Case, head: int, row: int, key: int) -> bool:
    """Say whether a query may attend to a key: mask, causality and window together."""
    features = case.features
    place = positions(case)[0][row]
    if "mask" in features and not features["mask"][head, row, key]:
        return False
    if "causal" in features and key > place:
        return False
    left, right = features.get("window", (None, None))
    return not ((left is not None and key < place - left) or (right is not None and key > place + right))


def score(case: Case, head: int, row: int, key: int, product: Any, m: ModuleType) -> Any:
    """Return a score as it enters the exponential, from the product of its query and its key."""
    features = case.features
    found = lists(case.scale, m) * product
    if "temperature" in features:
        own = features["temperature"]
        found = found / lists(own["heads"][head] if "heads" in own else 1.0, m)
        found = found / lists(own["rows"][row] if "rows" in own else 1.0, m)
    if "softcap" in features:
        cap = lists(features["softcap"], m)
        found = cap * m.tanh(found / cap)
    if "score_bias" in features:
        found = found + lists(features["score_bias"][head, row, key], m)
    if "alibi" in features:
        given = features["alibi"].get("slopes")
        count = len(case.q) if case.whole is None else len(case.whole.q)
        slope = lists(2.0, m) ** (lists(-8 * (case.first_head + head + 1), m) / count)
        slope = slope if given is None else lists(given[head], m)
        found = found - slope * abs(positions(case)[0][row] - key)
    if may_see(case, head, row, key):
        return found
    return lists(features.get("fill", -math.inf), m)


def extra_keys(case: Case, head: int, query: list[Any], m: ModuleType) -> list[tuple[Any, list[Any]]]:
    """Return the score and the value of each key that is not among the case's."""
    features, zeros = case.features, lists([0.0] * case.d_v, m)
    group = head // (len(case.q) // len(case.keys))
    found = []
    if "sink" in features:
        sink = features["sink"]
        found.append((lists(sink[head] if isinstance(sink, np.ndarray) else sink, m), zeros))
    if "softmax_plus_one" in features:
        found.append((lists(0.0, m), zeros))
    if "zero_key" in features:
        found.append((lists(case.scale, m) * dot(query, lists([0.0] * case.d_k, m), m), zeros))
    if "appended_key" in features:
        own = features["appended_key"]
        value = lists(own["value"][group], m) if "value" in own else zeros
        found.append((lists(case.scale, m) * dot(query, lists(own["key"][group], m), m), value))
    return found


def exact_fraction(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, float) else Fraction(*mpmath.libmp.to_rational(number._mpf_))


def on_the_simplex(scores: list[Any], m: ModuleType) -> list[Any]:
    """Return the nearest point of the simplex: the largest `count` scores less their common excess, exactly."""
    exact = [None if number == -math.inf else exact_fraction(number) for number in scores]
    falling = sorted((number for number in exact if number is not None), reverse=True)
    for count in range(1, len(falling) + 1):
        excess = (sum(falling[:count]) - 1) / count
        if falling[count - 1] > excess and (count == len(falling) or falling[count] <= excess):
            points = [Fraction(0) if number is None or number <= excess else number - excess for number in exact]
            return [m.mpf(p.numerator) / p.denominator if m is not math else float(p) for p in points]
    raise AssertionError("there is always one")


def normalised(scores: list[Any], own: dict[str, Any], m: ModuleType) -> list[Any]:
    """Return the weights of a row where something stands for softmax."""
    one = lists(1.0, m)
    if own["kind"] == "sigmoid":
        return [one / (1 + m.exp(-s)) if s > -700 else m.exp(s) for s in scores]
    if own["kind"] == "sparsemax":
        return on_the_simplex(scores, m)
    best = sorted(range(len(scores)), key=lambda key: (-scores[key], key))[: int(own["k"])]
    peak = max(scores)
    total = m.fsum(m.exp(scores[key] - peak) for key in best)
    return [m.exp(s - peak) / total if key in best else one * 0 for key, s in enumerate(scores)]


def slow_attention(case: Case, condition: str | None = None, m: ModuleType = math) -> Trace:
    """Attend as the case stands, or under a condition; at 50 digits, rounded at the end, where `m` is mpmath."""
    found = slow_lists(case, condition, m)
    arrays = {
        name: np.array([[lists_of_floats(row) for row in head] for head in heads], dtype=np.float64)
        for name, heads in found.items()
    }
    return Trace(arrays.pop("output"), arrays)


def lists_of_floats(value: Any) -> Any:
    return [float(number) for number in value] if isinstance(value, list) else float(value)


def slow_lists(case: Case, condition: str | None, m: ModuleType) -> dict[str, list[Any]]:
    """Return scores, weights, output and LSE, each `[H][Tq][…]`."""
    query_bias, key_bias = lists(case.bQ, m), lists(case.bK, m)
    if condition is not None and "q" not in condition:
        query_bias = lists(np.zeros_like(case.bQ), m)
    if condition is not None and "k" not in condition:
        key_bias = lists(np.zeros_like(case.bK), m)
        case = case.but(features={name: own for name, own in case.features.items() if name != "key_shifts"})
    queries = prepared(case, "q", lists(case.q, m), query_bias, m)
    keys = prepared(case, "k", lists(case.keys, m), key_bias, m)
    values = lists(np.stack([np.eye(case.keys.shape[1])] * len(case.keys)) if case.values is None else case.values, m)
    if case.bV is not None:
        biases = lists(case.bV, m)
        values = [[plus(value, bias) for value in rows] for rows, bias in zip(values, biases, strict=True)]
    found: dict[str, list[Any]] = {"scores": [], "weights": [], "output": [], "lse": []}
    for head, rows in enumerate(queries):
        group = head // (len(queries) // len(keys))
        rows_found = []
        for row, query in enumerate(rows):
            scores = [score(case, head, row, place, dot(query, key, m), m) for place, key in enumerate(keys[group])]
            rows_found.append(of_row(case, scores, extra_keys(case, head, query, m), values[group], m))
        for name, by_head in found.items():
            by_head.append([entry[name] for entry in rows_found])
    if "normaliser" in case.features:
        del found["lse"]
    return found


def of_row(
    case: Case, scores: list[Any], extra: list[tuple[Any, list[Any]]], values: list[list[Any]], m: ModuleType
) -> dict[str, Any]:
    """Normalise a row of scores, and mix the values, those of added keys too."""
    if "normaliser" in case.features:
        weights, shares, lse = normalised(scores, case.features["normaliser"], m), [], None
    else:
        logits = [*scores, *(logit for logit, _ in extra)]
        peak = max(logits)
        total = m.fsum(m.exp(logit - peak) for logit in logits)
        weights = [m.exp(logit - peak) / total for logit in scores]
        shares = [m.exp(logit - peak) / total for logit, _ in extra]
        lse = peak + m.log(total)
    output = []
    for channel, column in enumerate(zip(*values, strict=True)):
        mixed = [weight * number for weight, number in zip(weights, column, strict=True)]
        added = [share * value[channel] for share, (_, value) in zip(shares, extra, strict=True)]
        output.append(m.fsum([*mixed, *added]))
    return {"scores": scores, "weights": weights, "output": output, "lse": lse}
