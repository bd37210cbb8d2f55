"""The search put to the test: it finds every declared fault, small, and nothing where nothing is wrong. Takes minutes.

Run it with `python -m pytest tests/slow`; it uses two processes. Only VERIFY_ATTENTION_WHOLE=1 asks for every fault,
and draws 20,000 examples of what is right.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from make_smallest import fresh_fault, smaller
from making import right_of
from test_smallest import DECLARED, LARGER, too_large

from verify_attention import plugins, selftest
from verify_attention.engine import judge, pool
from verify_attention.model import Implementation, precision
from verify_attention.pipeline import CORE
from verify_attention.search import hunt, text

INVARIANTS = plugins.invariants()
RIGHT = {"core": (CORE, None), **{one.name: (one.implementation, one.computes_in) for one in selftest.variations()}}
PROCESSES = 2
WHOLE = os.environ.get("VERIFY_ATTENTION_WHOLE") == "1"
ASKED = DECLARED if WHOLE else DECLARED[::6]
EXAMPLES = 20_000 if WHOLE else 2_000
ENOUGH = 6_000  # examples in which a fault has to be found
SEED = 20  # neither that of the command line nor one that the smallest cases are made with


def complaint_about_fault(name: str, mistake: str, wrong: Implementation | None = None) -> str:
    """Return what is wrong with how a fault is found; nothing where it is found, and small."""
    claim = INVARIANTS[name]
    wrong = wrong or fresh_fault(name, mistake).implementation
    found = hunt(wrong, [claim], examples=ENOUGH, seed=SEED).found
    if found is None:
        return f"{name}, {mistake}: not found"
    case = smaller(found, name, mistake)
    if too_large(case) and (name, mistake) not in LARGER:
        return f"{name}, {mistake}: too large:\n{text(case)}"
    if judge(claim, case, right_of(claim)).status != "pass":
        return f"{name}, {mistake}: says nothing of what is right:\n{text(case)}"
    return ""


def complaint_about_right(name: str, wrong: Implementation | None = None, examples: int = EXAMPLES) -> str:
    """Return what is found in a right implementation, judged in its own precision; nothing where that is nothing."""
    implementation, computes_in = RIGHT[name]
    own = precision("float64", computes_in)
    state = hunt(wrong or implementation, list(INVARIANTS.values()), examples=examples, seed=SEED, own=own)
    if state.found is not None:
        return f"{name}: {state.found.finding}\n{text(state.found.case)}"
    return "" if state.checked.total() > examples / 2 else f"{name}: only {state.checked.total()} were checked"


def _fault(one: tuple[str, str]) -> str:
    return complaint_about_fault(*one)


def test_every_declared_fault_is_found_and_shrunk() -> None:
    with pool(PROCESSES) as workers:
        assert [said for said in workers.imap(_fault, ASKED) if said] == []


def test_nothing_is_found_in_the_core_and_in_correct_variations() -> None:
    with pool(PROCESSES) as workers:
        work = partial(complaint_about_right, examples=EXAMPLES)
        assert [said for said in workers.imap(work, RIGHT) if said] == []


def test_both_would_complain() -> None:
    name, mistake = "key-bias-leaves-weights", "the K bias reaches the first key only"
    assert complaint_about_fault(name, mistake, CORE).endswith(": not found")
    wrong = fresh_fault(name, mistake).implementation
    assert complaint_about_right("core", wrong, 500).startswith("core: Finding(")
    assert "were checked" in complaint_about_right("a signature without options", examples=4)
