"""Names that a shell completes: those of files, so that nothing is loaded for a press of TAB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from verify_attention import registry, resources

_PLAIN = re.compile(r"[\w./:@%+=,-]+")  # a shell takes it as it stands; nobody's file name becomes a command


def invariants(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the last of several invariants with commas between them."""
    head, comma, last = incomplete.rpartition(",")
    return [f"{head}{comma}{name}" for name in _begin(_with_hyphens("invariants"), last)]


def features(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a feature."""
    return _begin(registry.names("verify_attention.features"), incomplete)


def implementations(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete an implementation, or the file with a function."""
    found = [CompletionItem(name) for name in _begin(_with_hyphens("implementations"), incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete whatever `explain` knows."""
    known = [*_with_hyphens("invariants"), *_with_hyphens("implementations")]
    return [*_begin(known, incomplete), *features(ctx, param, incomplete)]


def case_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the id of a case: of those below the paths that were given, or of the built-in ones."""
    ids = [name for name in dict.fromkeys(_ids(ctx)) if _PLAIN.fullmatch(name)]
    return _begin(ids, incomplete) or [name for name in ids if incomplete.lower() in name.lower()]


def _ids(ctx: click.Context) -> Iterator[str]:
    words = ctx.args or ctx.params.get("paths") or ()  # click leaves them where an option still wants its value
    given = [Path(path.partition("::")[0]) for path in words]
    shipped = resources.folder("cases")
    everything = ctx.params.get("implementation") not in {None, "core"}
    for folder in given or [shipped]:
        subject = {"structures": "structures", "map": "boundaries"}.get(str(ctx.params.get("subject")), "article")
        part = folder if given or everything else shipped / subject
        files = sorted(path for path in part.rglob("*") if path.suffix in {".yaml", ".yml"}) if part.is_dir() else []
        yield from (path.relative_to(folder).with_suffix("").as_posix() for path in files)
        if folder.is_file():
            yield folder.stem


def _with_hyphens(kind: str) -> Iterator[str]:
    return (name.replace("_", "-") for name in registry.names(f"verify_attention.{kind}"))


def _begin(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
