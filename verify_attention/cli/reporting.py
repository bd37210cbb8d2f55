"""Where reports go: `--report FORMAT[=FILE]`, and what `verify-attention report` shows of a stored run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from verify_attention.cli.choices import Decorated, color_option, echo, emit, lang_option, use_color, width
from verify_attention.cli.settings import Configured
from verify_attention.cli.stored import stored_report
from verify_attention.errors import ResultsError, UsageError
from verify_attention.languages import Language
from verify_attention.reports import FORMS

if TYPE_CHECKING:
    from verify_attention.model import Report

WIDTH_IN_FILES = 100


class Wanted(NamedTuple):
    """A form of the report, and the file that it goes to; None: stdout."""

    form: str
    file: str | None


class _Wanted(click.ParamType[Wanted]):
    name = "FORMAT[=FILE]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's signature
        """Complete a form."""
        return [CompletionItem(form) for form in FORMS if form.startswith(incomplete)]

    def convert(self, value: str | Wanted, param: click.Parameter | None, ctx: click.Context | None) -> Wanted:
        if isinstance(value, Wanted):
            return value
        form, equals, file = value.partition("=")
        if form not in FORMS:
            from verify_attention.wording import join, suggest  # noqa: PLC0415 - only where something is wrong

            self.fail(f"{form!r} is none of {join(FORMS, 'or')}{suggest(form, FORMS)}", param, ctx)
        if equals and not file:
            self.fail(f"{value!r} names no file behind the =", param, ctx)
        return Wanted(form, None if file in {"", "-", "/dev/stdout"} else file)


def report_option(function: Decorated) -> Decorated:
    """Add --report."""
    *first, last = FORMS
    text = f"Show the report as {', '.join(first)} or {last}; with =FILE, write it there. Repeatable."
    return click.option("--report", "reports", type=_Wanted(), multiple=True, help=text)(function)


def check_files(reports: Sequence[Wanted], output: Path | None = None) -> None:
    """Refuse files that cannot be written, or would be written twice, before any work is done.

    Raises:
        UsageError: one of them is such a file.

    """
    from verify_attention import files  # noqa: PLC0415

    taken = set() if output is None else {os.path.realpath(output)}
    for wanted in reports:
        if wanted.file is None:
            continue
        files.check_writable(Path(wanted.file))
        place = os.path.realpath(wanted.file)
        if place in taken and place != os.devnull:
            raise UsageError(f"{wanted.file}: two outputs cannot go to one file")
        taken.add(place)


def show(
    report: Report,
    say: Language,
    reports: Sequence[Wanted],
    table: Mapping[str, Any],
    *,
    otherwise: Sequence[str] = ("table",),
    err: bool = False,
) -> None:
    """Write a report in every form that is wanted: files first, then what goes to stdout, or stderr.

    Without one that goes there, the forms in `otherwise` do. `table` are its options: colour, `verbose` and `quiet`.

    Raises:
        ResultsError: a file could not be written.

    """
    from verify_attention import files  # noqa: PLC0415

    for wanted in reports:
        if wanted.file is not None:
            text = _rendered(wanted.form, report, say, {**table, "width": WIDTH_IN_FILES, "color": False})
            files.write_atomically(Path(wanted.file), text.encode())
    for form in [wanted.form for wanted in reports if wanted.file is None] or otherwise:
        text = _rendered(form, report, say, {**table, "width": width(), "color": use_color(table["color"])})
        if err or form == "table":
            echo(text, err=err)
        else:
            emit(text)
    if any(wanted.form == "github" for wanted in reports):
        _add_job_summary(report, say)


def _rendered(form: str, report: Report, say: Language, table: Mapping[str, Any]) -> str:
    from verify_attention.reports import render  # noqa: PLC0415

    options: dict[str, Mapping[str, Any]] = {"table": table, "github": {"place": _from_the_workspace}}
    return render(form, report, say, **options.get(form, {}))


def _from_the_workspace(path: str) -> str:
    """Return a path as GitHub sees it, from the root of the repository; as it is elsewhere."""
    workspace, absolute = os.environ.get("GITHUB_WORKSPACE"), Path(os.path.abspath(path))  # noqa: PTH100 - links stay
    inside = workspace and absolute.is_relative_to(workspace)
    return absolute.relative_to(str(workspace)).as_posix() if inside else path


def _add_job_summary(report: Report, say: Language) -> None:
    """Add the report to the summary of GitHub's job, where there is one."""
    from verify_attention.reports import github  # noqa: PLC0415

    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(github.job_summary(report, say))
    except OSError as error:
        raise ResultsError(f"GITHUB_STEP_SUMMARY: {place} could not be written: {error.strerror}") from error


@click.command(
    "report", cls=Configured, but=("output",), short_help="Show a stored run: table, Markdown, JUnit, GitHub, HTML."
)
@click.argument("results", type=click.Path(path_type=Path), metavar="RESULTS.JSON")
@click.option("--format", "form", type=click.Choice(FORMS), default="table", show_default=True, help="Its form.")
@click.option("-o", "--output", metavar="FILE", help="Write it there and not to stdout.")
@click.option("-q", "--quiet", is_flag=True, help="In the table, only what broke and the summary.")
@click.option("-v", "--verbose", is_flag=True, help="In the table, every finding.")
@lang_option
@color_option
def show_report(results: Path, form: str, output: str | None, say: Language, **table: Any) -> int:
    """Show what RESULTS.JSON says, as the run that wrote it would have.

    Nothing is judged: `gate` does that. Exit code 0: it was shown, whatever it says.
    """
    if table["quiet"] and table["verbose"]:
        raise UsageError("--quiet and --verbose exclude each other")
    wanted = [Wanted(form, None if output == "-" else output)]
    check_files(wanted, results)
    show(stored_report(results), say, wanted, table, otherwise=())
    return 0
