"""From a document to a case: the schema judges everything but arrays, whose shapes depend on each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from verify_attention import departures, validation
from verify_attention.cases import latents
from verify_attention.cases.shapes import MOST_ROWS, Shapes
from verify_attention.departures import features_among
from verify_attention.model import (
    CONDITIONS,
    QUANTITIES,
    AddsColumn,
    Case,
    Feature,
    Fills,
    Hides,
    Normalises,
    Published,
)
from verify_attention.validation.messages import Flaw
from verify_attention.wording import describe, join


def build(document: Any, **known: Any) -> tuple[Case | None, list[Flaw]]:
    """Return the case that a document describes, or None and everything that is wrong with it.

    `known` are the case's fields that the document does not hold: `id`, `file`, `line`, `sha256`.
    """
    if not isinstance(document, dict):
        return None, [Flaw((), f"is {describe(document)}, a case is a mapping")]
    shapes = Shapes(document)
    flaws = validation.flaws(shapes.rest(), "case") + [Flaw(*flaw) for flaw in shapes.flaws]
    if any(flaw.meant == "projections" for flaw in flaws):  # they would give what seems to be missing
        flaws = [flaw for flaw in flaws if not flaw.lacks]
    if flaws:
        return None, flaws
    case = _with_features(_case(document, shapes, known), document, shapes)
    flaws = [*latents.refused(case), *(_refused(case) if case.features else ())]
    return (None, flaws) if flaws else (latents.settled(case), [])


def _case(document: dict[str, Any], shapes: Shapes, known: dict[str, Any]) -> Case:
    return Case(
        q=shapes.heads(("q",), "q", 3),
        keys=shapes.heads(("keys",), "keys", 3),
        bQ=shapes.heads(("bQ",), "q", 2),
        bK=shapes.heads(("bK",), "keys", 2),
        values=shapes.optional(("values",), "keys", 3),
        bV=shapes.optional(("bV",), "keys", 2),
        W_O=shapes.optional(("W_O",), "q", 3),
        latent=shapes.latent(),
        scale=float(document["scale"]) if "scale" in document else 1 / math.sqrt(document["d_k"]),
        expect=dict(document.get("expect", {})),
        published=_published(document, shapes),
        title=document.get("title"),
        source=document.get("source"),
        tags=tuple(document.get("tags", ())),
        **known,
    )


def _with_features(case: Case, document: dict[str, Any], shapes: Shapes) -> Case:
    """Return the case with its features: arrays at their full depth, and every default filled in."""
    given = document.get("features", {})
    acting = features_among(given)
    if not acting:
        return case
    case = case.but(features={each.name: shapes.parameters(each, given[each.name], case) for each in acting})
    for each in acting:
        complete = each.complete(case.features[each.name], case)
        case = case.but(features={**case.features, each.name: complete})
    return case


def _refused(case: Case) -> Iterator[Flaw]:
    """Yield what features refuse, and the rows in which they leave no key to attend to."""
    acting = departures.in_order(case)
    for each in acting:
        yield from (Flaw(("features", each.name, *path), said) for path, said in each.refuse(case))
    yield from _contradictions(acting)
    seen = departures.visible(case)
    empty = [] if seen is None else np.argwhere(~seen.any(axis=-1)).tolist()
    if empty:
        *others, name = (each.name for each in acting if isinstance(each.act, Hides))
        rows = [f"row {row} of head {head}" for head, row in empty[:MOST_ROWS]]
        more = [f"{len(empty) - MOST_ROWS} more"] if len(empty) > MOST_ROWS else []
        together = f", together with {join(others)}," if others else ""
        document = case.id.partition("::")[2]
        which = f"{join([*rows, *more])}{f' in {document}' if document else ''}"
        yield Flaw(("features", name), f"leaves{together} no key visible to {which}; each row must see at least one")


def _contradictions(acting: list[Feature]) -> Iterator[Flaw]:
    """Yield features that have nothing to act on, or that share a softmax which is not there."""
    hiding = any(isinstance(each.act, Hides) for each in acting)
    for each in acting:
        place = ("features", each.name)
        if isinstance(each.act, Fills) and not hiding:
            yield Flaw(place, "stands alone: beside it must be what hides scores, such as a mask, causal or window")
        if isinstance(each.act, Normalises):
            for other in acting:
                if isinstance(other.act, AddsColumn):
                    said = f"stands beside {other.name}, which takes a share of a softmax; leave one out"
                    yield Flaw(place, said)


def _published(document: dict[str, Any], shapes: Shapes) -> Published | None:
    if "published" not in document:
        return None
    numbers = {
        quantity: {
            condition: shapes.heads(("published", quantity, condition), "q", 3)
            for condition in CONDITIONS
            if condition in document["published"][quantity]
        }
        for quantity in QUANTITIES
        if quantity in document["published"]
    }
    return Published(int(document["published"]["decimals"]), numbers)
