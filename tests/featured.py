"""Random cases with features: any that fit together, with parameters of any kind that each has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from making import random_case

from verify_attention.departures import feature, visible
from verify_attention.model import AddsColumn, Case, Fills, Hides, Normalises


def some(draw: np.random.Generator, *choices: Any) -> Any:
    """Return one of the choices."""
    return choices[draw.integers(len(choices))]


def of_norm(draw: np.random.Generator, case: Case) -> Any:
    gains = {"q_gain": draw.normal(size=case.bQ.shape), "k_gain": draw.normal(size=case.bK.shape)}
    return {
        "kind": some(draw, "l2", "rms", "layer"),
        "bias": some(draw, "before", "after"),
        "rotation": some(draw, "before", "after"),
        **some(draw, {}, {"eps": some(draw, 1e-12, 1e-5, 0.1, 2.0)}),
        **some(draw, {}, gains),
    }


def of_rope(draw: np.random.Generator, case: Case) -> Any:
    _, rows, keys = case.scores_shape
    places = {"q_positions": draw.integers(0, 50, rows) * 1.0, "k_positions": draw.uniform(-3, 20, keys)}
    dims = {"base": some(draw, 10.0, 500.0), "rotary_dims": some(draw, *range(2, case.d_k + 1, 2))}
    order = {"layout": some(draw, "half", "interleaved"), "bias": some(draw, "before", "after")}
    return {**order, **some(draw, {}, dims), **some(draw, {}, places)}


def of_normaliser(draw: np.random.Generator, case: Case) -> Any:
    kind = some(draw, "sigmoid", "sparsemax", "top-k")
    return {"kind": kind, "k": int(draw.integers(1, case.keys.shape[1] + 1))} if kind == "top-k" else {"kind": kind}


def of_temperature(draw: np.random.Generator, case: Case) -> Any:
    heads, rows, _ = case.scores_shape
    of_heads, of_rows = {"heads": draw.uniform(0.5, 2, heads)}, {"rows": draw.uniform(0.5, 2, rows)}
    return some(draw, of_heads, of_rows, {**of_heads, **of_rows})


def of_appended_key(draw: np.random.Generator, case: Case) -> Any:
    value = {"value": draw.normal(size=(len(case.keys), case.d_v))}
    return {"key": draw.normal(size=case.bK.shape), **some(draw, {}, value)}


PARAMETERS: dict[str, Callable[[np.random.Generator, Case], Any]] = {
    "key_shifts": lambda draw, case: draw.normal(size=case.keys.shape),
    "qk_norm": of_norm,
    "rope": of_rope,
    "temperature": of_temperature,
    "softcap": lambda draw, _case: some(draw, 0.5, 1.0, 5.0, 50.0),
    "score_bias": lambda draw, case: draw.normal(size=case.scores_shape),
    "alibi": lambda draw, case: some(draw, {}, {"slopes": draw.uniform(0, 1, len(case.q))}),
    "mask": lambda draw, case: draw.random(case.scores_shape) < 0.6,
    "causal": lambda draw, _case: some(draw, "lower-right", "upper-left"),
    "window": lambda draw, _case: (some(draw, None, 0, 1, 2, 3), some(draw, None, 0, 1, 2, 3)),
    "fill": lambda draw, _case: float(-draw.uniform(1, 8)),
    "sink": lambda draw, case: draw.normal(size=len(case.q)),
    "softmax_plus_one": lambda _draw, _case: True,
    "zero_key": lambda _draw, _case: True,
    "appended_key": of_appended_key,
    "normaliser": of_normaliser,
}
NAMES = tuple(PARAMETERS)


def completed(case: Case, given: dict[str, Any]) -> Case:
    """Return the case with features, every default filled in as the package does it."""
    given = {name: given[name] for name in NAMES if name in given}
    case = case.but(features=given)
    for name in given:
        case = case.but(features={**case.features, name: feature(name).complete(case.features[name], case)})
    return case


def with_seen_keys(case: Case) -> Case | None:
    """Return the case, with a mask opened where it leaves a row no key; None where that does not help."""
    seen = visible(case)
    if seen is None or seen.any(axis=-1).all():
        return case
    if "mask" not in case.features:
        return None
    without = visible(case.but(features={name: own for name, own in case.features.items() if name != "mask"}))
    everything = np.ones(case.scores_shape, dtype=bool) if without is None else without
    if not everything.any(axis=-1).all():
        return None
    opened = case.features["mask"] | (everything & ~seen.any(axis=-1, keepdims=True))
    return case.but(features={**case.features, "mask": opened})


def with_features(draw: np.random.Generator, chosen: Any, case: Case | None = None) -> Case | None:
    """Return a case with chosen features, or None where those that were drawn do not fit together."""
    case = random_case(draw) if case is None else case
    made = completed(case, {name: PARAMETERS[name](draw, case) for name in NAMES if name in chosen})
    acts = {type(feature(name).act) for name in made.features}
    if acts >= {Normalises, AddsColumn} or (Fills in acts and Hides not in acts):
        return None
    if any(list(feature(name).refuse(made)) for name in made.features):
        return None
    return with_seen_keys(made)


def draw_cases(draw: np.random.Generator, count: int, fewest: int = 1, most: int = 4) -> Iterator[Case]:
    """Yield random cases of the usual sizes with some features each."""
    while count:
        chosen = draw.choice(NAMES, size=int(draw.integers(fewest, most + 1)), replace=False).tolist()
        extra = {} if draw.random() < 0.8 else {"values": None, "bV": None}
        case = with_features(draw, chosen, random_case(draw, **extra))
        if case is not None:
            count -= 1
            yield case


def wild(draw: np.random.Generator, count: int) -> Iterator[Case]:
    """Yield random cases of any small shape, with numbers of any size from 1e-3 to 1e3, and some features each."""

    def numbers(*shape: int) -> np.ndarray:
        sizes = ((1,) * len(shape), (*shape[:-1], 1), (1,) * (len(shape) - 1) + shape[-1:])[draw.integers(3)]
        return draw.normal(size=shape) * 10.0 ** draw.uniform(-3, 3, size=sizes)

    while count:
        groups, rows, keys = (int(draw.integers(1, top)) for top in (3, 5, 7))
        heads, width, value_width = (
            groups * int(draw.integers(1, 3)),
            int(draw.integers(2, 9)),
            int(draw.integers(1, 4)),
        )
        valued = draw.random() < 0.7
        plain = Case(
            id="wild",
            q=numbers(heads, rows, width),
            keys=numbers(groups, keys, width),
            bQ=numbers(heads, width) * (draw.random() < 0.9),
            bK=numbers(groups, width),
            values=numbers(groups, keys, value_width) if valued else None,
            bV=numbers(groups, value_width if valued else keys) if draw.random() < 0.5 else None,
            scale=width**-0.5 if draw.random() < 0.7 else float(10.0 ** draw.uniform(-3, 1)),
        )
        chosen = draw.choice(NAMES, size=int(draw.integers(1, 5)), replace=False).tolist()
        case = with_features(draw, chosen, plain)
        if case is not None:
            count -= 1
            yield resized(draw, case)


def resized(draw: np.random.Generator, case: Case) -> Case:
    """Return the case with the numbers of its features of any size."""

    def larger(array: Any) -> Any:
        return array * 10.0 ** draw.uniform(-3, 3)

    own = dict(case.features)
    for name in sorted(own.keys() & {"key_shifts", "score_bias", "sink", "softcap", "fill"}):
        own[name] = larger(own[name])
    for name in sorted(own.keys() & {"appended_key", "temperature", "alibi", "qk_norm", "rope"}):
        arrays = {inner: larger(array) for inner, array in own[name].items() if isinstance(array, np.ndarray)}
        own[name] = {**own[name], **arrays}
    return case.but(features=own)
