"""`verify-attention plot`: pictures of weights, scores, deviations and the map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from verify_attention.cli.choices import (
    chosen_cases,
    echo,
    emit,
    lang_option,
    one_blas_thread,
    paths_argument,
    text_option,
)
from verify_attention.cli.settings import Configured
from verify_attention.cli.stored import stored_report
from verify_attention.errors import UsageError
from verify_attention.languages import ENGLISH, Language

if TYPE_CHECKING:
    from verify_attention.model import CaseReport
    from verify_attention.reports.pictures import Picture

SUBJECTS = ("weights", "scores", "deviations", "map")


@click.command(cls=Configured, but=("output",), short_help="Draw weights, scores, deviations or the map as SVG or PNG.")
@paths_argument
@click.option("-o", "--output", required=True, metavar="FILE", help="FILE.svg or FILE.png; - prints SVG.")
@click.option(
    "--of", "subject", type=click.Choice(SUBJECTS), default="weights", show_default=True, help="What is drawn."
)
@lang_option
@text_option()
def plot(paths: tuple[str, ...], output: str, subject: str, say: Language, text: str | None) -> int:
    """Draw the cases in PATH under the four conditions, as bars side by side that show what a bias moves.

    PATH may also be one results.json, whose stored numbers are drawn. Without PATH, the built-in cases of the article,
    or for the map those of its features. A picture judges nothing: exit code 0 says that it was drawn.
    Needs matplotlib: pip install 'verify-attention[plot]'.
    """
    one_blas_thread()
    from verify_attention import files  # noqa: PLC0415
    from verify_attention.reports import pictures  # noqa: PLC0415

    form = ".svg" if output == "-" else Path(output).suffix.lower()
    if form not in pictures.FORMS:
        raise UsageError(f"{output}: a picture's name ends in {' or '.join(pictures.FORMS)}")
    if not pictures.drawing_is_here():
        raise UsageError(f"plot needs matplotlib, which is not installed: {pictures.INSTALL}")
    if output != "-":
        files.check_writable(Path(output))
    say = _language(say, form)
    picture, left_out = _map(paths, text, say) if subject == "map" else _of_cases(paths, subject, text, say)
    made = pictures.rendered(picture, form, say.code)
    if output == "-":
        emit(made)
    else:
        files.write_atomically(Path(output), made)
    if left_out:
        echo(f"left out: {'; '.join(left_out)}\n", err=True)
    return 0


def _language(say: Language, form: str) -> Language:
    """Return the language of a picture: pixels of Japanese need a font with its letters."""
    from verify_attention.reports import pictures  # noqa: PLC0415

    if say == ENGLISH or form == ".svg" or pictures.japanese_is_here():
        return say
    echo("note: no font with Japanese letters is installed (such as Noto Sans CJK JP); words are English\n", err=True)
    return ENGLISH


def _of_cases(paths: tuple[str, ...], subject: str, text: str | None, say: Language) -> tuple[Picture, list[str]]:
    """Return the picture of weights, scores or deviations, and what it leaves out.

    Raises:
        UsageError: there is nothing to draw.

    """
    from verify_attention.reports import pictures  # noqa: PLC0415

    reports, whose = _reports(paths, text, judged=subject == "deviations")
    if subject == "deviations":
        findings = [finding for entry in reports for finding in entry.findings]
        if all(pictures.kind_of(finding) is None for finding in findings):
            raise UsageError("no finding here was judged by a measurement: there is nothing to draw")
        return pictures.deviations_picture(findings, say, whose), []
    shown = (
        (
            entry.case.id,
            {condition: arrays.get(subject) for condition, arrays in entry.conditions.items()},
            entry.case.key_shifts is not None,
        )
        for entry in reports
    )
    found, left_out = pictures.panels(shown, say)
    if not found:
        raise UsageError(f"there are no {subject} to draw: {'; '.join(left_out)}")
    return pictures.bars_picture(found, "scores" if subject == "scores" else "weights", say, whose), left_out


def _reports(paths: tuple[str, ...], text: str | None, judged: bool) -> tuple[list[CaseReport], str]:
    """Return what is drawn of cases judged now, or of those in a results file, and whose they are but the core's."""
    from verify_attention import engine  # noqa: PLC0415
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.model import Tolerance  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.plugins import invariants  # noqa: PLC0415

    if _is_results(paths):
        report = stored_report(Path(paths[0]))
        own = report.implementation
        chosen = {case.id for case in chosen_cases([entry.case for entry in report.cases], text)}
        entries = [entry for entry in report.cases if entry.case.id in chosen]
        return entries, "" if own.name == "core" else f"{own.name}, {own.dtype}"
    claims = invariants().values() if judged else []
    return list(engine.run(chosen_cases(load_cases(paths), text), CORE, claims, Tolerance())), ""


def _is_results(paths: tuple[str, ...]) -> bool:
    """Say whether a results file is meant.

    Raises:
        UsageError: it does not stand alone.

    """
    named = [path for path in paths if path.endswith(".json")]
    if named and len(paths) > 1:
        raise UsageError(f"{named[0]}: a results file is drawn alone, without other paths")
    return bool(named)


def _map(paths: tuple[str, ...], text: str | None, say: Language) -> tuple[Picture, list[str]]:
    from verify_attention.boundaries import boundary_map  # noqa: PLC0415
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.model import Tolerance  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.reports.pictures import MOST_ROWS, map_picture  # noqa: PLC0415

    if _is_results(paths):
        raise UsageError(f"{paths[0]}: the map is measured on cases, not read from results")
    rows = boundary_map(chosen_cases(load_cases(paths, shipped="boundaries"), text), CORE, Tolerance())
    more = len(rows) - MOST_ROWS
    return map_picture(rows, say), [f"{more:,} of {len(rows):,} rows"] if more > 0 else []
