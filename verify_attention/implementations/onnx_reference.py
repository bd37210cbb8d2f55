"""The `Attention` operator of ONNX in `onnx.reference.ReferenceEvaluator`, numpy code that goes with the standard.

It is asked in opset 25, which has windows. In float16 and bfloat16 every intermediate number is rounded to that type.
What the operator does, and how it is asked, is the same as in ONNX Runtime. It has no sink and no rotation.
"""

from __future__ import annotations

import numpy as np

from verify_attention.functions import Asked
from verify_attention.model import Adapter, Array, Divergence
from verify_attention.translation import onnx_attention
from verify_attention.translation.onnx_attention import DOCS, Evaluator, Run, counted

OPSET = 25


def load(dtype: str) -> Asked:
    """Import ONNX, and return its operator for arrays of a dtype."""
    import onnx.reference  # noqa: F401, PLC0415 - whether it can be imported is found out now

    return Asked(onnx_attention.attention(dtype, Evaluator(_prepare, OPSET)))


def _prepare(model: object) -> Run:
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415 - only who asks for it pays for it

    evaluator = ReferenceEvaluator(model)
    return lambda inputs: evaluator.run(None, dict(inputs))


def _raw(inputs: dict[str, Array], **attributes: float) -> dict[str, Array]:
    return onnx_attention.raw(Evaluator(_prepare, OPSET), inputs, **attributes)


def _window_from_upper_left() -> bool:
    return bool(_raw(counted(1, 3), left_window_size=0, right_window_size=0)["output"] == 1)


def _root_of_scale_is_float32() -> bool:
    one = np.ones((1, 1, 1, 1))
    return bool(1e-10 < abs(_raw({"Q": one, "K": one, "V": one}, scale=0.5)["scores"].item() - 0.5) < 1e-6)


def _bfloat16_sum_stalls() -> bool:
    many = counted(1, 1024)
    kind = onnx_attention.stored("bfloat16")
    given = {name: array.astype(kind) for name, array in many.items()}
    return bool(_raw(given)["weights"].astype(np.float64).sum() > 2)


IMPLEMENTATION = Adapter(
    __name__,
    __doc__,
    load=load,
    libraries=("onnx",),
    install=("onnx",),
    dtypes=("float64", "float32", "float16", "bfloat16"),
    divergences=(
        *onnx_attention.divergences(Evaluator(_prepare, OPSET)),
        Divergence(
            "windows count from the first key, unless there is a cache",
            "here a window is around the aligned position; the adapter gives the first keys as a cache then",
            DOCS,
            _window_from_upper_left,
        ),
        Divergence(
            "the root of a scale is taken in float32, also where all arrays are float64",
            "attributes are float32; the adapter gives a power of four, and multiplies queries by the rest",
            DOCS,
            _root_of_scale_is_float32,
        ),
        Divergence(
            "in bfloat16 the sum of a row's exponentials stops growing at 256",
            "each partial sum is rounded: weights of 1,024 equal keys sum to 4, which the limits for bfloat16 allow",
            DOCS,
            _bfloat16_sum_stalls,
        ),
    ),
)
