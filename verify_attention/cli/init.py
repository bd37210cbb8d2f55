"""`verify-attention init`: files to begin with. What is there already is left alone."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from verify_attention import resources
from verify_attention.cli.choices import echo, emit
from verify_attention.errors import ResultsError, UsageError
from verify_attention.wording import printable

SCHEMA = Path("cases", "case.schema.json")  # beside the example, whose first line names it for the editor
EXAMPLE = Path("cases", "example.yaml")
WORKFLOW = Path(".github", "workflows", "verify-attention.yml")


@click.command(short_help="Write an example case, or a workflow, to begin with.")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--ci", type=click.Choice(["github"]), help="Write a workflow too; no example where DIR has cases.")
@click.option("--pyproject", is_flag=True, help="Only print a [tool.verify-attention] to add to a pyproject.toml.")
@click.option("--force", is_flag=True, help="Overwrite what is there.")
def init(folder: Path, ci: str | None, pyproject: bool, force: bool) -> int:
    """Write cases/example.yaml, with comments that tell what to try, and its schema for the editor, into DIR.

    Nothing is overwritten, unless --force is given: if one of the files is there, none is written.
    """
    if pyproject:
        emit(resources.template("settings.toml"))
        return 0
    wanted = _wanted(folder, ci, force)
    there = [path for path in wanted if path.exists() or path.is_symlink()]
    if there and not force:
        raise UsageError(*(f"{path}: is there already (--force overwrites it)" for path in there))
    for path, text in wanted.items():
        _write(path, text)
        echo(f"wrote {printable(str(path))}\n")
    if ci is not None:
        echo(f"next: let PACKAGE in {folder / WORKFLOW} be a wheel of verify-attention, or its source\n")
    cases = shlex.quote(str(folder / "cases"))
    echo(f"next: verify-attention run {cases}\n")
    return 0


def _wanted(folder: Path, ci: str | None, force: bool) -> dict[Path, bytes]:
    """Return what is to be written; a schema that is there as it should be is not."""
    wanted: dict[Path, bytes] = {}
    has_cases = any(path.suffix in {".yaml", ".yml"} for path in (folder / "cases").rglob("*"))
    if ci is None or force or not has_cases:
        wanted[folder / EXAMPLE] = resources.template("example.yaml")
        schema = (resources.folder("schemas") / "case.schema.json").read_bytes()
        if not (folder / SCHEMA).is_file() or (folder / SCHEMA).read_bytes() != schema:
            wanted[folder / SCHEMA] = schema
    if ci is not None:
        wanted[folder / WORKFLOW] = resources.template(f"{ci}-workflow.yml")
    return wanted


def _write(path: Path, text: bytes) -> None:
    from verify_attention.files import write_atomically  # noqa: PLC0415

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"{path}: could not be written: {error.strerror}") from error
    write_atomically(path, text)
