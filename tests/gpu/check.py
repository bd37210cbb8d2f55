"""PyTorch's attention backend by backend: the shipped cases, and many keys against float64.

    python tests/gpu/check.py cuda|cpu [--cases PATH]... [--keys N] [--dtypes NAME,...]

For each backend and dtype it prints how many equations were really checked and how many broke, on how many calls the
backend was not offered (it refused the shape or an option), and with many keys the largest deviation from float64
beside its limit, which follows from the precision. The exit code is 1 where something broke or left its limit.
"""

from __future__ import annotations

import argparse
import functools
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from verify_attention import rounding
from verify_attention.cases import load_cases
from verify_attention.casting import cast
from verify_attention.engine import run
from verify_attention.functions import Asked
from verify_attention.implementations import torch_sdpa
from verify_attention.model import BROKEN, Case, Tolerance, precision
from verify_attention.plugins import invariants

CASES = str(Path(__file__).resolve().parent.parent.parent / "cases")
BACKENDS = {
    "flash": "FLASH_ATTENTION",
    "memory-efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
DTYPES = ("float32", "float16", "bfloat16")
MULTIPLE = 8  # of widths, for which kernels are made
BLOCK = 256  # rows that are computed in float64 at once
REFUSALS = ("no available kernel", "no viable backend", "not supported", "not implemented", "explicit attn_mask")


class Row(NamedTuple):
    """What was found of a backend in a dtype."""

    backend: str
    dtype: str
    checked: int
    broken: list[str]
    refused: int
    deviation: float | None
    limit: float

    @property
    def fine(self) -> bool:
        """Whether all that was offered is as it should be; NaN never is."""
        return not self.broken and (self.deviation is None or self.deviation <= self.limit)


@contextmanager
def only(backend: str) -> Iterator[None]:
    """Allow one backend, and say in words where it does not take a call."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with warnings.catch_warnings(), sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
        warnings.simplefilter("ignore")  # it warns of every reason why it does not
        try:
            yield
        except RuntimeError as error:
            if any(text in str(error).lower() for text in REFUSALS):
                raise NotImplementedError(f"not offered by {backend}") from error
            raise


class Backend:
    """One backend as a function under test: vectors and values are widened by zeros to what kernels are made for."""

    def __init__(self, backend: str, dtype: str, device: str) -> None:
        self.backend, self.refused = backend, 0
        self.function = torch_sdpa.load(dtype, device).function

    def asked(self) -> Asked:
        """Return the implementation; it names the options that the library's does."""

        @functools.wraps(self.function)
        def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
            width = -(-max(q.shape[3], v.shape[3]) // MULTIPLE) * MULTIPLE
            options.setdefault("scale", q.shape[3] ** -0.5)
            wide = (np.pad(array, [(0, 0)] * 3 + [(0, width - array.shape[3])]) for array in (q, k, v))
            try:
                with only(self.backend):
                    return self.function(*wide, **options)[..., : v.shape[3]]
            except NotImplementedError:
                self.refused += 1
                raise

        return Asked(attention)


def check(backend: str, dtype: str, device: str, cases: list[Case], keys: int) -> Row:
    """Judge the cases, and compare many keys with float64."""
    inside = precision(dtype, torch_sdpa.IMPLEMENTATION.computes_in.get(dtype))
    kernel = Backend(backend, dtype, device)
    reports = run([cast(case, inside) for case in cases], kernel.asked(), invariants().values(), Tolerance())
    findings = [(report.case.id, finding) for report in reports for finding in report.findings]
    broken = [f"{case} {one.invariant}: {one.reason}" for case, one in findings if one.status in BROKEN]
    checked = sum(finding.checked for _, finding in findings)
    refused = kernel.refused
    deviation, limit = far(kernel.asked(), device, cast(many(keys), inside))
    return Row(backend, dtype, checked, broken, refused, deviation, limit)


def many(keys: int) -> Case:
    """Return a case with as many queries as keys, in a head of width 64; scores are small, so that the limit is."""
    draw = np.random.default_rng(keys)
    nothing = np.zeros((1, 64))
    q, k, v = (draw.normal(size=(1, keys, 64)) * size for size in (0.5, 0.5, 1.0))
    return Case(id="many-keys", q=q, keys=k, bQ=nothing, bK=nothing, values=v, scale=0.125)


def far(asked: Asked, device: str, case: Case) -> tuple[float | None, float]:
    """Return the largest deviation from float64, None where the backend does not take the shape, and its limit."""
    import torch

    limit = float(rounding.output(case).max())
    arrays = [array[None].astype(np.float16 if case.precision.dtype == "float16" else np.float32)
              for array in (case.q, case.keys, case.values)]  # fmt: skip
    try:
        found = torch.from_numpy(asked.function(*arrays)[0].astype(np.float64)).to(device)
    except NotImplementedError:
        return None, limit
    q, k, v = (torch.from_numpy(np.array(array)).to(device) for array in (case.q, case.keys, case.values))
    worst = 0.0
    for first in range(0, q.shape[1], BLOCK):
        rows = slice(first, first + BLOCK)
        right = torch.softmax(q[:, rows] @ k.transpose(1, 2) * case.scale, -1) @ v
        worst = max(worst, float(torch.nan_to_num((found[:, rows] - right).abs(), nan=torch.inf).max()))
    return worst, limit


def table(rows: list[Row], keys: int) -> str:
    """Return the rows as text."""
    head = f"{'backend':<17} {'dtype':<9} {'checked':>7} {'broken':>6} {'not offered':>11}  largest of {keys} keys"
    lines = [head]
    for row in rows:
        far_away = "not offered" if row.deviation is None else f"{row.deviation:.2e}, limit {row.limit:.2e}"
        if row.checked == 0 and row.deviation is None:
            lines.append(f"{row.backend:<17} {row.dtype:<9} not offered")
            continue
        lines.append(
            f"{row.backend:<17} {row.dtype:<9} {row.checked:>7} {len(row.broken):>6} {row.refused:>11}  {far_away}"
        )
    broken = [f"{row.backend} {row.dtype}: {line}" for row in rows for line in row.broken[:5]]
    return "\n".join([*lines, *broken]) + "\n"


def main(arguments: list[str]) -> int:
    """Check every backend, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("device", choices=["cuda", "cpu"])
    parser.add_argument("--cases", action="append", default=None)
    parser.add_argument("--keys", type=int, default=4096)
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    given = parser.parse_args(arguments)
    cases = load_cases(given.cases or [CASES])
    dtypes = given.dtypes.split(",")
    rows = [check(backend, dtype, given.device, cases, given.keys) for backend in BACKENDS for dtype in dtypes]
    sys.stdout.write(table(rows, given.keys))
    return 0 if all(row.fine for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
