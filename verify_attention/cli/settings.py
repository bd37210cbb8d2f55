"""Commands whose options may also come from the environment or from a file: option > environment > file > default."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from verify_attention.cli.choices import echo
from verify_attention.cli.config import Config, given, nearest
from verify_attention.errors import UsageError

# As the properties of schemas/config.schema.json, which --help does not read; a test holds them together.
SETTINGS = (
    *("paths", "rtol", "atol", "select", "ignore", "report", "output", "jobs", "implementation", "dtype", "detail"),
    *("lang", "color", "exact", "fail-fast", "maxfail", "verbose", "quiet", "no-progress"),
)
RIVALS = (("quiet", "verbose"), ("fail_fast", "maxfail"))
FROM_FILE, FROM_ENVIRONMENT = ParameterSource.DEFAULT_MAP, ParameterSource.ENVIRONMENT


class Configured(click.Command):
    """A command with --config and --isolated, and with a variable for each option that a file may set.

    `but` are options whose name a file may set for another command.
    """

    def __init__(self, *args: Any, but: Container[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for param in self.params:
            key = _key(param)
            if isinstance(param, click.Option) and key in SETTINGS and key not in but:
                param.envvar = variable(key)
        self.params += _options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and say of a wrong value where it came from, unless it was typed."""
        try:
            rest = super().parse_args(ctx, args)
        except click.BadParameter as error:
            param = error.param
            source = ctx.get_parameter_source(str(param.name)) if param is not None else None
            if param is None or source not in {FROM_ENVIRONMENT, FROM_FILE}:
                raise
            raise click.BadParameter(f"{error.message} (from {_origin(ctx, param)})", ctx, param) from error
        for one, other in RIVALS:
            _the_nearer_wins(ctx, one, other)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Say which settings were not typed, unless somebody typed --quiet, and run."""
        used: dict[str, list[str]] = {}
        for param in self.params:
            if ctx.get_parameter_source(str(param.name)) in {FROM_FILE, FROM_ENVIRONMENT}:
                from_file = ctx.get_parameter_source(str(param.name)) is FROM_FILE
                used.setdefault(_origin(ctx, param) if from_file else "the environment", []).append(_key(param))
        typed = ctx.get_parameter_source("quiet") is ParameterSource.COMMANDLINE
        if not (typed and ctx.params.get("quiet")):
            for where, keys in used.items():
                echo(f"note: settings from {where} ({', '.join(keys)})\n", err=True)
        return super().invoke(ctx)


def variable(key: str) -> str:
    """Return the environment variable of an option."""
    return f"VERIFY_ATTENTION_{key.upper().replace('-', '_')}"


def not_typed(ctx: click.Context) -> Iterator[str]:
    """Yield each parameter that the environment or a file has set, with its value and where that is from."""
    for param in ctx.command.params:
        if ctx.get_parameter_source(str(param.name)) in {FROM_ENVIRONMENT, FROM_FILE}:
            value = ctx.params[str(param.name)]
            shown = " ".join(value) if isinstance(value, tuple) else value
            yield f"{_key(param)} = {shown} (from {_origin(ctx, param)})"


def _key(param: click.Parameter) -> str:
    """Return the long name of an option, without its dashes; the name of an argument."""
    long = [name for name in param.opts if name.startswith("--")]
    return long[0].removeprefix("--") if long else str(param.name)


def _origin(ctx: click.Context, param: click.Parameter) -> str:
    file = _file(ctx)
    if file is not None and ctx.get_parameter_source(str(param.name)) is FROM_FILE:
        return file.file
    return variable(_key(param))


def _file(ctx: click.Context) -> Config | None:
    file: Config | None = ctx.meta.get(__name__)
    return file


def _the_nearer_wins(ctx: click.Context, one: str, other: str) -> None:
    """Of two options that contradict each other, drop the one that was said farther away."""
    if not (ctx.params.get(one) and ctx.params.get(other)):
        return
    sources = {name: ctx.get_parameter_source(name) or ParameterSource.DEFAULT for name in (one, other)}
    if sources[one] is not sources[other]:
        farther = max(sources, key=lambda name: sources[name])
        ctx.params[farther] = None if farther == "maxfail" else False


def _options() -> list[click.Parameter]:
    """Return both options; they are eager, so that the file is read before any other value is asked for."""
    config = click.Option(
        ["--config"],
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_read,
        metavar="FILE",
        help="Take settings from FILE, not from the nearest pyproject.toml.",
    )
    isolated = click.Option(
        ["--isolated"], is_flag=True, is_eager=True, expose_value=False, callback=_alone, help="Ignore all such files."
    )
    return [config, isolated]


def _read(ctx: click.Context, param: click.Parameter, file: Path | None) -> None:
    """Make a file's settings the command's defaults. An option that was not given comes last, after --isolated."""
    if ctx.resilient_parsing:
        return
    if ctx.meta.get("isolated"):
        if file is not None:
            raise click.UsageError("--config and --isolated exclude each other", ctx)
        return
    found = given(file) if file is not None else nearest(_here())
    if found is None:
        return
    ctx.meta[__name__] = found
    settable = {_key(one): str(one.name) for one in ctx.command.params if one is not param and one.envvar is not None}
    ctx.default_map = {settable[key]: value for key, value in found.settings.items() if key in settable}


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder is there no more") from error


def _alone(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and _file(ctx) is not None:
        raise click.UsageError("--config and --isolated exclude each other", ctx)
    ctx.meta["isolated"] = wanted
