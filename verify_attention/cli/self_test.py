"""`verify-attention self-test`: every fault against every invariant."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from verify_attention.cli.choices import (
    Jobs,
    color_option,
    echo,
    emit,
    matches,
    one_blas_thread,
    use_color,
    width,
)
from verify_attention.cli.progress import Bar
from verify_attention.cli.settings import Configured
from verify_attention.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from verify_attention.selftest import Planted, Variation


@click.command("self-test", cls=Configured, but=("output",), short_help="Try every fault against every invariant.")
@click.option("-o", "--output", metavar="FILE", help="Write the matrix as JSON; - is stdout.")
@click.option("-k", "text", metavar="TEXT", help="Only mistakes, and variations, with TEXT in them or in their kind.")
@click.option("--all", "whole", is_flag=True, help="Try each fault on all cases, for the whole matrix (minutes).")
@click.option("-q", "--quiet", is_flag=True, help="Print what went wrong and the summary only.")
@click.option("-v", "--verbose", is_flag=True, help="Say on which case each invariant noticed a fault first.")
@click.option("-n", "--jobs", type=Jobs(), default="1", show_default=True, help="Run in N processes.")
@color_option
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def self_test(
    output: str | None,
    text: str | None,
    whole: bool,
    quiet: bool,
    verbose: bool,
    jobs: int,
    color: str,
    no_progress: bool,
) -> int:
    """Try wrong implementations, which must be noticed, and correct ones, which must not, on all built-in cases.

    Wrong are the faults that invariants declare (each must be noticed by its own), mistakes seen in real code, and
    stand-ins that do not attend at all. Exit code 0: every fault was killed, and every correct variation passed.
    """
    if quiet and verbose:
        raise UsageError("--quiet and --verbose exclude each other")
    one_blas_thread()
    gc.disable()  # as in a run
    from verify_attention import files, selftest  # noqa: PLC0415
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.reports import kill_matrix  # noqa: PLC0415

    target = Path(output) if output and output != "-" else None
    if target is not None:
        files.check_writable(target)
    faults, right = _chosen(selftest.planted(), selftest.variations(), text)
    with Bar("trying faults", not (no_progress or quiet)) as bar:
        result = selftest.self_test(faults, right, load_cases(shipped="."), whole=whole, jobs=jobs, progress=bar.show)
    if target is not None:
        files.write_atomically(target, kill_matrix.encoded(result))
    elif output == "-":
        emit(kill_matrix.encoded(result))
    shown = kill_matrix.render(result, width=width(), color=use_color(color), verbose=verbose, quiet=quiet)
    echo(shown, err=output == "-")
    return ExitCode.OK if result.passed else ExitCode.BROKEN


def _chosen(faults: list[Planted], right: list[Variation], text: str | None) -> tuple[list[Planted], list[Variation]]:
    """Return what has a text in it, or is matched by a glob.

    Raises:
        UsageError: nothing has.

    """
    some = [one for one in faults if matches(text, f"{one.kind}: {one.mistake}")]
    others = [one for one in right if matches(text, one.name)]
    if not some and not others:
        raise UsageError(f"none of the {len(faults)} faults and {len(right)} variations has {text!r} in it")
    return some, others
