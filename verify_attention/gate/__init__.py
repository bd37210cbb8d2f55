"""Judge a results file anew, trusting nothing that it says of itself.

What it says is compared with what follows from it: a status with its numbers, numbers with the stored traces, the
core's traces with the stored inputs judged anew, inputs with the case files, counts with what is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from verify_attention import results, sealing
from verify_attention.cases import build_case
from verify_attention.casting import cast
from verify_attention.errors import CasesRefusedError
from verify_attention.gate.anew import judged_anew
from verify_attention.gate.numbers import own_numbers
from verify_attention.gate.opinions import contradicted, opinions_anew
from verify_attention.gate.traces import detail_of, is_summary
from verify_attention.model import BROKEN, FLOAT64, Case, Invariant, Precision, Tolerance, UnderTest, precision
from verify_attention.sealing import Document
from verify_attention.wording import join

MOST_NAMES = 3  # of findings that are not there


@dataclass
class Verdict:
    """What a gate found: problems make the file untrustworthy; broken and worse findings are what it rightly says."""

    problems: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    crashed: bool = False
    worse: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rejudged: int = 0


def judge(
    made: Document,
    chosen: Sequence[Invariant],
    tolerance: Tolerance,
    files: Mapping[str, Case],
    complete: bool = False,
    implementation: UnderTest | None = None,
    exact: bool = False,
) -> Verdict:
    """Judge a document that satisfies its schema.

    Args:
        made: the results.
        chosen: the invariants that every case must have a finding on.
        tolerance: the largest tolerance that the results may have been judged with.
        files: the cases as their files have them now, by id; those that are not here are rebuilt from the results.
        complete: whether the results must have exactly the cases of `files`.
        implementation: what must have been under test, whatever its version; the core, unless given.
        exact: whether every measured finding must have the opinion of exact arithmetic.

    """
    verdict = Verdict()
    verdict.problems += [*_whole(made, tolerance), *_identity(made, implementation or UnderTest("core", ""))]
    verdict.problems += _lost(made, files if complete else None)
    by_problem: dict[str, list[str]] = {}
    for entry in made["cases"]:
        for problem in _judge_case(verdict, entry, made, chosen, files, exact):
            by_problem.setdefault(problem, []).append(entry["id"])
    for problem, (first, *others) in by_problem.items():  # one line for what is wrong with many cases
        verdict.problems.append(f"{first}{f' and {len(others)} more' if others else ''}: {problem}")
    for entry in made["cases"]:
        for finding in entry["findings"]:
            if contradicted(finding):
                said = finding["opinion"]["reason"]
                name, expected = finding["invariant"], finding["expected"]
                verdict.broken.append(f"{entry['id']}: {name}: passes, but `expect: {expected}` is wrong: {said}")
            if finding["status"] in BROKEN:
                cause = finding.get("opinion", {}).get("cause")
                how = f"{finding['status']}{f' ({cause})' if cause else ''}"
                verdict.broken.append(f"{entry['id']}: {finding['invariant']}: {how}: {finding['reason']}")
                verdict.crashed = verdict.crashed or finding["status"] == "crashed"
    return verdict


def _whole(made: Document, tolerance: Tolerance) -> Iterator[str]:
    """Check what is said of the run as a whole."""
    if made["digest"] != sealing.digest(made):
        yield "digest: the file was changed after it was written"
    for name in ("rtol", "atol"):
        if made["tolerance"][name] > getattr(tolerance, name):
            allowed = getattr(tolerance, name)
            yield f"tolerance.{name}: judged with {made['tolerance'][name]:g}, at most {allowed:g} is allowed"
    counted = results.summary(made["cases"])
    for name, count in counted.items():
        if made["summary"][name] != count:
            yield f"summary.{name}: says {made['summary'][name]}, counted {count}"
    if not made["cases"]:
        yield "cases: the run is empty"
    elif not counted["checked"]:
        yield "cases: no equation was really checked"


def _identity(made: Document, due: UnderTest) -> Iterator[str]:
    """Check what is said of the implementation: from its precision limits follow, so that it is not believed."""
    said = made["implementation"]
    for name in ("name", "dtype", "computes_in"):
        if said[name] != getattr(due, name):
            option = "--implementation" if name == "name" else f"--{name.replace('_', '-')}"
            yield f"implementation.{name}: says {said[name]}, expected {getattr(due, name)} ({option})"
    core_s = "float64", "float64", made["tool"]["version"]
    if said["name"] == "core" and (said["dtype"], said["computes_in"], said["version"]) != core_s:
        yield f"implementation: the core computes in float64 and has the version of the tool, {made['tool']['version']}"


def _lost(made: Document, files: Mapping[str, Case] | None) -> Iterator[str]:
    """Compare the cases' ids with each other, and with the files that the results must be about."""
    counts = Counter(entry["id"] for entry in made["cases"])
    yield from (f"{one}: stands {count} times" for one, count in counts.items() if count > 1)
    places = Counter((entry["file"], entry["id"].partition("::")[2]) for entry in made["cases"] if entry["file"])
    yield from (f"{file}: the same document stands {count} times" for (file, _), count in places.items() if count > 1)
    if files is not None:
        if not counts.keys() & files.keys():
            yield f"cases: the folder has other cases ({next(iter(files))}, …): give the folder that the run was given"
            return
        yield from (f"{one}: the case is in the folder, but not in the results" for one in files if one not in counts)
        yield from (f"{one}: the case is in the results, but not in the folder" for one in counts if one not in files)


def _judge_case(
    verdict: Verdict,
    entry: Document,
    made: Document,
    chosen: Sequence[Invariant],
    files: Mapping[str, Case],
    exact: bool,
) -> list[str]:
    """Check one case: by itself, against its file, and judged anew."""
    found: list[str] = []
    add = found.append
    tolerance = Tolerance(**made["tolerance"])
    intact = entry["digest"] == sealing.digest(entry)
    if not intact:
        add("was changed after it was written: its digest does not match")
    names = Counter(finding["invariant"] for finding in entry["findings"])
    found += _selection(names, [invariant.name for invariant in chosen])
    own_limits = {invariant.name for invariant in chosen if invariant.own_limit}
    if not _fits(entry["id"], entry["file"]):
        add(f"its file is {entry['file']!r}: ids end in the name of their file, and no file is named from the root")
    own = precision(made["implementation"]["dtype"], made["implementation"]["computes_in"])
    for finding in entry["findings"]:
        for problem in own_numbers(finding, tolerance, finding["invariant"] in own_limits, own != FLOAT64):
            add(f"{finding['invariant']}: {problem}")
    case = _case_of(entry, files, add, own)
    if case is None:
        return found
    verdict.rejudged += 1
    asked = [invariant for invariant in chosen if invariant.name in names]
    is_core, fails_here = made["implementation"]["name"] == "core", list[str]()
    found += judged_anew(entry, case, asked, tolerance, is_core, intact, fails_here)
    if exact or any("opinion" in finding for finding in entry["findings"]):
        found += opinions_anew(entry, case, asked, tolerance, exact)
    verdict.broken += [f"{entry['id']}: {said}" for said in fails_here]
    return found


def _fits(ident: str, file: str) -> bool:
    """Say whether an id and the path of a file go together; a case may be from no file."""
    path = PurePosixPath(file)
    if not path.name:
        return not file
    ending = PurePosixPath(ident.partition("::")[0]).parts
    return not path.is_absolute() and ".." not in path.parts and path.with_suffix("").parts[-len(ending) :] == ending


def _selection(found: Counter[str], asked: Sequence[str]) -> Iterator[str]:
    """Compare the invariants of a case's findings with those that must be there, each once."""
    lost = [name for name in asked if name not in found]
    if lost:
        named = join([*lost[:MOST_NAMES], *([f"{len(lost) - MOST_NAMES} more"] if len(lost) > MOST_NAMES else [])])
        yield f"lacks findings on {named}; if the run was made with --select or --ignore, give the same here"
    yield from (f"has {found[name]} findings on {name}, expected 1" for name in asked if found[name] > 1)
    for name in sorted(set(found) - set(asked)):
        yield f"has a finding on {name}, which was not asked for or is not known"


def _case_of(entry: Document, files: Mapping[str, Case], add: Callable[[str], None], own: Precision) -> Case | None:
    """Return the case to judge anew: from its file, if the results are about that; else from the stored inputs."""
    on_disk = files.get(entry["id"])
    if on_disk is not None:
        on_disk = cast(on_disk, own)
        if on_disk.sha256 != entry["sha256"]:
            add(f"{on_disk.file} has changed since the run: its sha256 is not the one in the results")
            return None
        if PurePosixPath(entry["file"]).name != PurePosixPath(on_disk.file).name:
            add(f"its file is {entry['file']!r}, but its case is in {on_disk.file}")
        if entry["line"] != on_disk.line:
            add(f"line says {entry['line']}, in {on_disk.file} its document begins at {on_disk.line}")
        for place in _differences(
            entry["inputs"], results.inputs(on_disk, detail_of(_leaves(entry["inputs"]))), "inputs"
        ):
            add(f"{place}, the case file says otherwise")
        return on_disk
    given = {name: value for name, value in entry["inputs"].items() if value is not None}
    if any(map(is_summary, _leaves(given))):
        add("cannot be judged anew: its inputs are summarised and its file is not here; give --cases")
        return None
    try:
        return cast(build_case(given, id=entry["id"], file=entry["file"], sha256=entry["sha256"]), own)
    except CasesRefusedError as error:
        add(f"inputs are not a case: {'; '.join(problem.message for problem in error.problems)}")
        return None


def _leaves(part: Any) -> Iterator[Any]:
    """Yield the arrays and summaries of stored inputs, wherever they stand."""
    if isinstance(part, dict) and not is_summary(part):
        for value in part.values():
            yield from _leaves(value)
    else:
        yield part


def _differences(stored: Any, fresh: Any, place: str) -> Iterator[str]:
    """Yield every place where two documents differ."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        for key in dict.fromkeys([*stored, *fresh]):
            yield from _differences(stored.get(key), fresh.get(key), f"{place}.{key}")
    elif isinstance(stored, list) and isinstance(fresh, list) and len(stored) == len(fresh):
        for index, (one, other) in enumerate(zip(stored, fresh, strict=True)):
            yield from _differences(one, other, f"{place}[{index}]")
    elif stored != fresh or isinstance(stored, bool) != isinstance(fresh, bool):
        yield f"{place}: says {stored!r}" if not isinstance(stored, list | dict) else f"{place}: differs in form"
