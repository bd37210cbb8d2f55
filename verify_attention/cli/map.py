"""`verify-attention map`: where the conclusion stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from verify_attention.cli.choices import (
    color_option,
    echo,
    emit,
    lang_option,
    one_blas_thread,
    paths_argument,
    use_color,
    width,
)
from verify_attention.cli.settings import Configured
from verify_attention.errors import ExitCode

if TYPE_CHECKING:
    from verify_attention.boundaries import Row
    from verify_attention.languages import Language


@click.command("map", cls=Configured, short_help="Show under which features the claims about biases hold.")
@paths_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["rich", "markdown", "csv"]),
    default="rich",
    show_default=True,
    help="Form of the map.",
)
@click.option("-v", "--verbose", is_flag=True, help="Give each boundary case a row of its own.")
@lang_option
@color_option
def show_map(paths: tuple[str, ...], form: str, verbose: bool, say: Language, color: str) -> int:
    """Print what becomes of three claims about biases: holds, breaks by how much, or depends.

    Without PATH, a row for each feature, measured on the built-in boundary cases. depends: it holds in some of them and
    breaks in others; the number is the largest deviation of the claim's equation. rounding: the sides differ, and
    rounding alone may do that. With PATH, a row for each case: does
    its K bias matter, whatever it expects? Cases tagged boundaries are grouped by their other tag, and exit code 1
    says that a claim did not fare as its case expects.
    """
    one_blas_thread()
    from verify_attention.boundaries import boundary_map  # noqa: PLC0415
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.model import Tolerance  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.reports import boundaries  # noqa: PLC0415

    rows = boundary_map(load_cases(paths, shipped="boundaries"), CORE, Tolerance(), each_case=verbose)
    if form == "rich":
        echo(boundaries.rich(rows, width(), use_color(color), say))
    else:
        emit({"markdown": boundaries.markdown, "csv": boundaries.csv_text}[form](rows, say))
    wrong = _wrong(rows)
    if wrong:
        echo("".join(f"{line}\n" for line in wrong), err=True)
    return ExitCode.BROKEN if wrong else ExitCode.OK


def _wrong(rows: list[Row]) -> list[str]:
    return [line for row in rows for cell in row.cells.values() for line in cell.wrong]
