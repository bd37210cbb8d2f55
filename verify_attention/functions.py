"""Functions of arrays under test: what they are asked, from a case, and what a trace makes of their answer.

    def attention(q, k, v, *, mask=None, score_bias=None, causal=None, window=None, scale=None, softcap=None,
                  sink=None, rope=None, bQ=None, bK=None, bV=None): ...

Arrays are q `[B, H, Tq, d_k]`, k `[B, G, Tk, d_k]` and v `[B, G, Tk, d_v]`; it returns the output `[B, H, Tq, d_v]`,
or a mapping with `output` and any of `weights`, `scores` and `lse`. Only what a case uses is passed: the rest keeps
the function's own defaults.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from verify_attention import selection
from verify_attention.model import BLOCK, Array, Case, NotShownError, Trace, UnusableError
from verify_attention.structure import showing_weights

Function: TypeAlias = Callable[..., Any]
OPTIONS = ("mask", "score_bias", "causal", "window", "scale", "softcap", "sink", "rope", "bQ", "bK", "bV")
BIASES = {"bQ": "q", "bK": "k", "bV": "v"}
SAID = frozenset(
    {"key_shifts", "mask", "causal", "window", "score_bias", "alibi", "softcap", "sink", "softmax_plus_one", "rope"}
)
BETWEEN = 77.0  # lies between the numbers of a strided array, and must not be read
NUMPY = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": np.float32}


@dataclass(frozen=True)
class Asked:
    """A function of arrays as an implementation: a case's arrays go in, a trace comes out.

    Arrays come in the dtype of the case's precision; numpy has no bfloat16, so that such numbers come in float32.

    Raises, when called:
        NotImplementedError: the case has what the function's signature, or this interface, does not name.
        UnusableError: the function returned something else than it should.

    """

    function: Function

    @cached_property
    def names(self) -> frozenset[str]:
        """The options that the function names: thousands of cases ask, and looking takes longer than attending."""
        return named(self.function)

    def __call__(self, case: Case) -> Trace:
        """Ask about a case; weights that are not shown are read from the output with the identity for values."""
        names = self.names
        shown, arguments = self._answer(case, names)
        output = shown.pop("output")
        if "weights" not in shown:
            weights = self._through_identity(case, names)
            shown |= {} if weights is None else {"weights": weights}
        return Trace(output, shown, arguments)

    def _through_identity(self, case: Case, names: frozenset[str]) -> Array | None:
        if case.keys.shape[1] ** 2 * len(case.keys) > BLOCK:
            return None
        try:
            return self._answer(_with_identity(case), names)[0]["output"]
        except NotImplementedError:
            return None  # values as wide as there are keys may be more than it can do

    def _answer(self, case: Case, names: frozenset[str]) -> tuple[dict[str, Array], dict[str, tuple[Array, Array]]]:
        given = arguments_of(case, names)
        laid = {name: _laid(value, case.posed.layout) for name, value in given.items()}
        if case.posed.after is not None:
            used = arguments_of(case.posed.after, names)
            self._call(used)
            laid = {name: _written(used[name], value) for name, value in laid.items()}
        before = _arrays(laid)
        answer = self._call(laid)
        shown, after = _shown(answer, case, 1 + len(case.posed.company)), _arrays(laid)
        return shown, {name: (array, _same_place(after.get(name), array)) for name, array in before.items()}

    def _call(self, given: Mapping[str, Any]) -> Any:
        vectors = [given[name] for name in BIASES.values()]
        options = {name: value for name, value in given.items() if name in OPTIONS}
        with redirect_stdout(sys.stderr), np.errstate():  # what it prints is no result, and its settings are its own
            return self.function(*vectors, **options)


def _same_place(after: Array | None, before: Array) -> Array:
    """Return an argument after the call: no numbers where it has another shape now, or is gone."""
    return np.full_like(before, np.nan) if after is None or after.shape != before.shape else after


def _written(used: Any, value: Any) -> Any:
    """Return an array that was used before, with other numbers in it."""
    if not isinstance(value, np.ndarray):
        return value
    used[...] = value
    return used


def _with_identity(case: Case) -> Case:
    company = tuple(map(showing_weights, case.posed.company))
    after = None if case.posed.after is None else showing_weights(case.posed.after)
    return showing_weights(case).but(posed=replace(case.posed, company=company, after=after))


def named(function: Function) -> frozenset[str]:
    """Return the options that a function's signature names; `**kwargs` names all of them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()  # some that are not written in Python do not tell
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return frozenset(OPTIONS)
    by_name = (each.name for each in parameters if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY})
    return frozenset(by_name) & frozenset(OPTIONS)


def strangers(function: Function) -> tuple[list[str], list[str]]:
    """Return the parameters that no option gives: those that have a default, and those that must be given."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [], []
    own = [each for each in parameters if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}]
    positional = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY][:3]
    unknown = [each for each in own if each.name not in {*OPTIONS, *positional}]
    due = [each.name for each in unknown if each.default is each.empty]
    return [each.name for each in unknown if each.name not in due], due


def arguments_of(case: Case, names: frozenset[str]) -> dict[str, Any]:
    """Return q, k, v and the options that a case uses, in the interface's shapes; biases without a name are added.

    Raises:
        NotImplementedError: the case has what the interface, or the names, do not have.

    """
    whole = _expressible(case)
    samples = [_expressible(each) for each in case.posed.company]
    samples.insert(case.posed.seat, whole)
    options = _options(whole, samples)
    unnamed = [name for name in options if name not in names and name not in BIASES]
    if unnamed:
        raise NotImplementedError(f"its signature does not name {', '.join(unnamed)}")
    values = [selection.values(each) for each in samples]
    vectors = {
        "q": np.stack([each.q for each in samples]),
        "k": np.stack([each.keys + (0.0 if each.key_shifts is None else each.key_shifts) for each in samples]),
        "v": np.stack(values),
    }
    for name, vector in BIASES.items():
        if name in options and name not in names:
            vectors[vector] = vectors[vector] + options.pop(name)[:, None]
    kind = NUMPY[case.precision.dtype]
    return {name: _cast(value, kind) for name, value in {**vectors, **options}.items()}


def _expressible(case: Case) -> Case:
    """Return the case without what the interface says in another way.

    Raises:
        NotImplementedError: the interface cannot say it.

    """
    unsaid = sorted(case.features.keys() - SAID)
    if unsaid:
        raise NotImplementedError(f"the interface of a function has no {', '.join(unsaid)}")
    if "rope" in case.features and case.features["rope"]["bias"] == "after":
        raise NotImplementedError("the interface of a function has no rope with the bias after it")
    if {"sink", "softmax_plus_one"} <= case.features.keys():
        raise NotImplementedError("the interface of a function has one sink")
    if case.whole is not None and case.whole.scores_shape != case.scores_shape:
        return selection.spelled_out(case)  # a block's rows do not stand where they seem to
    if "alibi" in case.features:
        features = {name: value for name, value in case.features.items() if name != "alibi"}
        added = selection.said_without_positions(case, "alibi")["score_bias"]
        return case.but(features={**features, "score_bias": features.get("score_bias", 0.0) + added})
    return case


def _options(case: Case, samples: list[Case]) -> dict[str, Any]:
    own = case.features
    options: dict[str, Any] = {name: own[name] for name in ("causal", "window", "softcap") if name in own}
    for name in own.keys() & {"mask", "score_bias"}:
        array = np.stack([np.broadcast_to(each.features[name], each.scores_shape) for each in samples])
        options[name] = _without_copies(array) if case.posed.layout == "broadcast" else array
    if not math.isclose(case.scale, 1 / math.sqrt(case.d_k), rel_tol=4e-16):  # an ulp or two is how it was written
        options["scale"] = case.scale
    if "sink" in own:
        options["sink"] = own["sink"]
    if "softmax_plus_one" in own:
        options["sink"] = np.zeros(len(case.q))
    if "rope" in own:
        rope = {name: own["rope"][name] for name in ("base", "layout", "rotary_dims")}
        options["rope"] = rope | {name: own["rope"][name].copy() for name in ("q_positions", "k_positions")}
    for name in BIASES:
        bias = getattr(case, name)
        if bias is not None and (bias.any() or case.posed.zeros):
            options[name] = bias
    return options


def _without_copies(array: Array) -> Array:
    """Return one sample, one head and one row, where all are the same."""
    for axis in (0, 1, 2):
        first = array.take([0], axis=axis)
        array = first if (array == first).all() else array
    return array


def _cast(value: Any, kind: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return np.array(value, dtype=bool if value.dtype == bool else kind, order="C")


def _laid(value: Any, layout: str) -> Any:
    """Return an array that holds the same numbers, and lies in memory as the layout says."""
    if not isinstance(value, np.ndarray) or layout == "contiguous":
        return value
    if layout == "strided":
        wide = np.full((*value.shape[:-1], 2 * value.shape[-1]), BETWEEN).astype(value.dtype)
        wide[..., ::2] = value
        return wide[..., ::2]
    if layout == "transposed":
        axes = (0, 2, 1, 3) if value.ndim == 4 else tuple(range(value.ndim))[::-1]
        back: Array = np.ascontiguousarray(value.transpose(axes)).transpose(axes)
        return back
    if value.ndim < 4 or (value != value[:1]).any():
        return value
    repeated: Array = np.lib.stride_tricks.as_strided(value, strides=(0, *value.strides[1:]), writeable=True)
    return repeated


def _arrays(given: Mapping[str, Any]) -> dict[str, Array]:
    """Return every array among arguments, `[…, …, n]`: arrays and numbers inside a mapping too."""
    found: dict[str, Array] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            parts = {key: np.array([part]) if isinstance(part, int | float) else part for key, part in value.items()}
            found |= {f"{name}.{key}": part for key, part in _arrays(parts).items()}
        elif isinstance(value, np.ndarray):
            last = value.shape[-2:] if value.ndim > 1 else (1, *value.shape)
            found[name] = np.array(value, dtype=np.float64).reshape(-1, *last)
    return found


def _shown(answer: Any, case: Case, samples: int) -> dict[str, Array]:
    """Return the case's own part of what a function returned, as float64 arrays.

    Raises:
        UnusableError: it is no array and no mapping of arrays, or one has the wrong shape.

    """
    heads, rows, keys = case.scores_shape
    shapes = {
        "output": (samples, heads, rows, case.d_v),
        "weights": (samples, heads, rows, keys),
        "scores": (samples, heads, rows, keys),
        "lse": (samples, heads, rows),
    }
    parts = answer if isinstance(answer, Mapping) else {"output": answer}
    unknown = [str(name) for name in parts if name not in shapes]
    if unknown or "output" not in parts:
        found = f"a mapping with {', '.join(map(str, parts)) or 'nothing'}"
        raise UnusableError(f"returned {found}, expected output and any of weights, scores, lse")
    return {name: _own_part(name, part, shapes[name], case.posed.seat) for name, part in parts.items()}


def _own_part(name: str, part: Any, shape: tuple[int, ...], seat: int) -> Array:
    if not isinstance(part, np.ndarray) or isinstance(part, np.ma.MaskedArray):
        kind = f"{type(part).__module__.partition('.')[0]}.{type(part).__qualname__}".removeprefix("builtins.")
        raise UnusableError(f"returned {kind} as {name}, expected a numpy array of shape {shape}")
    if part.dtype.kind not in "fiu" and part.dtype.name != "bfloat16":
        raise UnusableError(f"returned {part.dtype} numbers as {name}, expected real ones")
    if part.shape != shape:
        swapped = part.ndim == 4 and part.swapaxes(1, 2).shape == shape
        hint = "; axes 1 and 2 look exchanged" if swapped else ""
        raise UnusableError(f"returned {name} of shape {part.shape}, expected {shape}{hint}")
    return np.array(part[seat], dtype=np.float64)


def arguments(trace: Trace) -> Mapping[str, tuple[Array, Array]]:
    """Return the arrays that a function was given, before and after the call.

    Raises:
        NotShownError: the trace is of what takes no arrays.

    """
    if trace.arguments is None:
        raise NotShownError("arguments")
    return trace.arguments
