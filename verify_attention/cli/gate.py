"""`verify-attention gate`: judge a results file anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verify_attention.cli import names
from verify_attention.cli.choices import (
    DTYPES,
    echo,
    one_blas_thread,
    selection_options,
    tolerance_options,
)
from verify_attention.cli.settings import Configured, not_typed
from verify_attention.cli.stored import MOST_PROBLEMS, read_results
from verify_attention.errors import ExitCode

if TYPE_CHECKING:
    from verify_attention.gate import Verdict
    from verify_attention.model import Case, UnderTest


@click.command(cls=Configured, short_help="Judge a results file anew; trust nothing in it.")
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS.JSON")
@click.option(
    "--cases",
    "folders",
    multiple=True,
    metavar="DIR",
    help="The case files: each must be in the results, unchanged; repeatable, as the paths of the run were. Default: "
    "where the results say, if they are there.",
)
@click.option(
    "--implementation",
    default="core",
    show_default=True,
    metavar="NAME",
    help="What was under test.",
    shell_complete=names.implementations,
)
@click.option("--dtype", type=click.Choice(DTYPES), default="float64", show_default=True, help="Its arrays' type.")
@click.option(
    "--computes-in",
    type=click.Choice(DTYPES),
    help="In which precision it computes. Default: what its adapter declares, or its dtype.",
)
@click.option("--exact", is_flag=True, help="Ask for the opinion of exact arithmetic on every measured equation.")
@click.option("--baseline", type=click.Path(path_type=Path), metavar="OLD.JSON", help="Name what got worse since.")
@tolerance_options
@selection_options
def gate(
    results: Path,
    folders: tuple[str, ...],
    baseline: Path | None,
    rtol: float,
    atol: float,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    **given: Any,
) -> int:
    """Judge RESULTS.JSON anew: its schema, digests, inputs, traces, findings and counts.

    Every invariant must be there (or those that --select and --ignore choose, as they did for the run), judged with
    at most the tolerance given here. What the environment or a file sets is said, before the verdict. Exit code 0:
    the file is sound and everything held; 1: it is sound, and something broke or got worse; 4: it is not sound.
    """
    one_blas_thread()
    from verify_attention import gate as gating  # noqa: PLC0415
    from verify_attention import plugins, wording  # noqa: PLC0415
    from verify_attention.gate.baseline import unsound, worse  # noqa: PLC0415
    from verify_attention.model import Tolerance  # noqa: PLC0415

    exact = given.pop("exact")
    chosen = plugins.chosen(select, ignore)
    made = read_results(results)
    files = _cases(made, folders)
    verdict = gating.judge(made, chosen, Tolerance(rtol, atol), files, bool(folders), _due(**given), exact)
    verdict.notes += _notes(made, files, folders)
    if baseline is not None:
        old = read_results(baseline)
        verdict.problems += unsound(old)
        verdict.worse += worse(old, made)
    settings = not_typed(click.get_current_context())
    echo("".join(f"setting: {wording.printable(line)}\n" for line in settings))
    return _said(results, verdict)


def _due(implementation: str, dtype: str, computes_in: str | None) -> UnderTest:
    """Return what must have been under test: an adapter declares in which precision it computes."""
    from verify_attention.loading import spoken  # noqa: PLC0415
    from verify_attention.model import UnderTest  # noqa: PLC0415
    from verify_attention.plugins import implementations  # noqa: PLC0415

    adapter = implementations().get(implementation)
    declared = dtype if adapter is None else adapter.computes_in.get(dtype, dtype)
    return UnderTest(spoken(implementation), "", dtype, computes_in or declared)


def _cases(made: dict[str, Any], folders: tuple[str, ...]) -> dict[str, Case]:
    """Load the case files: all of a folder, or those that the results name and that are here."""
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.resources import SHIPPED  # noqa: PLC0415

    if folders:
        return {case.id: case for case in load_cases(folders)}
    here = sorted({entry["file"] for entry in made["cases"] if _is_case_file(entry["file"])})
    found_here = [case for file in here for case in load_cases([file])]  # one by one: their ids may be the same
    built_in = load_cases(shipped=".") if any(entry["file"].startswith(SHIPPED) for entry in made["cases"]) else []
    by_place = {(case.file, case.id.partition("::")[2]): case for case in [*built_in, *found_here]}
    found = ((entry["id"], by_place.get((entry["file"], entry["id"].partition("::")[2]))) for entry in made["cases"])
    return {name: case for name, case in found if case is not None}


def _is_case_file(name: str) -> bool:
    """Say whether a results file names a case file below this folder; it is not to be trusted with other paths."""
    path = Path(name)
    inside = not path.is_absolute() and ".." not in path.parts
    try:
        return inside and path.suffix in {".yaml", ".yml"} and path.is_file()
    except OSError:  # no file system takes such a name
        return False


def _notes(made: dict[str, Any], files: dict[str, Case], folders: tuple[str, ...]) -> list[str]:
    """Say what could not be checked, and what differs without being wrong."""
    from verify_attention import __version__  # noqa: PLC0415
    from verify_attention.gate.traces import summarised_for_size  # noqa: PLC0415
    from verify_attention.model import this_machine  # noqa: PLC0415

    notes = []
    absent = [entry["file"] or entry["id"] for entry in made["cases"] if entry["id"] not in files]
    if absent and not folders:
        which = f"{absent[0]}{f' and {len(absent) - 1} more' if len(absent) > 1 else ''}"
        notes.append(f"not here: {which}; inputs were taken from the results (--cases DIR says where the files are)")
    notes += _about_opinions(made)
    if made["tool"]["version"] != __version__:
        notes.append(f"written by version {made['tool']['version']}, judged by {__version__}")
    here = this_machine()
    if made["implementation"]["name"] != "core":
        notes.append("not the core: judged from its stored traces; equations that need others are taken as they are")
        large = [entry["id"] for entry in made["cases"] if summarised_for_size(entry)]
        if large:
            which = f"{large[0]}{f' and {len(large) - 1} more' if len(large) > 1 else ''}"
            notes.append(
                f"too large to be stored whole, and taken as they are: {which} (run --detail full stores them)"
            )
    other = [f"{name} {value}, here {here[name]}" for name, value in made["environment"].items() if value != here[name]]
    if other:
        notes.append(f"written elsewhere ({'; '.join(other)}): the core's numbers are compared within rounding")
    return notes


def _about_opinions(made: dict[str, Any]) -> Iterator[str]:
    """Say which opinions of exact arithmetic need balls, here or where the file was written."""
    from verify_attention.exact.balls import INSTALL, balls_are_here  # noqa: PLC0415

    findings = (finding for entry in made["cases"] for finding in entry["findings"])
    reasons = [finding["opinion"]["reason"] for finding in findings if "opinion" in finding]
    by_balls, missed = sum("balls of" in one for one in reasons), sum(one.endswith(INSTALL) for one in reasons)
    if by_balls and not balls_are_here():
        yield f"{by_balls:,} opinions by balls are taken as they are: {INSTALL}"
    if missed:
        yield f"{missed:,} opinions are undecided for want of balls where the file was written: {INSTALL}"


def _said(path: Path, verdict: Verdict) -> int:
    """Print a verdict and return its exit code."""
    from verify_attention import wording  # noqa: PLC0415
    from verify_attention.reports.figures import counted  # noqa: PLC0415

    for title, lines in (("not sound", verdict.problems), ("broken", verdict.broken), ("worse", verdict.worse)):
        for line in lines[:MOST_PROBLEMS]:
            echo(f"{title}: {wording.printable(line)}\n")
        if len(lines) > MOST_PROBLEMS:
            echo(f"{title}: … and {len(lines) - MOST_PROBLEMS:,} more\n")
    for note in verdict.notes:
        echo(f"note: {wording.printable(note)}\n", err=True)
    if verdict.problems:
        code, words = ExitCode.CRASHED, "FAIL  not to be trusted"
    elif verdict.crashed:
        code, words = ExitCode.CRASHED, "FAIL  sound, but an implementation crashed"
    elif verdict.broken or verdict.worse:
        code, words = ExitCode.BROKEN, "FAIL  sound, but something broke or got worse"
    else:
        code, words = ExitCode.OK, "PASS  sound, and everything held"
    echo(f"{words}: {path}, {counted(verdict.rejudged, 'case')} judged anew\n")
    return code
