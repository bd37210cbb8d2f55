"""The `Attention` operator of ONNX, as a function of arrays, for whatever can evaluate a model.

One model has the operator three times: for its output alone, and showing its scores (`qk_matmul_output_mode` 2) and
its weights (3), so that the output comes from what the operator does where nothing else is wanted. Causality, masks,
score biases, scale, softcap and grouped heads are its own, and windows from opset 25 on. Where the last query stands at
the last key, the keys before the first query's are a cache (`past_key`, `past_value`), as the operator aligns them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from verify_attention.model import Array, Divergence, Flags
from verify_attention.translation.masks import Window, added, first_position, visible

Run: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]
Function: TypeAlias = Callable[..., dict[str, Array]]
Attributes: TypeAlias = tuple[tuple[str, float], ...]

DOCS = "https://onnx.ai/onnx/operators/onnx__Attention.html"
SHOWS_SCORES, SHOWS_WEIGHTS = 2, 3
WINDOWS_SINCE = 25  # the opset
INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value")
KINDS = {"float64": "DOUBLE", "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "bool": "BOOL"}
LARGEST_POWER = 60  # of four: far inside float32


class Evaluator(NamedTuple):
    """What makes a program of a model, and the opset in which it is asked."""

    prepare: Callable[[Any], Run]
    opset: int


def model(kinds: Mapping[str, str], attributes: Attributes, opset: int) -> Any:
    """Return the model for inputs of some dtypes, by their names."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - only who asks for it pays for it

    def value(name: str, dtype: str) -> Any:
        return helper.make_tensor_value_info(name, getattr(TensorProto, KINDS[dtype]), [None] * 4)

    names = [name if name in kinds else "" for name in INPUTS]
    while not names[-1]:
        names.pop()
    present = ["key", "value"] if "past_key" in kinds else ["", ""]
    outputs = {0: ["output"], SHOWS_SCORES: ["", "scores"], SHOWS_WEIGHTS: ["", "weights"]}
    nodes = []
    for mode, shown in outputs.items():
        caches = [f"{part}{mode}" if part else "" for part in present]
        wanted = [shown[0] or f"output{mode}", *caches, *shown[1:]]
        while not wanted[-1]:
            wanted.pop()
        own = {"qk_matmul_output_mode": mode} if mode else {}
        nodes.append(helper.make_node("Attention", names, wanted, **own, **dict(attributes)))
    dtype = kinds["Q"]
    graph = helper.make_graph(
        nodes,
        "attention",
        [value(name, kind) for name, kind in kinds.items()],
        [value(name, dtype) for name in ("output", "scores", "weights")],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=helper.find_min_ir_version_for(imports))


def attention(dtype: str, evaluator: Evaluator) -> Function:
    """Return the operator as a function of arrays of a dtype."""
    programs = cache(lambda kinds, attributes, opset: evaluator.prepare(model(dict(kinds), attributes, opset)))
    held = stored(dtype)

    def function(  # noqa: PLR0913 - the interface has as many
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Flags | None = None,
        score_bias: Array | None = None,
        causal: str | None = None,
        window: Window | None = None,
        scale: float | None = None,
        softcap: float | None = None,
    ) -> dict[str, Array]:
        factor, attributes = _scaled(dtype, scale, q.shape[3])
        attributes |= _capped(dtype, softcap)
        masking, inputs = _masking(q.shape[2], k.shape[2], mask, score_bias, causal, window)
        attributes |= masking
        inputs = {"Q": q if factor == 1 else q * factor, **_split(k, v, inputs.pop("cached", 0)), **inputs}
        opset = max(evaluator.opset, WINDOWS_SINCE if "left_window_size" in attributes else 0)
        given = {name: array if array.dtype == bool else array.astype(held) for name, array in inputs.items()}
        kinds = tuple((name, array.dtype.name) for name, array in given.items())
        shown = programs(kinds, tuple(sorted(attributes.items())), opset)(given)
        output, scores, weights = (np.asarray(part).astype(q.dtype) for part in shown)
        return {"output": output, "scores": _infinite(scores, held), "weights": weights}

    return function


def raw(evaluator: Evaluator, inputs: Mapping[str, Array], **attributes: float) -> dict[str, Array]:
    """Ask the operator itself, without any translation: `output`, `scores` and `weights`."""
    kinds = {name: array.dtype.name for name, array in inputs.items()}
    run = evaluator.prepare(model(kinds, tuple(attributes.items()), evaluator.opset))
    return dict(zip(("output", "scores", "weights"), run(inputs), strict=True))


def divergences(evaluator: Evaluator) -> tuple[Divergence, ...]:
    """Return what the operator does otherwise than is declared here; each is asked of what evaluates it."""
    hidden = np.zeros((1, 1, 1, 2), bool)
    return (
        Divergence(
            "a row without a visible key gives 0",
            "here such a row is refused when the case is read, so that nothing is asked about it",
            "https://github.com/onnx/onnx/pull/8068",
            lambda: bool(raw(evaluator, counted(1, 2, attn_mask=hidden))["output"] == 0),
        ),
        Divergence(
            "is_causal lets the first query see the first key only, unless there is a cache",
            "lower-right is the default here; the adapter gives the first keys as a cache then",
            DOCS,
            lambda: bool(raw(evaluator, counted(1, 2), is_causal=1)["output"] == 1),
        ),
    )


def counted(rows: int, keys: int, dtype: str = "float32", **inputs: Array) -> dict[str, Array]:
    """Return inputs with scores that are all 0 and values from 1 on, and more of them."""
    values = np.arange(1.0, keys + 1, dtype=dtype).reshape(1, 1, keys, 1)
    zeros = [np.zeros((1, 1, count, 1), dtype) for count in (rows, keys)]
    return {"Q": zeros[0], "K": zeros[1], "V": values, **inputs}


def stored(dtype: str) -> Any:
    """Return the type in which numbers are stored: numpy has no bfloat16 of its own."""
    if dtype != "bfloat16":
        return np.dtype(dtype)
    import ml_dtypes  # noqa: PLC0415 - comes with onnx

    return np.dtype(ml_dtypes.bfloat16)


def _scaled(dtype: str, scale: float | None, width: int) -> tuple[float, dict[str, float]]:
    """Return what queries are multiplied by beforehand, and the attribute.

    Attributes are float32 numbers, and so is the root of the scale: in float64 a power of four is all that arrives
    whole, and the factor is the rest. ONNX Runtime takes the root in float32 even where no scale is given.
    """
    if dtype != "float64":
        return 1.0, {} if scale is None else {"scale": scale}
    wanted = width**-0.5 if scale is None else scale
    power = max(-LARGEST_POWER, min(LARGEST_POWER, round(math.log(wanted, 4))))
    return wanted / 4.0**power, {"scale": 4.0**power}


def _capped(dtype: str, softcap: float | None) -> dict[str, float]:
    if softcap is None:
        return {}
    if dtype == "float64" and float(np.float32(softcap)) != softcap:
        raise NotImplementedError(f"the operator keeps its softcap in float32, where there is no {softcap!r}")
    return {"softcap": softcap}


def _masking(
    rows: int,
    keys: int,
    mask: Flags | None,
    score_bias: Array | None,
    causal: str | None,
    window: Window | None,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the attributes and inputs for what is hidden and added; `cached` keys come before the first query's."""
    first = first_position(causal, rows, keys)
    own = causal is not None or window is not None
    attributes: dict[str, float] = {}
    if own and 0 <= first < keys:
        attributes = {} if causal is None else {"is_causal": 1}
        if window is not None:
            sides = (-1 if side is None else min(side, rows + keys) for side in window)
            attributes |= dict(zip(("left_window_size", "right_window_size"), sides, strict=True))
        seen = mask
    else:
        seen, first = visible(rows, keys, mask, causal, window), 0
    inputs: dict[str, Any] = {"cached": first} if own else {}
    given = seen if score_bias is None else added(seen, score_bias, score_bias.dtype.type)
    if given is not None:  # one row for all is not what the operator takes
        inputs["attn_mask"] = np.ascontiguousarray(np.broadcast_to(given, (*given.shape[:2], rows, keys)))
    return attributes, inputs


def _split(k: Array, v: Array, cached: int) -> dict[str, Array]:
    if not cached:
        return {"K": k, "V": v}
    past = {"past_key": k[:, :, :cached], "past_value": v[:, :, :cached]}
    return {"K": k[:, :, cached:], "V": v[:, :, cached:], **past}


def _infinite(scores: Array, held: Any) -> Array:
    """Return scores with −∞ where a boolean mask of ONNX Runtime's kernel left the lowest number of the type."""
    if held.name == "bfloat16":
        return scores
    return np.where(scores <= np.finfo(held).min, -np.inf, scores)
