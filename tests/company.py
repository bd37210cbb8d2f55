"""Features in company: which of any three stand together in shipped cases, and cases for what is missing.

`python tests/company.py >> cases/features/together.yaml` adds what a new feature lacks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations, count, product
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from featured import with_features
from making import random_case

from verify_attention import results
from verify_attention.cases import build_case, load_cases
from verify_attention.engine import run_case
from verify_attention.errors import CasesRefusedError
from verify_attention.model import AddsColumn, Case, Fills, Hides, Normalises, Tolerance
from verify_attention.pipeline import CORE
from verify_attention.plugins import features, invariants

Selection = frozenset[tuple[str, bool]]
CASES = Path(__file__).resolve().parent.parent / "cases"
SETS, TRIES = 100, 20


def met(names: Iterable[str]) -> set[Selection]:
    """Return for any three features which of them stand among some, and which do not."""
    there = [(name, name in set(names)) for name in features()]
    return {frozenset(three) for three in combinations(there, 3)}


def company(cases: Iterable[Case]) -> set[Selection]:
    """Return what of that is so in some case."""
    return set().union(*(met(names) for names in {frozenset(case.features) for case in cases}))


@cache
def due() -> frozenset[Selection]:
    """Return what may be so in a case: a fill has to have what hides, and a stand-in for softmax no share."""
    acts = {name: type(feature.act) for name, feature in features().items()}
    hiding = {name for name, act in acts.items() if act is Hides}

    def may_be(selection: Selection) -> bool:
        here = {acts[name] for name, there in selection if there}
        without = {name for name, there in selection if not there}
        return not here >= {Normalises, AddsColumn} and not (Fills in here and hiding <= without)

    every = (
        frozenset(zip(names, there, strict=True))
        for names in combinations(features(), 3)
        for there in product((True, False), repeat=3)
    )
    return frozenset(filter(may_be, every))


def documents(draw: np.random.Generator, missing: set[Selection]) -> Iterator[dict[str, Any]]:
    """Yield documents until nothing is missing, each with the features of some random ones that meet most of it."""
    while missing:
        some = [draw.choice(list(features()), int(draw.integers(2, 9)), replace=False).tolist() for _ in range(SETS)]
        chosen = max(some, key=lambda names: len(missing & met(names)))
        made = next(filter(None, (_document(draw, chosen) for _ in range(TRIES))), None)
        if made is not None and missing & met(chosen):
            missing -= met(made["features"])
            yield made


def _document(draw: np.random.Generator, chosen: list[str]) -> dict[str, Any] | None:
    """Return a document with features and numbers of two decimals, if rounding leaves it far from the limit."""
    groups, sizes = int(draw.integers(1, 3)), draw.permutation([2, 3, 4, 5])
    H, Tq, Tk, d_k = groups * int(draw.integers(1, 4)), *map(int, sorted(sizes[:2])), 2 * int(draw.integers(1, 4))
    case = with_features(draw, chosen, random_case(draw, H=H, G=groups, Tq=Tq, Tk=Tk, d_k=d_k, d_v=int(sizes[3])))
    if case is None:
        return None
    given = {name: value for name, value in _short(results.inputs(case)).items() if value not in (None, {}, [])}
    try:
        built = build_case(given, id="company")
    except CasesRefusedError:
        return None
    findings = run_case(built, CORE, invariants().values(), Tolerance()).findings
    far = all(f.status == "skipped" or (f.status == "pass" and f.rounding_bound <= f.limit) for f in findings)
    return given if far else None


def _short(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: value if key == "scale" else _short(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_short(value) for value in part]
    if not isinstance(part, float):
        return part
    return int(part) if round(part, 2) == int(part) else round(part, 2)


if __name__ == "__main__":
    cases = load_cases([CASES])
    known = [case.id for case in cases]
    numbers = (number for number in count(1) if f"features/together::case-{number:02}" not in known)
    for document in documents(np.random.default_rng(1), set(due() - company(cases))):
        head = {"name": f"case-{next(numbers):02}", "title": f"{', '.join(document['features'])}", "tags": ["features"]}
        text = yaml.safe_dump({**head, **document}, sort_keys=False, default_flow_style=None, width=112)
        sys.stdout.write(f"---\n{text}")
