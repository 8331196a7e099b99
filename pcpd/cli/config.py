"""The command config: what is in force and where it comes from, and shell completion."""

from dataclasses import fields
from pathlib import Path

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, common
from pcpd.cli.output import raw, say
from pcpd.errors import NotFound

_SHELLS = ("bash", "zsh", "fish")
_HOW = {
    "bash": 'eval "$(pcpd config completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(pcpd config completion zsh)" in ~/.zshrc',
    "fish": "pcpd config completion fish > ~/.config/fish/completions/pcpd.fish",
}


@click.group(
    "config", invoke_without_command=True, short_help="Show settings and folders, and where they come from"
)
@common
@click.pass_context
def config_command(ctx: click.Context) -> None:
    """Show settings and folders, and where they come from

    Settings stand in config.toml in the configuration folder, one `name = value` a line, and in variables
    such as PCPD_PORT, which outrank it: port (of HTTP on localhost; default: 7717), attachment_limit (bytes;
    default: 10 MiB), commit_quiet_s and commit_longest_s (seconds that a saved page waits for its commit;
    default: 2 and 30), watch (auto or polling), poll_s (default: 2), log_level (default: info), and what each
    agent may have within an hour (0: no limit): quota_writes, quota_proposals, quota_bytes.
    """
    invocation = ctx.find_object(Invocation)
    if ctx.invoked_subcommand or invocation is None:
        return
    settings, folders = _settings(invocation), _folders(invocation)
    if invocation.is_json:
        output.document({"settings": settings, "folders": folders})
        return
    output.table(("setting", "value", "from"), [(name, *row.values()) for name, row in settings.items()])
    there = [
        (name, row["path"], "there" if row["is_there"] else "not there") for name, row in folders.items()
    ]
    output.table(("folder", "path", "now"), there)


@config_command.command("completion", short_help="Print the completion script of a shell")
@click.argument("shell", type=click.Choice(_SHELLS))
@common
@click.pass_obj
def config_completion(invocation: Invocation, shell: str) -> None:
    """Print the completion script of a shell

    Bash and zsh take it by `eval`, fish from a file.
    """
    from click.shell_completion import get_completion_class

    from pcpd.cli.main import cli

    made = get_completion_class(shell)
    if made is None:
        raise NotFound("cli.shell", f"there is no completion for {shell}")
    source = made(cli, {}, "pcpd", "_PCPD_COMPLETE").source()
    if invocation.is_json:
        output.document({"shell": shell, "script": source})
        return
    raw(source.encode() + b"\n")
    say(f"Put it to use: {_HOW[shell]}")


def _settings(invocation: Invocation) -> dict[str, dict[str, object]]:
    """Gives each setting's value and source."""
    settings = invocation.settings
    names = [each.name for each in fields(settings) if each.name in settings.sources]
    return {name: {"value": getattr(settings, name), "from": settings.sources[name]} for name in names}


def _folders(invocation: Invocation) -> dict[str, dict[str, object]]:
    """Gives the folders that pcpd uses, and whether they are there."""
    settings = invocation.settings
    found = {"configuration": settings.config_file, "state": settings.state_base}
    try:
        root: Path | None = invocation.root()
    except NotFound:
        root = None
    if root:
        found = {"vault": root, **found}
        for number, folder in enumerate(settings.socket_folders(root), 1):
            found[f"sockets {number}"] = folder
    return {name: {"path": str(path), "is_there": path.exists()} for name, path in found.items()}
