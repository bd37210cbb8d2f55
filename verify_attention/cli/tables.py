"""`verify-attention tables`: the article's tables, or that of structures, from any cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from verify_attention.cli.choices import (
    chosen_cases,
    color_option,
    echo,
    emit,
    lang_option,
    paths_argument,
    text_option,
    use_color,
    width,
)
from verify_attention.cli.settings import Configured
from verify_attention.errors import ExitCode

if TYPE_CHECKING:
    from verify_attention.languages import Language
    from verify_attention.model import Case, CaseReport
    from verify_attention.reports.article import ArticleTable

LARGEST = 4096  # scores; larger tables are no tables


@click.command(cls=Configured, short_help="Print the article's tables.")
@paths_argument
@click.option(
    "--of",
    "subject",
    type=click.Choice(["article", "structures"]),
    default="article",
    show_default=True,
    help="Scores and weights, or what MHA, MQA, GQA and MLA keep of each token.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["rich", "markdown", "csv", "latex"]),
    default="rich",
    show_default=True,
    help="Form of the tables.",
)
@lang_option
@click.option("--decimals", type=click.IntRange(0, 17), default=6, show_default=True, help="Decimals of each number.")
@text_option()
@color_option
def tables(
    paths: tuple[str, ...], subject: str, form: str, say: Language, decimals: int, text: str | None, color: str
) -> int:
    """Print scores and weights of the cases in PATH under the four conditions, as the article does.

    Says whether every published number is reproduced and how the article's checks went (on stderr, unless the form
    is rich); exit code 1 if one did not hold.
    Without PATH, the built-in cases of the article.

    With --of structures, say of each case how many numbers a layer caches. Without PATH, the built-in cases of equal
    size, one for each structure.
    """
    if subject == "structures":
        _structures(paths, form, say, text, use_color(color))
        return ExitCode.OK
    from verify_attention import engine  # noqa: PLC0415
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.model import Tolerance  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.plugins import invariants  # noqa: PLC0415
    from verify_attention.reports import article  # noqa: PLC0415
    from verify_attention.reports.figures import PUBLISHED  # noqa: PLC0415

    cases = chosen_cases(load_cases(paths), text)
    small = [case for case in cases if len(case.q) * case.q.shape[1] * case.keys.shape[1] <= LARGEST]
    reports = list(engine.run(small, CORE, invariants().values(), Tolerance()))
    made = [table for entry in reports for table in _tables(entry, say, decimals)]
    if form == "rich":
        echo(_rich(made, use_color(color)))
    else:
        emit({"markdown": article.markdown, "csv": article.csv_text, "latex": article.latex}[form](made))
    large = [case for case in cases if case not in small and case.published is not None]
    printed = list(engine.run(large, CORE, [invariants()[PUBLISHED]], Tolerance()))
    said, held = _published(reports + printed, say)
    checks, all_held = _checks(reports, say)
    echo(said + checks + _too_large(cases, small, say), err=form != "rich")
    return ExitCode.OK if held and all_held else ExitCode.BROKEN


def _structures(paths: tuple[str, ...], form: str, say: Language, text: str | None, color: bool) -> None:
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.reports import structures  # noqa: PLC0415

    made = structures.table(chosen_cases(load_cases(paths, shipped="structures"), text), say)
    if form == "rich":
        echo(_rich([made], color))
    else:
        emit({"markdown": structures.markdown, "csv": structures.csv_text, "latex": structures.latex}[form](made))


def _tables(entry: CaseReport, say: Language, decimals: int) -> list[ArticleTable]:
    from verify_attention.reports.article import article_tables  # noqa: PLC0415

    traces = {condition: (shown["scores"], shown["weights"]) for condition, shown in entry.conditions.items()}
    return list(article_tables(entry.case.id, traces, entry.case.key_shifts is not None, say, decimals))


def _rich(made: list[ArticleTable], color: bool) -> str:
    from rich.table import Table  # noqa: PLC0415

    from verify_attention.reports.table import console  # noqa: PLC0415

    screen, sink = console(width(), color)
    for table in made:
        grid = Table(title=table.title, title_justify="left", title_style="bold")
        for heading in table.headings:
            grid.add_column(heading, overflow="fold")
        for row in table.rows:
            grid.add_row(*row)
        screen.print(grid)
    return sink.getvalue()


def _published(reports: list[CaseReport], say: Language) -> tuple[str, bool]:
    """Say of every case with published numbers whether they are reproduced."""
    from verify_attention.reports.figures import PUBLISHED  # noqa: PLC0415
    from verify_attention.reports.telling import published_line  # noqa: PLC0415

    with_numbers = [entry for entry in reports if entry.case.published is not None]
    if not with_numbers:
        return say("no case here gives published numbers") + "\n", True
    findings = [f for entry in with_numbers for f in entry.findings if f.invariant == PUBLISHED]
    lines = [published_line(entry, say) for entry in with_numbers]
    lines += [f"  {say.told(finding.reason or '')}" for finding in findings if finding.status != "pass"]
    held = all(finding.status == "pass" for finding in findings)
    return "\n".join(lines) + "\n", held


def _checks(reports: list[CaseReport], say: Language) -> tuple[str, bool]:
    """Say of each of the article's checks whether it was repeated here, and how it went."""
    from rich.cells import set_cell_size  # noqa: PLC0415

    from verify_attention.model import BROKEN  # noqa: PLC0415
    from verify_attention.plugins import invariants  # noqa: PLC0415
    from verify_attention.reports.figures import SEVERITY, WORDS, counted  # noqa: PLC0415

    lines, held = [], True
    for name, invariant in invariants().items():
        found = [f for entry in reports for f in entry.findings if f.invariant == name]
        if invariant.check and found:
            gravest = min(found, key=lambda finding: SEVERITY.index(finding.status))
            broke = sum(f.expected == "breaks" and f.status == "pass" for f in found)
            note = say("; it breaks in {cases}, as expected", cases=counted(broke, "case", say)) if broke else ""
            word = set_cell_size(say(WORDS[gravest.status]), 12)
            lines.append(f"  {word}  {say(invariant.check)} ({name}){note}")
            held = held and gravest.status not in BROKEN
    return ("\n".join([say("the article's checks, on these cases:"), *lines]) + "\n" if lines else ""), held


def _too_large(cases: list[Case], small: list[Case], say: Language) -> str:
    left_out = [case.id for case in cases if case not in small]
    if not left_out:
        return ""
    return say("left out, more than {count} scores: {list}", count=f"{LARGEST:,}", list=", ".join(left_out)) + "\n"
