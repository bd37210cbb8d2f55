"""Draw a case of given sizes and ingredients: small numbers mostly, sometimes ones that overflow an exponential."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from verify_attention.cases.building import build
from verify_attention.engine.single import missing_traits
from verify_attention.model import CONDITIONS, QUANTITIES, Case, Condition, Expectation, Invariant, Published
from verify_attention.pipeline import CORE
from verify_attention.products import exact_product
from verify_attention.search.parameters import Numbers, Sizes, drawn

PARTS = ("bV", "W_O", "latent", "published", "inert")
SCALES = (0.5, 1.0, 2.0, 0.25, 3.0)
HUGE = (100.0, 300.0, 1000.0, 20000.0)  # times a score of a few
LARGEST_PRINTED = 1e6


class Order(NamedTuple):
    """What is to be drawn: sizes by their letters, features and parts by name, for a claim."""

    sizes: Sizes
    ingredients: tuple[str, ...]
    claim: Invariant | None = None


def case_of(order: Order, numbers: Numbers) -> Case | None:
    """Draw a case; None where what was drawn is no case, or takes away what the claim needs."""
    made = _plain(order, numbers)
    features = {name: drawn(name, numbers, order.sizes) for name in order.ingredients if name not in PARTS}
    case = built(made, _seeing(features, order.sizes), order.claim)
    if case is None and features:
        features = {name: drawn(name, numbers, order.sizes, above_zero=True) for name in features}
        case = built(made, _seeing(features, order.sizes), order.claim)
    if case is not None and "published" in order.ingredients:
        case = printed(case, {numbers.choice(*QUANTITIES): CONDITIONS}, numbers.choice(2, 4, 6))
    return case


def built(made: Mapping[str, Any], features: Mapping[str, Any], claim: Invariant | None) -> Case | None:
    """Build a case as a file's documents are built; None where it is refused, or the claim is not made of it."""
    case, _ = build(listed({**made, "features": features} if features else made), id="search")
    if case is None or claim is None:
        return case
    return None if missing_traits(claim, case) else expecting(case, claim)


def expecting(case: Case, claim: Invariant, expected: Expectation | None = None) -> Case:
    """Return the case as one of which the claim is asked: a plain one may have to expect it."""
    on_request = claim.on_request and not case.features
    due: dict[str, Expectation] = {claim.name: expected or "holds"} if expected or on_request else {}
    return case if case.expect == due else case.but(expect=due)


def listed(value: Any) -> Any:
    """Return a value as a document has it: arrays are nested lists."""
    if isinstance(value, Mapping):
        return {key: listed(part) for key, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def printed(case: Case, wanted: Mapping[str, Iterable[Condition]], decimals: int) -> Case | None:
    """Return the case with the core's numbers, rounded, as published; None where they are too large to be printed."""
    with np.errstate(all="ignore"):
        numbers = {
            quantity: {
                condition: np.round(getattr(CORE(case.under(condition)), quantity), decimals) + 0.0
                for condition in conditions
            }
            for quantity, conditions in wanted.items()
        }
    arrays = [array for by_condition in numbers.values() for array in by_condition.values()]
    fit = all(bool((np.abs(array) < LARGEST_PRINTED).all()) for array in arrays)
    return case.but(published=Published(decimals, numbers), expect=case.expect) if fit else None


def _plain(order: Order, numbers: Numbers) -> dict[str, Any]:
    """Draw everything but features."""
    H, G, Tq, Tk, d_k, d_v = (order.sizes[letter] for letter in ("H", "G", "Tq", "Tk", "d_k", "d_v"))
    made: dict[str, Any] = {"d_k": d_k}
    made |= {"q": numbers.array(H, Tq, d_k), "keys": numbers.array(G, Tk, d_k)}
    made |= {"bQ": numbers.array(H, d_k), "bK": numbers.array(G, d_k)}
    if numbers.happens(0.1):
        made["q"] *= numbers.choice(*HUGE) * (numbers.array(H, Tq, 1) > 0)
    if numbers.happens(0.7):
        made["values"] = numbers.array(G, Tk, d_v)
    width = d_v if "values" in made else Tk
    if "bV" in order.ingredients or numbers.happens(0.3):
        made["bV"] = numbers.array(G, width)
    if numbers.happens(0.3):
        made["scale"] = numbers.choice(*SCALES)
    if "W_O" in order.ingredients:
        made["W_O"] = numbers.array(H, width, numbers.choice(1, 2, 3))
    if "inert" in order.ingredients:
        _make_inert(made, numbers)
    if "latent" in order.ingredients:
        _store(made, order.sizes, numbers)
    return made


def _make_inert(made: dict[str, Any], numbers: Numbers) -> None:
    """Give every head the same bias but for a factor, and let keys differ only where that does not see it."""
    d_k, steps = made["d_k"], numbers.array(*made["keys"].shape[:2], 1)
    bias, across = np.zeros(d_k), np.zeros(d_k)
    bias[0] = numbers.choice(1.0, 2.0, -1.0)
    if d_k > 1:
        bias[1], across[0] = numbers.choice(0.0, 1.0, -2.0), -1.0
        across = np.where(np.arange(d_k) == 0, -bias[1], 0.0) + np.where(np.arange(d_k) == 1, bias[0], across * 0)
    made["bQ"] = bias * numbers.choice(1.0, 2.0, -1.0) * np.ones((len(made["q"]), 1))
    made["keys"] = made["keys"][:, :1] + steps * across


def _store(made: dict[str, Any], sizes: Sizes, numbers: Numbers) -> None:
    """Let keys and values come from a latent: every query head has its own, and they share the first channels."""
    H, Tk, d_k, d_v = (sizes[letter] for letter in ("H", "Tk", "d_k", "d_v"))
    d_c, d_n = numbers.choice(1, 2, 3), 1 + numbers.choice(*range(d_k))
    c, up, values = numbers.array(Tk, d_c), numbers.array(H, d_c, d_n), numbers.array(H, d_c, d_v)
    shared = np.broadcast_to(numbers.array(Tk, d_k - d_n), (H, Tk, d_k - d_n))
    made |= {
        "latent": {"c": c, "W_UK": up, "W_UV": values},
        "keys": np.concatenate([shared, exact_product(c, up)], axis=-1),
        "values": exact_product(c, values),
        "bK": numbers.array(H, d_k),
    }
    if "bV" in made:
        made["bV"] = numbers.array(H, d_v)


def _seeing(features: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Open a mask where each row stands, so that causality or a window beside it leave no row empty."""
    found = dict(features)
    if "mask" in found:
        rows, keys = sizes["Tq"], sizes["Tk"]
        first = 0 if found.get("causal") == "upper-left" else keys - rows
        at = np.clip(np.arange(rows) + first, 0, keys - 1)
        mask = found["mask"].copy()
        mask[:, np.arange(rows), at] = True
        found["mask"] = mask
    return found
