"""Commands that read and tell: `validate`, `explain`, `list`, `schema`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import click

from verify_attention.cli import names
from verify_attention.cli.choices import echo, emit, lang_option, own_paths_argument, width
from verify_attention.cli.settings import Configured
from verify_attention.errors import UsageError

if TYPE_CHECKING:
    from verify_attention.languages import Language
    from verify_attention.model import Adapter
    from verify_attention.model.claims import Plugin


@click.command(cls=Configured, short_help="Read and check cases only.")
@own_paths_argument
def validate(paths: tuple[str, ...]) -> int:
    """Read the cases in PATH and say whether they are well-formed; nothing is judged or written."""
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.reports.figures import counted  # noqa: PLC0415

    cases = load_cases(paths)
    echo(f"{counted(len(cases), 'case')} in {counted(len({case.file for case in cases}), 'file')}: all well-formed\n")
    return 0


@click.command(cls=Configured, short_help="Explain an invariant, a feature or an implementation.")
@click.argument("name", required=False, shell_complete=names.explained)
@lang_option
def explain(name: str | None, say: Language) -> int:
    """Explain an invariant or a feature: claim, formula, derivation, what takes it away, and its faults.

    Of an implementation: what is asked, in which numbers it computes, and where its library has other conventions.

    Without NAME, list every name with its claim.
    """
    from verify_attention.boundaries import STRUCTURES  # noqa: PLC0415
    from verify_attention.cli import explaining  # noqa: PLC0415
    from verify_attention.plugins import features, implementations, invariants, suggestion  # noqa: PLC0415
    from verify_attention.reports.lines import wrapped  # noqa: PLC0415

    known: dict[str, Plugin] = {**invariants(), **features()}
    if name is None:
        text = explaining.claims(known, say)
    elif name in implementations():
        text = explaining.of_implementation(name, say)
    elif name in STRUCTURES:
        raise UsageError(f"{name} is no invariant or feature but a row of the map: `verify-attention map -v`")
    elif name not in known:
        raise UsageError(f"no invariant or feature is called {name!r}{suggestion(name, [*known, *implementations()])}")
    else:
        text = explaining.explanation(name, say)
    echo(wrapped(text, min(width(), 100)))
    return 0


class _Kind(click.Choice[str]):
    """A kind of names, by its beginning (so that one of them may be written too), or by another word for it."""

    also: ClassVar = {"adapters": "implementations", "claims": "invariants", "checks": "invariants"}

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        known = {**{kind: kind for kind in self.choices}, **self.also}
        meant = {kind for word, kind in known.items() if value and word.startswith(value.lower())}
        return meant.pop() if len(meant) == 1 else super().convert(value, param, ctx)


@click.command("list", short_help="List invariants, features, implementations or cases.")
@click.argument("kind", required=False, type=_Kind(["invariants", "features", "implementations", "cases"]))
def list_plugins(kind: str | None) -> int:
    """List the names of invariants, features and implementations, or of one KIND; cases are the built-in ones' ids."""
    from verify_attention.plugins import features, implementations, invariants  # noqa: PLC0415

    groups: dict[str, Iterable[str]] = {
        "invariants": invariants(),
        "features": features(),
        "implementations": _listed(implementations()) if kind in {None, "implementations"} else (),
    }
    if kind == "cases":
        groups[kind] = _ids()
    if kind is not None:
        echo("".join(f"{name}\n" for name in groups[kind]))
        return 0
    echo("\n".join(f"{title}:\n" + "".join(f"  {name}\n" for name in names) for title, names in groups.items()))
    return 0


def _ids() -> list[str]:
    from verify_attention.cases import load_cases  # noqa: PLC0415

    return [case.id for case in load_cases(shipped=".")]


def _listed(adapters: dict[str, Adapter]) -> list[str]:
    """Return a line for each implementation: its name, version and dtypes; how to install it where it is missing."""
    from verify_attention.loading import install_command, version_of  # noqa: PLC0415

    widest = max(map(len, adapters))
    versions = {name: version_of(adapter) for name, adapter in adapters.items()}
    column = max(len(version or "-") for version in versions.values())
    return [
        f"{name:<{widest}}  {version or '-':<{column}}  "
        + (" ".join(adapters[name].dtypes) if version else f"not installed: {install_command(adapters[name])}")
        for name, version in versions.items()
    ]


@click.command(short_help="Print a JSON Schema.")
@click.argument("name", type=click.Choice(["case", "results", "config"]))
def schema(name: str) -> int:
    """Print the JSON Schema of case files, of results.json, or of the settings in a pyproject.toml."""
    from verify_attention import resources  # noqa: PLC0415

    emit(json.dumps(resources.schema(name), indent=2, ensure_ascii=False) + "\n")
    return 0
