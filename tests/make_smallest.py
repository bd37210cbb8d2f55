"""Make `verify_attention/smallest/`: for each fault that a claim declares, a small case on which the claim breaks.

`python tests/make_smallest.py [CLAIM]...` makes them anew, of all claims or of some. The search begins several times,
and the smallest end is kept.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from making import right_of

from verify_attention import resources
from verify_attention.cases import build_case
from verify_attention.engine import judge, pool
from verify_attention.model import Case, Fault, Invariant
from verify_attention.plugins import invariants
from verify_attention.search import Found, hunt, reduced, text
from verify_attention.search.cost import cost
from verify_attention.search.drawing import expecting

SEEDS = range(4)
EXAMPLES = 4000
HEAD = "# Made by tests/make_smallest.py: of each mistake that the claim must catch, a small case on which it breaks.\n"


def fresh(name: str) -> Invariant:
    """Return an invariant whose faults have not been asked anything yet: some remember."""
    module = sys.modules[invariants()[name].module]
    spec = spec_from_file_location(module.__name__, str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    found: Invariant = copy.INVARIANT
    return found


def fresh_fault(name: str, mistake: str) -> Fault:
    """Return a fault that has not been asked anything yet."""
    return next(fault for fault in fresh(name).faults if fault.mistake == mistake)


def slug(mistake: str) -> str:
    """Return a mistake as the name of a document."""
    plain = unicodedata.normalize("NFKD", mistake.replace("√", "root ").replace("−", "minus ").replace("∞", "infinity"))
    return re.sub(r"[^A-Za-z0-9_]+", "-", plain.encode("ascii", "ignore").decode()).strip("-")


def smallest(name: str, mistake: str) -> Case:
    """Return the smallest case that some searches find for a fault."""
    found = list(simplest(invariants()[name]))
    for seed in SEEDS:
        wrong = fresh_fault(name, mistake).implementation
        hunted = hunt(wrong, [invariants()[name]], examples=EXAMPLES, seed=seed).found
        if hunted is not None:
            found.append(smaller(hunted, name, mistake))
    return min((case for case in found if tells(case, name, mistake)), key=lambda case: cost(case).together)


def simplest(claim: Invariant) -> Iterator[Case]:
    """Yield the simplest cases that there are: one key, one channel."""
    for number in (0, 1):
        document = {"d_k": 1, "q": [number], "keys": [[number]], "bQ": [0], "bK": [0]}
        yield expecting(build_case(document, id=claim.name), claim)


def tells(case: Case, name: str, mistake: str) -> bool:
    """Say whether a claim breaks on a case for a fault that remembers nothing, and holds for what is right."""
    claim = invariants()[name]
    wrong = judge(claim, case, fresh_fault(name, mistake).implementation)
    return wrong.status in {"fail", "crashed"} and judge(claim, case, right_of(claim)).status == "pass"


def smaller(hunted: Found, name: str, mistake: str) -> Case:
    """Reduce a case again and again, each time for a fault that remembers nothing."""
    case, finding, before = hunted.case, hunted.finding, None
    while before is None or cost(case) != before:
        before = cost(case)
        small = reduced(case, hunted.claim, finding, fresh_fault(name, mistake).implementation)
        case, finding = small.case, small.finding
    return case


def made(name: str) -> str:
    """Return what the file of a claim holds."""
    documents = []
    for fault in invariants()[name].faults:
        case = smallest(name, fault.mistake).but(title=fault.mistake)
        documents.append(text(case, slug(fault.mistake)))
    return HEAD + "---\n".join(documents)


def main(names: list[str]) -> None:
    """Write the files."""
    wanted = names or list(invariants())
    with pool(os.cpu_count() or 1) as workers:
        for name, said in zip(wanted, workers.imap(made, wanted), strict=True):
            path = resources.smallest(name)
            path.parent.mkdir(exist_ok=True)
            Path(path).write_text(said, encoding="utf-8")
            print(f"{path.name}: {len(said.split('---'))} cases", flush=True)  # noqa: T201 - it says what it does


if __name__ == "__main__":
    main(sys.argv[1:])
