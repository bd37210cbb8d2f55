"""Options that several commands share, and what they choose."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from verify_attention.cli import names
from verify_attention.errors import ResultsError, UsageError
from verify_attention.languages import LANGUAGES, Language, of_locale

if TYPE_CHECKING:
    from verify_attention.model import Case

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

DTYPES = ("float64", "float32", "float16", "bfloat16")  # as the model has them, which would load numpy
LEAST_WIDTH = 76  # the table's; a narrower terminal breaks its lines

paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path())
own_paths_argument = click.argument(  # which the environment and a file may give
    "paths", nargs=-1, metavar="[PATH]...", type=click.Path(), envvar="VERIFY_ATTENTION_PATHS"
)
color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour; auto follows the terminal."
)


class Jobs(click.ParamType[int]):
    """A number of processes, or auto."""

    name = "N|auto"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        if value == "auto":
            return os.cpu_count() or 1
        if not (str(value).isascii() and str(value).isdecimal()) or len(str(value)) > 9 or int(value) < 1:
            self.fail(f"{value!r} is neither a number above 0 nor auto", param, ctx)
        return int(value)


class _Finite(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if number != number:  # noqa: PLR0124 - a NaN is in every range, as it is compared
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


def one_blas_thread() -> None:
    """Hold OpenBLAS and OpenMP, which PyTorch uses, to one thread each, unless the user says otherwise.

    It has to be said before numpy and PyTorch are imported.

    Products here are small: a second thread gains a tenth, and where another process keeps a core busy, the threads
    wait for each other and lose several times that. Sums also come out the same whatever the number of cores.
    """
    for library in ("OPENBLAS", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def tolerance_options(function: Decorated) -> Decorated:
    """Add --rtol and --atol."""
    for name, text in ("--atol", "Absolute tolerance: the least limit."), ("--rtol", "Relative tolerance."):
        function = click.option(
            name, type=_Finite(min=0, max=1), default=1e-12, show_default=True, metavar="X", help=text
        )(function)
    return function


def selection_options(function: Decorated) -> Decorated:
    """Add --select and --ignore."""
    for name, text in (
        ("--ignore", "Leave out invariants, by name or glob; repeatable."),
        ("--select", "Check only these invariants, by name or glob; repeatable."),
    ):
        function = click.option(name, multiple=True, metavar="NAME", help=text, shell_complete=names.invariants)(
            function
        )
    return function


def lang_option(function: Decorated) -> Decorated:
    """Add --lang, which gives a command its Language."""
    return click.option(
        "--lang",
        "say",
        type=click.Choice(LANGUAGES),
        callback=lambda _ctx, _param, value: Language(value or of_locale()),
        help="Language of what people read. Default: the locale's, or English.",
    )(function)


def implementation_options(function: Decorated) -> Decorated:
    """Add --implementation and --dtype."""
    of_arrays = click.option(
        "--dtype",
        type=click.Choice(DTYPES),
        default="float64",
        show_default=True,
        help="The type of its arrays; limits follow from it.",
    )
    of_name = click.option(
        "--implementation",
        default="core",
        show_default=True,
        metavar="NAME",
        help="What is judged: a name, module:function, or path.py:function.",
        shell_complete=names.implementations,
    )
    return of_name(of_arrays(function))


def text_option(of_what: str = "Only cases with TEXT in their id or a tag; or a glob.") -> Callable[..., Any]:
    """Return -k."""
    return click.option("-k", "text", metavar="TEXT", help=of_what, shell_complete=names.case_ids)


def matches(text: str | None, word: str) -> bool:
    """Say whether a text is in a word, or is a glob of all of it, whatever the letters' case."""
    wanted, said = (text or "").lower(), word.lower()
    return wanted in said or fnmatchcase(said, wanted)


def chosen_cases(cases: Sequence[Case], text: str | None) -> list[Case]:
    """Return the cases with a text in their id or in one of their tags, or with one that a glob matches.

    Raises:
        UsageError: there is none.

    """
    found = [case for case in cases if any(matches(text, word) for word in (case.id, *case.tags))]
    if not cases:
        raise UsageError("there is no case")
    if not found:
        from verify_attention.wording import suggest  # noqa: PLC0415 - only where something is wrong

        known = {word for case in cases for word in (case.id, PurePath(case.id).name, *case.tags)}
        near = suggest(str(text), sorted(known))
        whole = "the one case does not have" if len(cases) == 1 else f"none of the {len(cases)} cases has"
        raise UsageError(f"{whole} {text!r} in its id or among its tags{near}")
    return found


def before_folders_of_others() -> None:
    """Import what a command needs later, before somebody's folder comes first, which may have a yaml.py."""
    import jsonschema  # noqa: F401, PLC0415
    import rich.table  # noqa: F401, PLC0415
    import yaml  # noqa: F401, PLC0415


def use_color(choice: str) -> bool:
    """Decide on colour: an option before NO_COLOR before the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def colored(text: str, wanted: bool) -> str:
    """Return a case as YAML with its comments in colour, where that is wanted."""
    lines = (click.style(line, fg="red") if wanted and line.startswith("#") else line for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines)


def width() -> int:
    """Return the width of the output: COLUMNS, or the terminal's, or 100 where there is no terminal."""
    return max(LEAST_WIDTH, shutil.get_terminal_size((100, 24)).columns)


def echo(text: str, err: bool = False) -> None:
    """Print text for people; a reader that has gone away (`| head`) is no error.

    Raises:
        ResultsError: the output could not be written.

    """
    if not text:
        return
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        give_up(stream)
        if not isinstance(error, BrokenPipeError):
            raise ResultsError(f"the output could not be written: {error.strerror}") from error


def emit(data: str | bytes) -> None:
    """Print data for programs: UTF-8, whatever the terminal speaks.

    Raises:
        ResultsError: the output could not be written.

    """
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        echo(data if isinstance(data, str) else data.decode())
        return
    sys.stdout.flush()
    try:
        buffer.write(data.encode() if isinstance(data, str) else data)
        buffer.flush()
    except OSError as error:
        give_up(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise ResultsError(f"the output could not be written: {error.strerror}") from error


def give_up(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere, so that its end is no second error."""
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
