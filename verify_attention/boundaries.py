"""Where the conclusion stops: what becomes of three claims about biases under each departure from plain attention.

Every cell is measured: on the boundary cases of its row the claim was really checked, and held, or broke by so much.
A boundary case is tagged with its row: the name of a feature, or of a structure such as GQA. Any other case has a row
of its own: what the three claims do there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verify_attention import engine
from verify_attention.departures import in_order
from verify_attention.errors import UsageError
from verify_attention.model import Case, Finding, Implementation, Tolerance
from verify_attention.plugins import features, invariants
from verify_attention.structure import without

TAG = "boundaries"
STRUCTURES = ("plain", "scale", "cross-attention", "multi-head", "MQA", "GQA", "MLA")
CLAIMS = {
    "key-bias-leaves-weights": "K bias leaves weights",
    "query-bias-moves-score-gaps": "Q bias moves gaps",
    "value-bias-passes-through": "V bias passes",
}
BESIDE = "both-biases-weigh-like-query-bias"


@dataclass(frozen=True)
class Cell:
    """What was found of one claim: in how many cases it held, and by how much it broke in each of the others.

    `rounded`: how far apart the sides were in each case in which rounding alone may have done it.
    """

    held: int
    broke: tuple[float, ...] = ()
    rounded: tuple[float, ...] = ()
    wrong: tuple[str, ...] = ()  # what was not as its case expects

    @property
    def verdict(self) -> str:
        """Holds, breaks, or depends on the case; a dash where nothing could be measured."""
        if self.held and self.broke:
            return "depends"
        if self.broke:
            return "breaks"
        if self.rounded:
            return "rounding"
        return "holds" if self.held else "–"


@dataclass(frozen=True)
class Row:
    """One departure: its name, what it acts on, a cell for each claim, and why a K bias fares so."""

    name: str
    stage: str
    cells: Mapping[str, Cell]
    why: str


def boundary_map(
    cases: Sequence[Case], implementation: Implementation, tolerance: Tolerance, *, each_case: bool = False
) -> list[Row]:
    """Measure the claims on boundary cases: structures first, then features in the order in which they act.

    `each_case` gives each case a row of its own, which says what it is about. A case that is no boundary case has a row
    by its id, behind the others.

    Raises:
        UsageError: a boundary case has no row, or more than one.

    """
    known, rows = features(), dict[str, list[Case]]()
    for case in cases:
        if TAG in case.tags:
            rows.setdefault(_row_of(case), []).append(case)
    others = [_observed(case, implementation, tolerance) for case in cases if TAG not in case.tags]
    chosen = [invariants()[name] for name in CLAIMS]
    reports = {
        report.case.id: report.findings
        for report in engine.run([case for group in rows.values() for case in group], implementation, chosen, tolerance)
    }
    structures = sorted(rows.keys() - known.keys(), key=_place)
    order = structures + [name for name in known if name in rows]
    if each_case:
        return [_row(name, [case], reports, case) for name in order for case in rows[name]] + others
    return [_row(name, rows[name], reports) for name in order] + others


def _observed(case: Case, implementation: Implementation, tolerance: Tolerance) -> Row:
    """Say what the claims do on any case, whatever it expects, and which features take away what a K bias needs.

    A K bias may do beside the Q bias what it does not do alone: of both, that is told which moves weights more.
    """
    chosen = [invariants()[name] for name in (*CLAIMS, BESIDE)]
    *findings, beside = engine.run_case(case.but(expect={}), implementation, chosen, tolerance).findings
    key = max(findings[0], beside, key=_telling)
    cells = {
        claim: _cell([case], [found], judged=False) for claim, found in zip(CLAIMS, [key, *findings[1:]], strict=True)
    }
    stages = dict.fromkeys(feature.stage for feature in in_order(case))
    return Row(case.id, ", ".join(stages) or "–", cells, _reason(case, key, implementation, tolerance))


def _telling(finding: Finding) -> tuple[int, float]:
    order = (None, "holds", "within-rounding", "breaks")
    return order.index(finding.observed), finding.deviation or 0.0


def _reason(case: Case, found: Finding, implementation: Implementation, tolerance: Tolerance) -> str:
    """Say why a K bias moves weights, or does not.

    Where it does, and several features take away what it needs, those are named with which it does when the others
    are gone.
    """
    if found.observed is None:
        return found.reason or ""
    key = invariants()[found.invariant]
    missing = engine.missing_traits(key, case)
    takers = {name for names in missing.values() for name in names}
    if not takers:
        return "a common K bias adds one number to every visible score of a row"
    if found.observed != "breaks":
        return f"{engine.taken_away(missing)}, but this K bias moves no weight"
    claims, plain = [invariants()[claim] for claim in (next(iter(CLAIMS)), BESIDE)], case.but(expect={})
    guilty = {
        name
        for name in takers
        for claim in claims
        if engine.judge(claim, without(plain, *takers - {name}), implementation, tolerance).observed == "breaks"
    }
    named = {trait: [name for name in names if name in (guilty or takers)] for trait, names in missing.items()}
    return engine.taken_away({trait: names for trait, names in named.items() if names})


def _place(name: str) -> tuple[int, str]:
    return STRUCTURES.index(name) if name in STRUCTURES else len(STRUCTURES), name


def _row_of(case: Case) -> str:
    names = [tag for tag in case.tags if tag != TAG]
    if len(names) != 1:
        raise UsageError(f"{case.id} has the tags {', '.join(case.tags)}; beside {TAG!r} must be one, its row's name")
    return names[0]


def _row(name: str, cases: Sequence[Case], reports: Mapping[str, Sequence[Finding]], only: Case | None = None) -> Row:
    feature = features().get(name)
    found = zip(*(reports[case.id] for case in cases), strict=True)
    cells = {claim: _cell(cases, findings) for claim, findings in zip(CLAIMS, found, strict=True)}
    stage = feature.stage if feature else "–"
    if only is not None:
        return Row(only.id.rpartition("/")[2], stage, cells, only.title or "")
    why = feature.why if feature else cases[0].title or ""
    return Row(name, stage, cells, why[:1].upper() + why[1:])


def _cell(cases: Sequence[Case], findings: Sequence[Finding], *, judged: bool = True) -> Cell:
    wrong = tuple(
        f"{case.id}: {finding.invariant} is {finding.status}: {finding.reason or 'not checked'}"
        for case, finding in zip(cases, findings, strict=True)
        if judged and finding.status != "pass"
    )
    by = {
        observed: tuple(finding.deviation or 0.0 for finding in findings if finding.observed == observed)
        for observed in ("holds", "breaks", "within-rounding")
    }
    return Cell(len(by["holds"]), by["breaks"], by["within-rounding"], wrong)
