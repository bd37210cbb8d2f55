"""PyTorch's `torch.nn.functional.scaled_dot_product_attention`, on the CPU.

Causality, masks, score biases, scale and grouped heads are its own: `is_causal` where all queries start with the first
key, `causal_lower_right` where the last query stands at the last key, `attn_mask` for the rest, in which numbers stand
for a mask and a score bias together. It has no softcap, no sink and no rotation, and shows its output only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_attention.functions import Asked
from verify_attention.model import Adapter, Array, Divergence, Flags
from verify_attention.translation.masks import Window, added, first_position, visible

DOCS = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html"


def load(dtype: str, device: str = "cpu") -> Asked:
    """Import PyTorch, and return its attention for arrays of a dtype, on a device."""
    import torch  # noqa: PLC0415 - only who asks for it pays for it

    kind = getattr(torch, dtype)

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
    ) -> Array:
        options = _masking(q.shape[2], k.shape[2], mask, score_bias, causal, window)
        given = options.get("attn_mask")
        if isinstance(given, np.ndarray):
            tensor = torch.from_numpy(given)
            options["attn_mask"] = tensor.to(device, tensor.dtype if tensor.dtype == torch.bool else kind)
        if scale is not None:
            options["scale"] = scale
        if q.shape[1] != k.shape[1]:
            options["enable_gqa"] = True
        vectors = (torch.from_numpy(array).to(device, kind) for array in (q, k, v))
        with torch.no_grad():
            output = torch.nn.functional.scaled_dot_product_attention(*vectors, **options)
        return output.to("cpu", torch.float32 if dtype == "bfloat16" else kind).numpy()

    return Asked(attention)


def _masking(
    rows: int,
    keys: int,
    mask: Flags | None,
    score_bias: Array | None,
    causal: str | None,
    window: Window | None,
) -> dict[str, Any]:
    """Return the library's options for what is hidden and added; a mask or bias of ours is still an array."""
    from torch.nn.attention.bias import causal_lower_right  # noqa: PLC0415 - the library is loaded by now

    alone = mask is None and score_bias is None and window is None
    if causal is not None and alone:
        upper_left = first_position(causal, rows, keys) == 0
        return {"is_causal": True} if upper_left else {"attn_mask": causal_lower_right(rows, keys)}
    seen = visible(rows, keys, mask, causal, window)
    if score_bias is None:
        return {} if seen is None else {"attn_mask": seen}
    return {"attn_mask": added(seen, score_bias, score_bias.dtype.type)}


def _raw(rows: int, keys: int, **options: Any) -> Any:
    """Ask the library with scores that are all 0 and values from 1 on, `[Tq]`."""
    import torch  # noqa: PLC0415 - only who asks for it pays for it

    values = torch.arange(1.0, keys + 1).reshape(1, 1, keys, 1)
    zeros = [torch.zeros(1, 1, count, 1) for count in (rows, keys)]
    return torch.nn.functional.scaled_dot_product_attention(*zeros, values, **options).flatten()


def _empty_row_is_zero() -> bool:
    import torch  # noqa: PLC0415

    return bool(_raw(1, 2, attn_mask=torch.tensor([[False, False]])).item() == 0)


def _upper_left() -> bool:
    return bool(_raw(1, 2, is_causal=True).item() == 1)


def _nan_is_zero() -> bool:
    import torch  # noqa: PLC0415

    rows = torch.full((1, 1, 2, 2), torch.nan)
    return bool((torch.nn.functional.scaled_dot_product_attention(rows, rows, torch.ones(1, 1, 2, 2)) == 0).all())


def _causal_excludes_masks() -> bool:
    import torch  # noqa: PLC0415

    rows, wide = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 2)
    seen = torch.ones(2, 2, dtype=torch.bool)
    try:
        torch.nn.functional.scaled_dot_product_attention(rows, rows, wide, attn_mask=seen, is_causal=True)
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
            "a row without a visible key gives 0",
            "here such a row is refused when the case is read, so that nothing is asked about it",
            "https://github.com/pytorch/pytorch/pull/133882",
            _empty_row_is_zero,
        ),
        Divergence(
            "is_causal lets the first query see the first key only, however many keys there are",
            "lower-right is the default here; the adapter asks for causal_lower_right then",
            DOCS,
            _upper_left,
        ),
        Divergence(
            "is_causal beside attn_mask is refused where values are not as wide as keys, and taken where they are",
            "the documentation says that both together are an error; the adapter writes both out as one mask",
            DOCS,
            _causal_excludes_masks,
        ),
        Divergence(
            "a row whose scores are all NaN gives 0 where there is no mask, and values are as wide as keys",
            "the kernel's maximum skips NaN, and takes the row for one without a visible key; cases have no NaN",
            "https://github.com/pytorch/pytorch/issues/141128",
            _nan_is_zero,
        ),
    ),
)
