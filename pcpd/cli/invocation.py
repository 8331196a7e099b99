"""What one call of the command line works with: the vault it means, settings, and a connection to the owner."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pcpd.errors import NotFound

if TYPE_CHECKING:
    from pcpd.client.http import Answer, Connection
    from pcpd.settings import Settings

MARK = Path(".pcp") / "context.yaml"
F = TypeVar("F", bound=Callable[..., Any])


class Invocation:
    """One call of `pcpd`. Settings and connection are made when first needed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ` is the process's environment."""
        self.environ = environ
        self.vault: str | None = None
        self.is_json = False
        self._settings: Settings | None = None

    @property
    def settings(self) -> "Settings":
        """Environment and configuration file, read once."""
        if self._settings is None:
            from pcpd.settings import load

            self._settings = load(self.environ)
        return self._settings

    def root(self) -> Path:
        """Gives the vault that is meant, as an absolute path without links.

        Raises NotFound (`vault.none`) with the way to make one.
        """
        given = self.vault or self.environ.get("PCPD_VAULT")
        if not given:
            return _around(Path.cwd())
        root = Path(given).expanduser().resolve()
        if not (root / MARK).is_file():
            raise NotFound(
                "vault.none",
                f"{root} is no vault: it has no {MARK}",
                hint=f"make it one: `pcpd init {shlex.quote(str(root))}`",
            )
        return root

    def ask(
        self,
        method: str,
        route: str,
        *,
        query: Mapping[str, object] | None = None,
        body: bytes | Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        wait_ready: bool = True,
    ) -> "Answer":
        """Asks the vault's owner, started if there is none; shows progress on anything over a second."""
        from pcpd.cli import progress
        from pcpd.client import owner

        root, settings = self.root(), self.settings

        def exchange() -> "Answer":
            return self.connection(wait_ready=wait_ready).request(
                method, route, query=query, body=body, headers=headers
            )

        return progress.run(exchange, lambda: owner.work(root, settings))

    def connection(self, *, wait_ready: bool = True) -> "Connection":
        """Connects to the vault's owner, started if there is none."""
        from pcpd.client import owner
        from pcpd.client.http import Connection

        root, settings = self.root(), self.settings

        def present() -> owner.Owner:
            return owner.ensure_owner(root, settings, self.environ, wait_ready=wait_ready)

        return Connection(present(), present)


def common(command: F) -> F:
    """Adds what every command takes: --vault and --json, before or after the command's name."""
    for option in (
        click.option(
            "--vault",
            metavar="DIR",
            expose_value=False,
            callback=_note_vault,
            help="The vault (default: PCPD_VAULT, else the vault around the current folder).",
        ),
        click.option(
            "--json",
            is_flag=True,
            expose_value=False,
            callback=_note_json,
            help="Print one JSON document (default: text).",
        ),
    ):
        command = option(command)
    return command


def command(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a command that takes the common options and gets the invocation first."""

    def made(function: Callable[..., Any]) -> click.Command:
        return click.command(name, cls=click.Command, **attributes)(common(click.pass_obj(function)))

    return made


def page_argument(root: Path, text: str) -> str:
    """Gives a page's path in the vault for what a person typed.

    An absolute path into the vault, and one that begins with `./` or `../`, is where it is; `.md` at the end
    may be left out. Anything else is a path from the vault's root, or a name.
    """
    if text.startswith(("/", "./", "../")):
        where = os.path.normpath(os.path.join(os.path.realpath(os.getcwd()), text))  # noqa: PTH118, PTH109
        for base in (root, root.resolve()):
            if where.startswith(f"{base}{os.sep}"):
                text = os.path.relpath(where, base)
                break
    return text.removesuffix(".md")


def joined(words: Sequence[str]) -> str:
    """Gives several arguments as one text."""
    return " ".join(words)


def _around(folder: Path) -> Path:
    """Gives the nearest vault that `folder` is, or lies in."""
    here = folder.resolve()
    for candidate in (here, *here.parents):
        if (candidate / MARK).is_file():
            return candidate
    raise NotFound(
        "vault.none",
        f"there is no vault around {here}",
        hint="name one with --vault or PCPD_VAULT, or make one: `pcpd init DIR`",
    )


def _note_vault(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Keeps --vault wherever it stands; the one nearer to the end counts."""
    if value is not None:
        ctx.obj.vault = value


def _note_json(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.obj.is_json = True
