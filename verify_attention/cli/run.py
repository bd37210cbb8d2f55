"""`verify-attention run`: judge cases, write results.json, show the table."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verify_attention.cli.choices import (
    Jobs,
    before_folders_of_others,
    chosen_cases,
    color_option,
    echo,
    emit,
    implementation_options,
    lang_option,
    one_blas_thread,
    own_paths_argument,
    selection_options,
    text_option,
    tolerance_options,
    use_color,
    width,
)
from verify_attention.cli.interrupting import twice_ends_at_once, until_interrupted
from verify_attention.cli.progress import Bar
from verify_attention.cli.reporting import Wanted, check_files, report_option, show
from verify_attention.cli.settings import Configured
from verify_attention.cli.shrinking import smallest
from verify_attention.errors import ExitCode, UsageError
from verify_attention.languages import ENGLISH, Language

if TYPE_CHECKING:
    from verify_attention.model import Case, CaseReport, Report, Tolerance


@dataclass(frozen=True)
class Options:
    """What a run was asked to do, as the command line gave it."""

    paths: tuple[str, ...]
    output: str
    no_output: bool
    rtol: float
    atol: float
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    text: str | None
    maxfail: int | None
    quiet: bool
    verbose: bool
    jobs: int
    shard: tuple[int, int] | None
    implementation: str
    dtype: str
    exact: bool
    color: str
    progress: bool
    detail: str
    reports: tuple[Wanted, ...] = ()
    say: Language = ENGLISH
    shrink: bool = False

    @property
    def table(self) -> dict[str, Any]:
        """How the table is shown."""
        return {"color": self.color, "verbose": self.verbose, "quiet": self.quiet}

    @property
    def to_stderr(self) -> bool:
        """Whether reports go to stderr, as the results go to stdout."""
        return self.output in {"-", "/dev/stdout"} and not self.no_output

    @property
    def aside(self) -> bool:
        """Whether what only people read goes to stderr, as something for programs goes to stdout."""
        return self.to_stderr or any(wanted.file is None and wanted.form != "table" for wanted in self.reports)


class _Shard(click.ParamType[tuple[int, int]]):
    name = "I/N"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        index, slash, count = value.partition("/")
        number = slash and value.isascii() and index.isdecimal() and count.isdecimal() and len(count) < 10
        if not number or not 1 <= int(index) <= int(count):
            self.fail(f"{value!r} is not of the form I/N with 1 ≤ I ≤ N", param, ctx)
        return int(index), int(count)


@click.command(cls=Configured, short_help="Judge cases, write results.json, show the table.")
@own_paths_argument
@click.option("-o", "--output", default="results.json", show_default=True, metavar="FILE", help="Results; - is stdout.")
@click.option("--no-output", is_flag=True, help="Write no results.")
@tolerance_options
@selection_options
@text_option()
@click.option("-x", "--fail-fast", is_flag=True, help="Stop after the first case that breaks.")
@click.option("--maxfail", type=click.IntRange(min=1), metavar="N", help="Stop after N findings that break.")
@click.option("-q", "--quiet", is_flag=True, help="Print what broke and the summary only.")
@click.option("-v", "--verbose", is_flag=True, help="Print every finding, with the reason of each skip.")
@report_option
@lang_option
@click.option("-n", "--jobs", type=Jobs(), default="1", show_default=True, help="Run in N processes.")
@click.option("--shard", type=_Shard(), help="Run every Nth case, from the Ith.")
@implementation_options
@click.option(
    "--exact",
    is_flag=True,
    help="Ask exact arithmetic too: mathematics, rounding, or the implementation?",
)
@color_option
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@click.option(
    "--detail",
    type=click.Choice(["auto", "full", "summary"]),
    default="auto",
    show_default=True,
    help="Arrays in the results: auto summarises those above 4,096 numbers.",
)
@click.option("--shrink", is_flag=True, help="Print a small case, in YAML, for each claim that broke.")
def run(paths: tuple[str, ...], fail_fast: bool, maxfail: int | None, no_progress: bool, **given: object) -> int:
    """Judge the cases in PATH (files, folders, file.yaml::name), write results.json and show a table.

    Without PATH, the built-in cases of the article are judged, and all built-in cases of another implementation than
    the core. Exit code 0: every claim held.
    """
    if given["quiet"] and given["verbose"]:
        raise UsageError("--quiet and --verbose exclude each other")
    options = Options(
        paths=paths,
        maxfail=1 if fail_fast else maxfail,
        progress=not no_progress,
        **given,  # type: ignore[arg-type]
    )
    one_blas_thread()
    gc.disable()  # many small objects, no cycles, and the end is near: a twelfth of the time
    return execute(options)


def execute(options: Options) -> int:
    """Run with options; testable without a command line."""
    from verify_attention import engine, files, plugins, results  # noqa: PLC0415
    from verify_attention.casting import cast  # noqa: PLC0415
    from verify_attention.loading import ended, load, never_given  # noqa: PLC0415
    from verify_attention.model import Report, Tolerance  # noqa: PLC0415
    from verify_attention.summary import LARGEST  # noqa: PLC0415

    chosen = plugins.chosen(options.select, options.ignore)
    target = _target(options)
    check_files(options.reports, target)
    home = Path.cwd()
    if options.implementation != "core":
        before_folders_of_others()
    loaded = load(options.implementation, options.dtype)
    echo("".join(f"note: {line}\n" for line in never_given(loaded)), err=True)
    cases = [cast(case, loaded.precision) for case in _cases(options)]
    tolerance = Tolerance(options.rtol, options.atol)
    reports = engine.run(
        cases,
        loaded,
        chosen,
        tolerance,
        largest=LARGEST[options.detail],
        jobs=options.jobs,
        then=_opined(tolerance) if options.exact else None,
    )
    with twice_ends_at_once():
        judged, interrupted = until_interrupted(_judged(cases, reports, options))
        report = Report(loaded.under_test, tolerance, judged)
        if interrupted:
            return _interrupted(report, options, len(cases))
    made = results.encoded(report, options.detail)
    os.chdir(home)  # whatever was under test may have gone to another folder
    if target is not None:
        files.write_atomically(target, made)
    elif not options.no_output:
        emit(made)
    show(report, options.say, options.reports, options.table, err=options.to_stderr)
    if len(report.cases) < len(cases):
        echo(f"stopped after {len(report.cases)} of {len(cases)} cases: --fail-fast or --maxfail\n", err=True)
    if options.shrink:
        wanted = options.progress and not options.quiet
        for small in smallest(report, loaded, width=width(), color=use_color(options.color), progress=wanted):
            echo(small, err=options.aside)
        os.chdir(home)
    if target is not None and not options.quiet:
        echo(f"results: {target}\n", err=True)
    stale = ended(loaded)  # after the work: a library that has been asked is no good one to fork
    echo("".join(f"{line}\n" for line in stale), err=True)
    return max(exit_code(report), ExitCode.BROKEN) if stale else exit_code(report)


def _target(options: Options) -> Path | None:
    """Return the file that the results go to, which can be written; None where they go to stdout, or nowhere."""
    from verify_attention import files  # noqa: PLC0415

    if options.no_output or options.to_stderr:
        return None
    if options.output.endswith(("/", "\\")):
        raise UsageError(f"{options.output}: is a folder's name, a file name is needed")
    files.check_writable(Path(options.output))
    return Path(options.output)


def _opined(tolerance: Tolerance) -> Callable[[CaseReport], CaseReport]:
    from verify_attention.exact import opined  # noqa: PLC0415

    return partial(opined, tolerance=tolerance)


def _cases(options: Options) -> list[Case]:
    from verify_attention.cases import load_cases  # noqa: PLC0415

    shipped = "article" if options.implementation == "core" else "."
    with Bar("reading cases", options.progress and not options.quiet) as bar:
        cases = chosen_cases(load_cases(options.paths, shipped=shipped, progress=bar.show), options.text)
    if options.shard is None:
        return cases
    index, count = options.shard
    part = cases[index - 1 :: count]
    if not part:
        raise UsageError(f"shard {index}/{count} holds no case: there are only {len(cases)}")
    return part


def _judged(cases: list[Case], reports: Iterable[CaseReport], options: Options) -> Iterator[CaseReport]:
    """Yield the cases' reports up to the number of broken findings that ends a run."""
    broken = 0
    with Bar("judging cases", options.progress and not options.quiet) as bar:
        for done, entry in enumerate(reports, 1):
            yield entry
            bar.show(done, len(cases))
            if options.maxfail is None:
                continue
            broken += sum(finding.broke for finding in entry.findings)
            if broken >= options.maxfail:
                return


def _interrupted(report: Report, options: Options, wanted: int) -> ExitCode:
    """Show what a Ctrl-C has left, as a table; a part of a run is written nowhere, and the old results stay."""
    if report.cases:
        show(report, options.say, (), {**options.table, "interrupted": True}, err=options.aside)
    say, done = options.say, len(report.cases)
    told = say("interrupted after {done} of {all} cases: no results are written", done=done, all=wanted)
    echo(f"{told}\n", err=True)
    return ExitCode.INTERRUPTED


def exit_code(report: Report) -> ExitCode:
    """Return the worst that a report holds; where nothing was really checked, nothing held."""
    findings = [finding for _, finding in report.findings()]
    if any(finding.status == "crashed" for finding in findings):
        return ExitCode.CRASHED
    held = any(finding.checked for finding in findings) and not any(finding.broke for finding in findings)
    return ExitCode.OK if held else ExitCode.BROKEN
