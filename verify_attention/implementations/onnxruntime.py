"""The `Attention` operator of ONNX in ONNX Runtime, on its CPU provider.

It is asked in opset 24, which has a kernel of its own for float32 and float16; for float64, and with windows, for which
opset 25 is needed, the operator is taken apart into others. What the operator does, and how it is asked, is the same as
in ONNX's reference. It has no sink and no rotation, and no bfloat16 on a CPU.
"""

from __future__ import annotations

import numpy as np

from verify_attention.functions import Asked
from verify_attention.model import Adapter, Array, Divergence
from verify_attention.translation import onnx_attention
from verify_attention.translation.onnx_attention import DOCS, Evaluator, Run, counted

OPSET = 24
ERRORS_ONLY = 3


def load(dtype: str) -> Asked:
    """Import ONNX Runtime, and return its operator for arrays of a dtype."""
    import onnxruntime  # noqa: F401, PLC0415 - whether it can be imported is found out now

    return Asked(onnx_attention.attention(dtype, Evaluator(_prepare, OPSET)))


def _prepare(model: object) -> Run:
    import onnxruntime  # noqa: PLC0415 - only who asks for it pays for it

    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = 1  # the arrays are small
    binary = model.SerializeToString()  # type: ignore[attr-defined]
    session = onnxruntime.InferenceSession(binary, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))


def _raw(inputs: dict[str, Array], **attributes: float) -> dict[str, Array]:
    return onnx_attention.raw(Evaluator(_prepare, OPSET), inputs, **attributes)


def _hidden_scores_are_finite() -> bool:
    one_hidden = np.array([True, False]).reshape(1, 1, 1, 2)
    return bool(_raw(counted(1, 2, attn_mask=one_hidden))["scores"][..., 1] == np.finfo(np.float32).min)


def _root_of_default_scale_is_float32() -> bool:
    ones = np.ones((1, 1, 1, 2))
    return bool(1e-10 < abs(_raw({"Q": ones, "K": ones, "V": ones})["scores"].item() - 2**0.5) < 1e-6)


IMPLEMENTATION = Adapter(
    __name__,
    __doc__,
    load=load,
    libraries=("onnxruntime", "onnx"),
    install=("onnxruntime", "onnx"),
    dtypes=("float64", "float32", "float16"),
    computes_in={"float16": "float32"},
    divergences=(
        *onnx_attention.divergences(Evaluator(_prepare, OPSET)),
        Divergence(
            "scores that a boolean mask hides are shown as the type's lowest number in float32 and float16",
            "here they are −∞; the adapter shows −∞ instead, and the weights of such keys are 0 in both",
            DOCS,
            _hidden_scores_are_finite,
        ),
        Divergence(
            "the root of the scale is taken in float32, also where all arrays are float64 and no scale is given",
            "attributes are float32; the adapter gives a power of four, and multiplies queries by the rest",
            DOCS,
            _root_of_default_scale_is_float32,
        ),
    ),
)
