"""PyTorch's `torch.nn.MultiheadAttention`, a layer with biases of its own, on the CPU.

bQ, bK and bV travel as its `in_proj_bias`. The weights of its projections are identities, with zeros where widths
differ; the one of the queries also carries what the case's scale has beside 1/√width, which the layer does not let
choose, and so does bQ. It is asked for its weights too (`need_weights=True`, its default): without them, the layer is
another way to call `scaled_dot_product_attention`, which is `torch-sdpa`. It has as many key heads as query heads, and
no softcap, sink or rotation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verify_attention.functions import Asked
from verify_attention.model import Adapter, Array, Divergence, Flags
from verify_attention.translation.masks import Window, added, visible

DOCS = "https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html"


def load(dtype: str) -> Asked:
    """Import PyTorch, and return the layer for arrays of a dtype."""
    import torch  # noqa: PLC0415 - only who asks for it pays for it

    kind, shown = getattr(torch, dtype), torch.float32 if dtype == "bfloat16" else getattr(torch, dtype)

    def attention(  # noqa: PLR0913 - the interface has as many
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Flags | None = None,
        score_bias: Array | None = None,
        causal: str | None = None,
        window: Window | None = None,
        scale: float | None = None,
        bQ: Array | None = None,
        bK: Array | None = None,
        bV: Array | None = None,
    ) -> dict[str, Array]:
        samples, heads, rows, own = q.shape
        if k.shape[1] != heads:
            raise NotImplementedError("nn.MultiheadAttention has as many key heads as query heads")
        width = max(own, v.shape[3])
        factor = (own**-0.5 if scale is None else scale) * math.sqrt(width)
        given = [_padded(q, width), k, v]
        layer = _layer(heads, width, given, kind, factor, (bQ, bK, bV))
        tensors = [torch.from_numpy(_flat(array)).to(kind) for array in given]
        options = _masking((samples, heads, rows, k.shape[2]), mask, score_bias, causal, window, kind)
        with torch.no_grad():
            output, weights = layer(*tensors, average_attn_weights=False, **options)
        output = output.reshape(samples, rows, heads, width).transpose(1, 2)[..., : v.shape[3]]
        return {"output": output.to(shown).numpy(), "weights": weights.to(shown).numpy()}

    return Asked(attention)


def _layer(
    heads: int, width: int, given: list[Array], kind: Any, factor: float, biases: tuple[Array | None, ...]
) -> Any:
    """Return the layer for arrays of some widths, whose projections add the biases and nothing else."""
    import torch  # noqa: PLC0415 - it is loaded by now

    size = heads * width
    kdim, vdim = (heads * array.shape[3] for array in given[1:])
    make = torch.nn.MultiheadAttention
    layer = torch.nn.utils.skip_init(make, size, heads, kdim=kdim, vdim=vdim, batch_first=True, dtype=kind)
    factors = (factor, 1.0, 1.0)
    identities = [
        torch.from_numpy(_identity(heads, array.shape[3], width) * each)
        for array, each in zip(given, factors, strict=True)
    ]
    laid = [
        torch.zeros(size) if bias is None else torch.from_numpy(_padded(bias * each, width).reshape(-1))
        for bias, each in zip(biases, factors, strict=True)
    ]
    with torch.no_grad():
        if layer.in_proj_weight is not None:
            layer.in_proj_weight.copy_(torch.cat(identities))
        else:
            projections = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
            for projection, identity in zip(projections, identities, strict=True):
                projection.copy_(identity)
        layer.in_proj_bias.copy_(torch.cat(laid))
        layer.out_proj.weight.copy_(torch.eye(size))
        layer.out_proj.bias.zero_()
    return layer.eval()


def _identity(heads: int, narrow: int, wide: int) -> Array:
    """Return what puts heads of one width into heads of another, `[heads·wide, heads·narrow]`."""
    return np.kron(np.eye(heads), np.eye(wide, narrow))


def _padded(array: Array, width: int) -> Array:
    """Return an array with zeros after its last axis's own numbers, `[…, width]`."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, width - array.shape[-1])])


def _flat(array: Array) -> Array:
    """Return heads side by side, `[B, T, heads·width]`."""
    samples, heads, places, width = array.shape
    return array.swapaxes(1, 2).reshape(samples, places, heads * width)


def _masking(
    shape: tuple[int, ...],
    mask: Flags | None,
    score_bias: Array | None,
    causal: str | None,
    window: Window | None,
    kind: Any,
) -> dict[str, Any]:
    """Return the layer's options for what is hidden and added; True is a hidden key there."""
    import torch  # noqa: PLC0415 - it is loaded by now

    seen = visible(shape[2], shape[3], mask, causal, window)
    if score_bias is not None:
        given: Any = added(seen, score_bias, score_bias.dtype.type)
    elif seen is not None:
        given = ~seen
    else:
        return {}
    whole = torch.from_numpy(np.array(np.broadcast_to(given, shape)).reshape(-1, *shape[2:]))
    return {"attn_mask": whole if score_bias is None else whole.to(kind)}


def _raw(hidden: list[bool], need_weights: bool) -> Any:
    """Ask a layer of width 1 about one row, with scores that are all 0 and values from 1 on."""
    import torch  # noqa: PLC0415 - only who asks for it pays for it

    layer = _layer(1, 1, [np.zeros((1, 1, 1, 1))] * 3, torch.float32, 1.0, (None, None, None))
    row, keys = torch.zeros(1, 1, 1), torch.zeros(1, len(hidden), 1)
    values = torch.arange(1.0, len(hidden) + 1).reshape(1, -1, 1)
    with torch.no_grad():
        return layer(row, keys, values, attn_mask=torch.tensor([hidden]), need_weights=need_weights)[0].item()


def _opposite_mask() -> bool:
    return bool(_raw([True, False], need_weights=False) == 2)


def _empty_row_is_nan() -> bool:
    return math.isnan(_raw([True, True], need_weights=True))


def _empty_row_is_zero() -> bool:
    return bool(_raw([True, True], need_weights=False) == 0)


def _hint_needs_a_mask() -> bool:
    import torch  # noqa: PLC0415 - only who asks for it pays for it

    layer = _layer(1, 1, [np.zeros((1, 1, 1, 1))] * 3, torch.float32, 1.0, (None, None, None))
    rows = torch.zeros(1, 2, 1)
    try:
        layer(rows, rows, rows, is_causal=True)
    except RuntimeError:
        return True
    return False


IMPLEMENTATION = Adapter(
    __name__,
    __doc__,
    load=load,
    libraries=("torch",),
    install=("torch",),
    dtypes=("float64", "float32", "float16", "bfloat16"),
    computes_in={"float16": "float32", "bfloat16": "float32"},
    divergences=(
        Divergence(
            "True in a boolean mask hides a key",
            "here it shows one, as in scaled_dot_product_attention; the adapter inverts masks",
            DOCS,
            _opposite_mask,
        ),
        Divergence(
            "a row without a visible key gives NaN where weights are wanted",
            "here such a row is refused when the case is read, so that nothing is asked about it",
            "https://github.com/pytorch/pytorch/issues/160064",
            _empty_row_is_nan,
        ),
        Divergence(
            "a row without a visible key gives 0 where no weights are wanted",
            "the output then comes from scaled_dot_product_attention; nothing is asked about such a row",
            "https://github.com/pytorch/pytorch/pull/133882",
            _empty_row_is_zero,
        ),
        Divergence(
            "is_causal is a hint beside attn_mask, and refused without it",
            "the adapter writes the mask out",
            DOCS,
            _hint_needs_a_mask,
        ),
    ),
)
