"""The command line: parse, build, execute, exit.

Nothing here imports numpy, rich, jsonschema or YAML before a command needs it: `--help` and completion start at once.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn, TextIO

import click

from verify_attention import __version__
from verify_attention.cli.choices import echo, give_up
from verify_attention.cli.completion import completion
from verify_attention.cli.gate import gate
from verify_attention.cli.init import init
from verify_attention.cli.interrupting import none_lost
from verify_attention.cli.map import show_map
from verify_attention.cli.plot import plot
from verify_attention.cli.reporting import show_report
from verify_attention.cli.run import run
from verify_attention.cli.search import search
from verify_attention.cli.self_test import self_test
from verify_attention.cli.tables import tables
from verify_attention.cli.texts import explain, list_plugins, schema, validate
from verify_attention.errors import ExitCode, ResultsError, VerifyAttentionError

EXIT_CODES = "Exit codes: " + " · ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."


class _InOrder(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


version = click.version_option(__version__, "-V", "--version", prog_name="verify-attention")


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@version
def group() -> None:
    """Tell, with evidence, whether an attention bias matters.

    Loads small cases from YAML, runs them through a float64 attention core, checks documented invariants as
    equations within 1e-12, and writes a results.json that a CI can gate on.
    """


for command in (
    run,
    gate,
    show_report,
    tables,
    show_map,
    plot,
    validate,
    explain,
    list_plugins,
    schema,
    self_test,
    search,
    init,
    completion,
):
    group.add_command(version(command))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    sys.stdout, sys.stderr = (_stream(stream) for stream in (sys.stdout, sys.stderr))
    with none_lost():
        code = _exit_code(args)
    sys.exit(code)


def _stream(stream: TextIO | None) -> TextIO:
    """Return a stream that takes any character: one that it lacks by its number; nothing where it was closed."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - it stays open until the end
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _exit_code(args: Sequence[str] | None) -> int:  # noqa: PLR0911 - one for each way to end
    """Run a command; say in a line what a user can mend, and answer with the exit code."""
    try:
        return int(group.main(args, prog_name="verify-attention", standalone_mode=False) or 0)
    except click.ClickException as error:
        return _complain(error.exit_code, "".join(_usage(error)))
    except SystemExit:  # click's own answer to a reader that has gone away
        give_up(sys.stdout)
        return ExitCode.OK
    except (click.Abort, KeyboardInterrupt):
        return _complain(ExitCode.INTERRUPTED, "interrupted\n")
    except VerifyAttentionError as error:
        from verify_attention.wording import printable  # noqa: PLC0415 - only where something is wrong

        return _complain(error.exit_code, "".join(f"error: {printable(line)}\n" for line in error.lines))
    except OSError as error:  # click's own output, such as --help
        give_up(sys.stdout)
        return _complain(ExitCode.CRASHED, f"error: the output could not be written: {error.strerror}\n")
    except Exception:  # noqa: BLE001 - whatever it is, it must not look like a broken invariant
        import traceback  # noqa: PLC0415 - nothing needs it where all is well

        defect = "error: this is a defect of verify-attention, please report it\n"
        return _complain(ExitCode.CRASHED, traceback.format_exc() + defect)


def _usage(error: click.ClickException) -> Iterator[str]:
    context = getattr(error, "ctx", None)
    if context is not None:
        yield f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n"
    yield f"error: {error.format_message()}\n"


def _complain(code: int, text: str) -> int:
    """Say what is wrong on stderr, as far as that can be written to, and return the exit code."""
    with suppress(ResultsError):
        echo(text, err=True)
    return int(code)
