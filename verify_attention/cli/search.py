"""`verify-attention search`: draw cases until a claim breaks, and make the one that breaks it as small as it can be."""

from __future__ import annotations

import gc
import os
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain, count
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import click

from verify_attention.cli import names
from verify_attention.cli.choices import (
    before_folders_of_others,
    color_option,
    colored,
    echo,
    emit,
    implementation_options,
    one_blas_thread,
    selection_options,
    use_color,
    width,
)
from verify_attention.cli.progress import Bar
from verify_attention.cli.settings import Configured
from verify_attention.errors import ExitCode, ResultsError, UsageError

if TYPE_CHECKING:
    from verify_attention.loading import Loaded
    from verify_attention.model import Invariant
    from verify_attention.search import Found, Hunt

EXAMPLES = 5000


@dataclass(frozen=True)
class Options:
    """What a search was asked to do, as the command line gave it."""

    implementation: str
    dtype: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    features: tuple[str, ...]
    examples: int
    seed: int
    output_dir: str | None
    color: str
    progress: bool


@click.command(cls=Configured, short_help="Search for a smallest case on which an implementation breaks a claim.")
@implementation_options
@selection_options
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="F",
    help="Draw only cases with this feature; repeatable.",
    shell_complete=names.features,
)
@click.option(
    "--examples",
    type=click.IntRange(min=1),
    default=EXAMPLES,
    show_default=True,
    metavar="N",
    help="Cases to draw, each for one of the claims in turn.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**64 - 1), default=0, show_default=True, metavar="S", help="Draw other cases."
)
@click.option("--output-dir", metavar="DIR", help="Write the case there, as INVARIANT.yaml.")
@color_option
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def search(no_progress: bool, **given: object) -> int:
    """Draw cases on which every claim has to hold, and print a small one on which one breaks.

    Cases stay where the rounding bounds promise an answer, so that no correct implementation is found. The same seed
    draws the same cases. Exit code 0: nothing was found. Needs Hypothesis: pip install hypothesis.
    """
    one_blas_thread()
    gc.freeze()  # not disabled, as in a run: a long search would fill the memory with what Hypothesis leaves
    return execute(Options(progress=not no_progress, **given))  # type: ignore[arg-type]


def execute(options: Options) -> int:
    """Search with options; testable without a command line."""
    from verify_attention import plugins  # noqa: PLC0415
    from verify_attention.loading import ended, load, never_given  # noqa: PLC0415
    from verify_attention.search import hunt  # noqa: PLC0415

    if find_spec("hypothesis") is None:
        raise UsageError("search needs hypothesis, which is not installed: pip install hypothesis")
    chosen = _left_by(options.features, plugins.chosen(options.select, options.ignore))
    if options.output_dir is not None:
        _check_folder(options.output_dir)
    home = Path.cwd()
    if options.implementation != "core":
        before_folders_of_others()
    loaded = load(options.implementation, options.dtype)
    echo("".join(f"note: {line}\n" for line in never_given(loaded)), err=True)
    with Bar("drawing cases", options.progress) as bar:
        state = hunt(
            loaded,
            chosen,
            examples=options.examples,
            seed=options.seed,
            own=loaded.precision,
            features=options.features,
            progress=bar.show,
        )
    code = _show_nothing(state, chosen, options) if state.found is None else _show(state.found, loaded, options, home)
    stale = ended(loaded)
    echo("".join(f"{line}\n" for line in stale), err=True)
    return max(code, ExitCode.BROKEN) if stale else code


def _left_by(features: tuple[str, ...], claims: list[Invariant]) -> list[Invariant]:
    """Return the claims that are made of cases with some features.

    Raises:
        UsageError: there is no such feature, or no such claim.

    """
    from verify_attention import plugins  # noqa: PLC0415

    known = plugins.features()
    for name in features:
        if name not in known:
            raise UsageError(f"no feature is called {name!r}{plugins.suggestion(name, known)}")
    takes = frozenset().union(*(known[name].takes for name in features if known[name].takes_with is None))
    left = [claim for claim in claims if not claim.needs & takes]
    if not left:
        raise UsageError(f"--feature {' --feature '.join(features)} takes away what each of the claims needs")
    return left


def _check_folder(name: str) -> None:
    folder = Path(name)
    if not name:
        raise UsageError("--output-dir is empty")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is no folder")
    above = folder if folder.is_dir() else folder.resolve().parent
    if not above.is_dir():
        raise UsageError(f"{folder}: the folder {above} does not exist")
    if not os.access(above, os.W_OK):
        raise UsageError(f"{folder}: the folder {above} may not be written to")


def _show_nothing(state: Hunt, chosen: list[Invariant], options: Options) -> ExitCode:
    """Say that nothing was found, and how much that means."""
    from verify_attention.reports.figures import counted  # noqa: PLC0415
    from verify_attention.wording import join  # noqa: PLC0415

    checked = state.checked.total()
    drawn = f"{counted(state.examples, 'example')}, {counted(checked, 'equation')} really checked"
    never = [claim.name for claim in chosen if not state.checked[claim.name]]
    if state.interrupted:
        echo(f"interrupted: nothing found in {drawn} (of {counted(options.examples, 'example')})\n")
        return ExitCode.INTERRUPTED
    echo(f"nothing found: {drawn}, of {counted(len(chosen) - len(never), 'claim')}\n")
    if never and checked:
        echo(fill(f"never checked: {', '.join(never)}", width(), break_on_hyphens=False) + "\n", err=True)
    elif never:
        offers = f" with {join(options.features)}" if options.features else ""
        echo(f"nothing that {options.implementation} offers{offers} could be asked\n", err=True)
    return ExitCode.OK if checked else ExitCode.BROKEN


def _show(found: Found, loaded: Loaded, options: Options, home: Path) -> ExitCode:
    """Reduce what was found, write it where it is wanted, and print it."""
    from verify_attention.model import Report, Tolerance  # noqa: PLC0415
    from verify_attention.reports import figures  # noqa: PLC0415
    from verify_attention.search import reduced, told  # noqa: PLC0415

    with Bar("making it smaller", options.progress) as bar:
        small = reduced(found.case, found.claim, found.finding, loaded, loaded.precision, progress=bar.show)
    os.chdir(home)  # whatever was under test may have gone to another folder
    again = _again(loaded, options)
    try:
        path = None if options.output_dir is None else _written(told(small, loaded.name, [again]), found, options)
    except (OSError, ResultsError):  # what was found is not lost
        emit(told(small, loaded.name, [again]))
        raise
    if path is not None:
        written = small.case.but(id=path.stem, path=str(path))
        again = figures.again(written, small.finding, Report(loaded.under_test, Tolerance(), ()))
    emit(colored(told(small, loaded.name, [again], width()), use_color(options.color)))
    example = f"found in example {found.example:,} of {options.examples:,}"
    echo(f"{example}, made smaller in {figures.counted(small.tried, 'step')}\n", err=True)
    if path is not None:
        echo(f"case: {path}\n", err=True)
    if small.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.CRASHED if small.finding.status == "crashed" else ExitCode.BROKEN


def _written(text: str, found: Found, options: Options) -> Path:
    """Write a case into the folder, beside those that are there; return its path."""
    from verify_attention import files  # noqa: PLC0415

    folder, data = Path(str(options.output_dir)), text.encode()
    folder.mkdir(exist_ok=True)
    stems = chain([found.claim.name], (f"{found.claim.name}-{number}" for number in count(2)))
    paths = (folder / f"{name}.yaml" for name in stems)
    path = next(path for path in paths if not path.exists() or path.read_bytes() == data)
    files.write_atomically(path, data)
    return path


def _again(loaded: Loaded, options: Options) -> str:
    """Return the command that searches again, with whatever decides which cases are drawn."""
    named = [("--select", options.select), ("--ignore", options.ignore), ("--feature", options.features)]
    words = ["--implementation", loaded.name, *(["--dtype", options.dtype] if options.dtype != "float64" else [])]
    words += [word for option, values in named for value in values for word in (option, value)]
    words += ["--examples", str(options.examples)] if options.examples != EXAMPLES else []
    words += ["--seed", str(options.seed)] if options.seed else []
    return f"verify-attention search {shlex.join(words)}"
