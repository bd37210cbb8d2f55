"""`verify-attention completion`: the script by which a shell completes our commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from verify_attention.cli.choices import emit

PROGRAM, VARIABLE = "verify-attention", "_VERIFY_ATTENTION_COMPLETE"


@click.command(short_help="Print the script that completes in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the script by which SHELL completes commands, options, names and ids of cases.

    \b
    bash, in ~/.bashrc:                 eval "$(verify-attention completion bash)"
    zsh, in ~/.zshrc, after compinit:   eval "$(verify-attention completion zsh)"
    fish, once:   verify-attention completion fish > ~/.config/fish/completions/verify-attention.fish
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101 - click knows all three
    emit(made(ctx.find_root().command, {}, PROGRAM, VARIABLE).source())
    return 0
