"""Judge one case: ask whether each claim applies, compare its sides, and gather the traces."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from verify_attention.casting import fits
from verify_attention.departures import taken_by
from verify_attention.engine.attend import Attend, NotOfferedError
from verify_attention.engine.tally import Tally, unchecked
from verify_attention.model import (
    ABOUT_OTHERS,
    CONDITIONS,
    FLOAT64,
    Case,
    CaseReport,
    Condition,
    CrashedError,
    Finding,
    Implementation,
    Invariant,
    NotShownError,
    Tolerance,
)
from verify_attention.pipeline import CORE
from verify_attention.selection import blocks
from verify_attention.summary import LARGEST, Gathering


def run_case(
    case: Case,
    implementation: Implementation,
    chosen: Iterable[Invariant],
    tolerance: Tolerance,
    largest: float = LARGEST["auto"],
    *,
    traces: bool = True,
) -> CaseReport:
    """Judge invariants on one case, block by block, and gather the traces of its four conditions, where wanted.

    Of an array of more than `largest` numbers only a summary is kept.
    """
    findings: dict[str, Finding] = {}
    tallies: dict[str, Tally] = {}
    gathered: dict[tuple[Condition, str], Gathering] = {}
    chosen = list(chosen)
    for invariant in chosen:
        with np.errstate(all="ignore"):
            about_others = not_of(invariant, implementation)
            reason = unfit(case) or invariant.not_asked(case)
        if about_others is not None:  # whatever the case expects: it is expected of others
            findings[invariant.name] = unchecked(invariant, case.but(expect={}), about_others)
        elif reason is not None:
            findings[invariant.name] = unchecked(invariant, case, reason)
        else:
            tallies[invariant.name] = Tally(invariant, case, tolerance, case.expect.get(invariant.name, "holds"))
    with np.errstate(all="ignore"):
        for block in blocks(case):
            attend = Attend(implementation)
            if traces:
                _gather(gathered, case, block, attend, largest)
            for name, tally in list(tallies.items()):
                stopped = _add(tally, block, attend)
                if stopped is not None:
                    findings[name] = stopped
                    del tallies[name]
    for name, tally in tallies.items():
        hidden = not tally.agrees_where_it_should_not or not _core_breaks(tally)
        findings[name] = tally.finding(missing_traits(tally.invariant, case), hidden)
    return CaseReport(case, _conditions(gathered), tuple(findings[invariant.name] for invariant in chosen))


def _core_breaks(tally: Tally) -> bool:
    """Say whether a control breaks for the core on the same case, beyond the limits of its precision."""
    core = Tally(tally.invariant, tally.case, tally.tolerance, "breaks")
    with np.errstate(all="ignore"):
        for block in blocks(tally.case):
            _add(core, block, Attend(CORE))
    return core.breaks


def unfit(case: Case) -> str | None:
    """Return the reason why nothing can be asked of a case in the dtype that it was cast to; else None."""
    return None if case.precision == FLOAT64 or fits(case) else f"a number overflows {case.precision.dtype}"


def not_of(invariant: Invariant, implementation: Implementation) -> str | None:
    """Return the reason why a claim is not asked of an implementation: the core is no peer of itself."""
    return ABOUT_OTHERS if invariant.of_others and getattr(implementation, "is_core", False) else None


def missing_traits(invariant: Invariant, case: Case) -> dict[str, list[str]]:
    """Return the traits that an invariant needs and features of the case take away: `{trait: features}`."""
    missing: dict[str, list[str]] = {}
    for name, traits in taken_by(case).items():
        for trait in sorted(traits & invariant.needs):
            missing.setdefault(trait, []).append(name)
    return missing


def _add(tally: Tally, block: Case, attend: Attend) -> Finding | None:
    """Add a block to a tally, or return the finding that ends it."""
    try:
        for sides in tally.invariant.sides(block, attend):
            tally.add(sides, block)
    except CrashedError as error:
        return Finding(tally.invariant.name, "crashed", tally.expected, reason=str(error))
    except NotOfferedError as error:
        tally.cut_short = f"not offered: {error}"
    except NotShownError as error:
        tally.hidden = f"not shown: the implementation does not show its {error}"
    return None


def _gather(
    traces: dict[tuple[Condition, str], Gathering], case: Case, block: Case, attend: Attend, largest: float
) -> None:
    for condition in CONDITIONS:
        try:
            trace = attend(block.under(condition))
        except (CrashedError, NotOfferedError):
            continue
        for name, array in {**trace.inside, "output": trace.output}.items():
            if name == "layer":
                continue  # it has no heads, and a block of one head has only that head's part of it
            shape = case.scores_shape[:2] + array.shape[2:]
            traces.setdefault((condition, name), Gathering(shape, largest)).add(array)


def _conditions(traces: dict[tuple[Condition, str], Gathering]) -> dict[Condition, dict[str, object]]:
    conditions: dict[Condition, dict[str, object]] = {condition: {} for condition in CONDITIONS}
    for (condition, name), gathering in traces.items():
        if gathering.complete:
            conditions[condition][name] = gathering.result()
    return conditions
