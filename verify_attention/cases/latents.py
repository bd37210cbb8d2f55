"""What the latent of a case says of its keys and values, which are its products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verify_attention.model import FLOAT64, Array, Case
from verify_attention.products import exact_product
from verify_attention.validation.messages import Flaw
from verify_attention.wording import count


def refused(case: Case) -> Iterator[Flaw]:
    """Yield in what the keys and values of a case contradict its latent."""
    if case.latent is None:
        return
    if len(case.keys) != len(case.q):
        found = f"{count(len(case.q), 'heads')}, keys has {count(len(case.keys), 'heads')}"
        yield Flaw(("latent",), f"needs key-value heads of their own for all query heads: q has {found}")
        return
    turned = case.d_k - case.latent.W_UK.shape[-1]
    if turned < 0:
        found = count(case.d_k - turned, "numbers")
        yield Flaw(("latent", "W_UK"), f"has {found} in each row, allowed are at most d_k, which is {case.d_k}")
        return
    if case.values is None:
        yield Flaw(("values",), "is missing; it is required beside latent", lacks=(("values",),))
        return
    if (case.keys[..., :turned] != case.keys[:1, :, :turned]).any():
        yield Flaw(("keys",), f"differs from head to head in the first {count(turned, 'channels')}, which heads share")
    yield from _unlike(case.latent.c, case.latent.W_UK, "W_UK", case.keys[..., turned:], "keys")
    yield from _unlike(case.latent.c, case.latent.W_UV, "W_UV", case.values, "values")


def settled(case: Case) -> Case:
    """Return a case with a latent whose keys and values are the latent's products, each sum rounded once.

    Those that a file gives may be rounded otherwise; claims about the absorbed form count on one rounding.
    """
    if case.latent is None:
        return case
    keys = case.keys.copy()
    keys[..., case.d_k - case.latent.W_UK.shape[-1] :] = exact_product(case.latent.c, case.latent.W_UK)
    return case.but(keys=keys, values=exact_product(case.latent.c, case.latent.W_UV), latent=case.latent)


def _unlike(c: Array, matrix: Array, name: str, given: Array, of: str) -> Iterator[Flaw]:
    """Yield the first place at which an array is not the product of latents and a matrix, up to rounding."""
    with np.errstate(all="ignore"):
        product = exact_product(c, matrix)
        rounding = FLOAT64.accumulated(c.shape[-1] + 2) * (np.abs(c) @ np.abs(matrix)) + FLOAT64.tiniest * c.shape[-1]
    wrong = np.argwhere(~(np.abs(product - given) <= rounding))
    if len(wrong):
        head, row, channel = map(int, wrong[0])
        place = f"head {head}, key {row}, channel {channel}"
        said = f"{product[tuple(wrong[0])]:.9g}, {of} has {given[tuple(wrong[0])]:.9g} there"
        yield Flaw(("latent", name), f"c·{name} at {place} is {said}")
