"""The command line: parse, build, execute, exit.

Nothing here imports numpy, rich, jsonschema or YAML before a command needs it: `--help` and completion start at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from verify_attention import __version__
from verify_attention.cli.gate import gate
from verify_attention.cli.run import run
from verify_attention.cli.tables import tables
from verify_attention.cli.texts import explain, list_plugins, schema, validate
from verify_attention.errors import ExitCode, VerifyAttentionError

EXIT_CODES = "Exit codes: " + " · ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."


class _InOrder(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, "-V", "--version", prog_name="verify-attention")
def group() -> None:
    """Tell, with evidence, whether an attention bias matters.

    Loads small cases from YAML, runs them through a float64 attention core, checks documented invariants as
    equations within 1e-12, and writes a results.json that a CI can gate on.
    """


for command in (run, gate, tables, validate, explain, list_plugins, schema):
    group.add_command(command)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # a terminal that lacks a character gets its number
    sys.exit(_exit_code(args))


def _exit_code(args: Sequence[str] | None) -> int:
    """Run a command; say in a line what a user can mend, and answer with the exit code."""
    try:
        return int(group.main(args, prog_name="verify-attention", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted; no file was changed", err=True)
        return ExitCode.INTERRUPTED
    except VerifyAttentionError as error:
        click.echo("\n".join(f"error: {line}" for line in str(error).splitlines()), err=True)
        return error.exit_code
    except Exception:  # noqa: BLE001 - whatever it is, it must not look like a broken invariant
        import traceback  # noqa: PLC0415 - nothing needs it where all is well

        click.echo(f"{traceback.format_exc()}error: this is a defect of verify-attention, please report it", err=True)
        return ExitCode.CRASHED
