"""JAX's `jax.nn.dot_product_attention`, on the CPU, in 64-bit mode.

Masks, score biases, scale and grouped heads are its own; so are `is_causal` and `local_window_size` where all queries
start with the first key, and a mask is written out where they do not. Values as wide as keys are all it takes: zeros
widen the narrower ones. Its softmax is in float32, whatever it is given. It is compiled for each shape, with options of
XLA's that make that quick. It shows its output and its LSE, and has no softcap, sink or rotation, and no float16 and,
for some shapes, no bfloat16 on a CPU when compiled.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from verify_attention.functions import Asked
from verify_attention.model import Adapter, Array, Divergence, Flags
from verify_attention.translation.masks import Window, first_position, visible

DOCS = "https://docs.jax.dev/en/latest/_autosummary/jax.nn.dot_product_attention.html"


def load(dtype: str) -> Asked:
    """Import JAX, and return its attention for arrays of a dtype."""
    library, numbers = _library()
    kind = numbers.dtype(dtype)

    @cache
    def compiled(**options: Any) -> Any:
        ask = partial(library.nn.dot_product_attention, return_residual=True, implementation="xla", **options)
        return library.jit(ask, compiler_options=_QUICK)

    def attention(
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Flags | None = None,
        score_bias: Array | None = None,
        causal: str | None = None,
        window: Window | None = None,
        scale: float | None = None,
    ) -> dict[str, Array]:
        if dtype != "float64" and _largest_score(q, k, scale) > FAR:
            raise NotImplementedError("compiled, JAX may give NaN where float32 scores are beyond 5e8")
        width = max(q.shape[3], v.shape[3])
        mask, options = _masking(q.shape[2], k.shape[2], mask, causal, window)
        if width != q.shape[3] and scale is None:
            scale = q.shape[3] ** -0.5  # zeros widen the vectors, not the scale
        if scale is not None:
            options["scale"] = scale
        with library.default_device(library.devices("cpu")[0]):
            vectors = [numbers.asarray(_laid(array, width), kind) for array in (q, k, v)]
            bias = None if score_bias is None else numbers.asarray(score_bias, kind)
            hides = None if mask is None else numbers.asarray(mask)
            output, lse = (np.asarray(part).astype(q.dtype) for part in compiled(**options)(*vectors, bias, hides))
        return {"output": output.swapaxes(1, 2)[..., : v.shape[3]], "lse": lse.swapaxes(1, 2)}

    return Asked(attention)


FAR = 2.0**29  # a float32 is rounded by up to 32 there, and exponentials overflow from 88 on
_QUICK = {  # each shape is compiled for a few small arrays: a quarter of the time, and the same operations
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}


def _library() -> tuple[Any, Any]:
    """Import JAX so that float64 is float64."""
    import jax  # noqa: PLC0415 - only who asks for it pays for it
    import jax.numpy as jnp  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    return jax, jnp


def _largest_score(q: Array, k: Array, scale: float | None) -> float:
    """Return what no scaled product exceeds."""
    factor = q.shape[3] ** -0.5 if scale is None else scale
    with np.errstate(over="ignore"):
        return float(factor * np.abs(q).astype(np.float64).sum(axis=-1).max() * np.abs(k).max())


def _laid(array: Array, width: int) -> Array:
    """Return vectors in JAX's order of axes, `[B, T, heads, width]`, zeros after their own numbers."""
    return np.pad(array, [(0, 0)] * 3 + [(0, width - array.shape[3])]).swapaxes(1, 2)


def _masking(
    rows: int, keys: int, mask: Flags | None, causal: str | None, window: Window | None
) -> tuple[Flags | None, dict[str, Any]]:
    """Return the mask, and the library's other options for what is hidden."""
    if first_position(causal, rows, keys) != 0:
        return visible(rows, keys, mask, causal, window), {}
    options: dict[str, Any] = {} if causal is None else {"is_causal": True}
    if window is not None:
        options["local_window_size"] = tuple(rows + keys if side is None else min(side, rows + keys) for side in window)
    return mask, options


def _raw(rows: int, keys: int, dtype: str = "float32", **options: Any) -> Array:
    """Ask the library with scores that are all 0 and values from 1 on, `[Tq]`."""
    library, numbers = _library()
    values = numbers.arange(1.0, keys + 1, dtype=dtype).reshape(1, keys, 1, 1)
    zeros = [numbers.zeros((1, count, 1, 1), dtype) for count in (rows, keys)]
    return np.asarray(library.nn.dot_product_attention(*zeros, values, **options)).reshape(-1)


def _hidden(keys: int) -> Any:
    _, numbers = _library()
    return numbers.zeros((1, 1, 1, keys), bool)


def _softmax_is_float32() -> bool:
    _, numbers = _library()
    share = _raw(1, 2, "float64", bias=numbers.array([0.0, 1.0]).reshape(1, 1, 1, 2))[0] - 1
    return bool(1e-10 < abs(share - 1 / (1 + np.exp(-1.0))) < 1e-6)


def _empty_row_is_uniform() -> bool:
    return bool(_raw(1, 2, mask=_hidden(2))[0] == 1.5)


def _upper_left() -> bool:
    return bool(_raw(1, 2, is_causal=True)[0] == 1)


def _window_from_upper_left() -> bool:
    return bool(_raw(1, 3, local_window_size=(0, 0))[0] == 1)


def _one_width() -> bool:
    library, numbers = _library()
    narrow, wide = numbers.zeros((1, 1, 1, 1)), numbers.zeros((1, 1, 1, 2))
    try:
        library.nn.dot_product_attention(narrow, narrow, wide)
    except ValueError:
        return True
    return False


def _far_scores_give_nan() -> bool:
    library, numbers = _library()
    rows = (numbers.arange(1.0, 65).reshape(1, 64, 1, 1) / 7).astype("float32")
    keys = numbers.full((1, 2, 1, 1), 1e10 / 3, "float32")
    return bool(np.isnan(library.jit(partial(library.nn.dot_product_attention, scale=0.3))(rows, keys, keys)).any())


def _no_compiled_float16() -> bool:
    library, numbers = _library()
    one = numbers.zeros((1, 1, 1, 1), "float16")
    try:
        library.jit(library.nn.dot_product_attention)(one, one, one)
    except ValueError:
        return True
    return False


IMPLEMENTATION = Adapter(
    __name__,
    __doc__,
    load=load,
    libraries=("jax",),
    install=("jax",),
    dtypes=("float64", "float32"),
    computes_in={"float64": "float32"},
    divergences=(
        Divergence(
            "the softmax of float64 arrays is computed in float32",
            "there is no option for it; the limits for float64 are those of float32",
            "https://github.com/jax-ml/jax/pull/21371",
            _softmax_is_float32,
        ),
        Divergence(
            "a row without a visible key weighs all keys alike",
            "hidden scores are large and negative there, not −∞; here such a row is refused when the case is read",
            DOCS,
            _empty_row_is_uniform,
        ),
        Divergence(
            "is_causal lets the first query see the first key only, however many keys there are",
            "lower-right is the default here; the adapter writes a mask out then",
            DOCS,
            _upper_left,
        ),
        Divergence(
            "local_window_size counts from the first key, however many keys there are",
            "here a window is around the aligned position; the adapter writes a mask out where that differs",
            DOCS,
            _window_from_upper_left,
        ),
        Divergence(
            "values are refused that are not as wide as keys",
            "the adapter widens the narrower of both by zeros",
            DOCS,
            _one_width,
        ),
        Divergence(
            "a compiled float32 call may give NaN where scores are beyond 1e9",
            "scale and maximum are applied in one rounding, so that scores exceed it; the adapter refuses from 5e8 on",
            "https://github.com/jax-ml/jax/issues/37234",
            _far_scores_give_nan,
        ),
        Divergence(
            "float16 is refused when compiled for a CPU",
            "so the adapter does not offer it; uncompiled, it falls back to other products",
            "https://github.com/keras-team/keras-hub/pull/2354",
            _no_compiled_float16,
        ),
    ),
)
