"""Commands that read and tell: `validate`, `explain`, `list`, `schema`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

import click

from verify_attention.cli import names
from verify_attention.cli.choices import echo, emit, own_paths_argument, width
from verify_attention.cli.settings import Configured
from verify_attention.errors import UsageError

if TYPE_CHECKING:
    from verify_attention.model import Adapter, Case, Fault, Feature, Invariant

WHOLE = "\xa0"  # a blank at which no line is broken


@click.command(cls=Configured, short_help="Read and check cases only.")
@own_paths_argument
def validate(paths: tuple[str, ...]) -> int:
    """Read the cases in PATH and say whether they are well-formed; nothing is judged or written."""
    from verify_attention.cases import load_cases  # noqa: PLC0415
    from verify_attention.reports.figures import counted  # noqa: PLC0415

    cases = load_cases(paths)
    echo(f"{counted(len(cases), 'case')} in {counted(len({case.file for case in cases}), 'file')}: all well-formed\n")
    return 0


@click.command(short_help="Explain an invariant, a feature or an implementation.")
@click.argument("name", required=False, shell_complete=names.explained)
def explain(name: str | None) -> int:
    """Explain an invariant or a feature: claim, formula, derivation, what takes it away, and its faults.

    Of an implementation: what is asked, in which numbers it computes, and where its library has other conventions.

    Without NAME, list every name with its claim.
    """
    from verify_attention.boundaries import STRUCTURES  # noqa: PLC0415
    from verify_attention.plugins import features, implementations, invariants, suggestion  # noqa: PLC0415

    known: dict[str, Invariant | Feature] = {**invariants(), **features()}
    if name is None:
        echo(_wrapped("".join(f"{key}\n    {plugin.claim}\n" for key, plugin in known.items())))
        return 0
    if name in implementations():
        echo(_wrapped(_of_implementation(name)))
        return 0
    if name in STRUCTURES:
        raise UsageError(f"{name} is no invariant or feature but a row of the map: `verify-attention map -v`")
    if name not in known:
        raise UsageError(f"no invariant or feature is called {name!r}{suggestion(name, [*known, *implementations()])}")
    echo(_wrapped(explanation(name)))
    return 0


def explanation(name: str) -> str:
    """Return everything that is known of an invariant or a feature, as text."""
    from verify_attention.plugins import features, invariants  # noqa: PLC0415

    if name in features():
        feature = features()[name]
        losers = [key for key, invariant in invariants().items() if invariant.needs & feature.takes]
        some = " (with some parameters)" if feature.takes_with is not None else ""
        takes = [f"takes away: {', '.join(sorted(feature.takes)) or 'nothing'}{some if feature.takes else ''}"]
        takes += ["so not claimed then:", *_items(losers)] if losers else []
        place = list(features()).index(name) + 1
        head = [name, f"  {feature.claim}", "", f"acts on: {feature.stage}, number {place} of {len(features())}"]
        why = f"a K bias: {feature.why}"
        return "\n".join([*head, why, "", *_indented(feature.derivation), "", *_parameters(name), "", *takes]) + "\n"
    invariant = invariants()[name]
    breakers = [key for key, feature in features().items() if feature.takes & invariant.needs]
    parts = [
        name,
        f"  {invariant.claim}",
        "",
        f"formula: {invariant.formula}",
        f"source: {invariant.source}",
        *([f"the article's check: {invariant.check}"] if invariant.check else []),
        "",
        *_indented(invariant.derivation),
        "",
        f"needs: {', '.join(sorted(invariant.needs)) or 'nothing beyond the formula'}",
        *([f"taken away by: {', '.join(breakers)}"] if breakers else []),
        f"asked of: {_asked_of(invariant)}",
        f"applies where: {invariant.where or 'always'}",
        *([f"vacuous where: {invariant.vacuous}"] if invariant.vacuous else []),
        *_faults(invariant),
    ]
    return "\n".join(parts) + "\n"


def _faults(invariant: Invariant) -> list[str]:
    """Return each mistake that an invariant must catch, with the smallest case that shows it."""
    from verify_attention.search import in_a_line, smallest_cases  # noqa: PLC0415

    small = smallest_cases(invariant.name)
    lines = ["catches, among others, each with a smallest case that shows it (a bias that is not named is 0):"]
    for index, fault in enumerate(invariant.faults):
        lines += _items([fault.mistake])
        if fault.mistake in small:
            parts = in_a_line(small[fault.mistake]).split(" · ")
            lines.append("      " + " · ".join(part.replace(" ", WHOLE) for part in parts))
            lines += _bars(small[fault.mistake], fault) if index == 0 else []
    return lines


def _bars(case: Case, fault: Fault) -> list[str]:
    """Return bars of a case as it should be and with a mistake; none where the mistake shows elsewhere."""
    import numpy as np  # noqa: PLC0415

    from verify_attention.model import CONDITIONS  # noqa: PLC0415
    from verify_attention.pipeline import CORE  # noqa: PLC0415
    from verify_attention.reports import bars  # noqa: PLC0415

    try:
        with np.errstate(all="ignore"):
            right, wrong = (
                {condition: attend(case.under(condition)) for condition in CONDITIONS}
                for attend in (CORE, fault.implementation)
            )
    except Exception:  # noqa: BLE001 - it may be the mistake to raise
        return []
    return bars.of_mistake(right, wrong).plain.replace(" ", WHOLE).splitlines()


def _of_implementation(name: str) -> str:
    """Return everything that is known of an implementation, as text."""
    from verify_attention.loading import version_of  # noqa: PLC0415
    from verify_attention.plugins import implementations  # noqa: PLC0415

    adapter = implementations()[name]
    inside = [(dtype, adapter.computes_in.get(dtype, dtype)) for dtype in adapter.dtypes]
    numbers = ", ".join(dtype if dtype == other else f"{dtype} (computed in {other})" for dtype, other in inside)
    version = version_of(adapter)
    paragraphs = _indented(adapter.derivation) if adapter.derivation else []
    parts = [
        name,
        f"  {adapter.claim}",
        "",
        *([*paragraphs, ""] if paragraphs else []),
        f"numbers: {numbers}",
        f"installed: {f'version {version}' if version else _install(adapter)}",
    ]
    if adapter.divergences:
        parts += ["where the library has other conventions (each is asked for in every run):"]
        parts += _items([f"{each.what}: {each.reason}; {each.link}" for each in adapter.divergences])
    return "\n".join(parts) + "\n"


def _install(adapter: Adapter) -> str:
    from verify_attention.loading import install_command  # noqa: PLC0415

    return f"no: {install_command(adapter)}"


def _asked_of(invariant: Invariant) -> str:
    all_of_them = "cases with features, and plain ones that expect it" if invariant.on_request else "every case"
    return f"{all_of_them}; not one so large that it is judged in blocks" if invariant.whole else all_of_them


def _parameters(name: str) -> list[str]:
    """Return what the schema says of a feature's parameters."""
    import yaml  # noqa: PLC0415

    from verify_attention import resources  # noqa: PLC0415

    own = resources.schema("case")["properties"]["features"]["properties"][name]
    example = yaml.safe_dump({name: own.get("examples", own.get("enum"))[-1]}, default_flow_style=True, width=1000)
    head = [f"in a case: {own['description']}", f"for example: features: {example.strip()}"]
    if "properties" not in own:
        return head
    required = own.get("required", [])
    said = [
        f"{key}{' (required)' if key in required else ''}: {one['title']}. {one['description']}"
        for key, one in own["properties"].items()
    ]
    return [*head, "parameters:", *_items(said)]


def _indented(text: str) -> list[str]:
    """Return paragraphs, each one line, with empty lines between them."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(f"  {paragraph}" for paragraph in paragraphs).split("\n")


def _wrapped(text: str) -> str:
    """Break long lines at the width of the output, and go on below their text."""
    import textwrap  # noqa: PLC0415

    columns = min(width(), 100)
    made = "".join(
        textwrap.fill(
            line,
            columns,
            subsequent_indent=" " * max(2, len(line) - len(line.lstrip(" -"))),
            break_long_words=False,
            break_on_hyphens="://" not in line,
        )
        + "\n"
        for line in text.splitlines()
    )
    return made.replace(WHOLE, " ")


def _items(texts: list[str]) -> list[str]:
    return [f"  - {text}" for text in texts]


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
    from verify_attention.loading import version_of  # noqa: PLC0415

    widest = max(map(len, adapters))
    versions = {name: version_of(adapter) for name, adapter in adapters.items()}
    column = max(len(version or "-") for version in versions.values())
    return [
        f"{name:<{widest}}  {version or '-':<{column}}  "
        + (" ".join(adapters[name].dtypes) if version else f"not installed: {_install(adapters[name])[4:]}")
        for name, version in versions.items()
    ]


@click.command(short_help="Print a JSON Schema.")
@click.argument("name", type=click.Choice(["case", "results", "config"]))
def schema(name: str) -> int:
    """Print the JSON Schema of case files, of results.json, or of the settings in a pyproject.toml."""
    from verify_attention import resources  # noqa: PLC0415

    emit(json.dumps(resources.schema(name), indent=2, ensure_ascii=False) + "\n")
    return 0
