"""The MCP clients that are known: what they are called, where their configuration lies, what an entry looks like.

Sources, read in November 2026: Claude Desktop and Claude Code (code.claude.com/docs/en/mcp and issue 4193 of
anthropics/claude-code), cursor.com/docs/mcp, code.visualstudio.com/docs/agents/reference/mcp-configuration,
zed.dev/docs/ai/mcp, docs.windsurf.com/windsurf/cascade/mcp, geminicli.com/docs/tools/mcp-server.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = "PCPD_TOKEN"  # noqa: S105 - the variable's name
SERVER = "pcpd"
"""What clients call the server, unless that name is taken."""

# What decides where a vault's state, grants and sockets lie: a client's environment may lack it.
_FOLDERS = ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")


@dataclass(frozen=True, slots=True)
class Program:
    """One client. `key` is where its servers stand in the file; `places` are file names below a home.

    `is_typed`: an entry says `"type": "stdio"`. `reads_notes`: it takes comments and trailing commas. `expands`:
    what begins a variable that it would put into a path. `again`: what makes it take up an entry (`{name}`),
    `after`: and let go of one, where that is less. `sign`: a folder that it makes, where that is not the file's.
    """

    name: str
    title: str
    places: tuple[str, ...]
    key: str = "mcpServers"
    is_typed: bool = False
    reads_notes: bool = False
    expands: str = ""
    again: str = ""
    after: str = ""
    sign: str = ""

    def is_installed(self, environ: Mapping[str, str], platform: str = sys.platform) -> bool:
        """Tells whether there is a trace of the client: its file, or the folder that it makes."""
        signs = [_path(self.sign, environ, platform)] if self.sign else []
        files = [_path(place, environ, platform) for place in self.places]
        folders = [] if signs else [each.parent for each in files]
        return any(each.exists() for each in (*files, *folders, *signs))

    def to_take_up(self, name: str) -> str:
        """Says what the person does for the client to take up the entry `name`."""
        return self.again.replace("{name}", name)

    def to_let_go(self) -> str:
        """Says what the person does for the client to see that the entry is gone."""
        return self.after or self.again

    def file(self, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
        """Gives its configuration file: the one that is there, else where it would be."""
        paths = [_path(place, environ, platform) for place in self.places]
        for is_there in (Path.is_file, lambda path: path.parent.is_dir()):
            for path in paths:
                if is_there(path):
                    return path
        return paths[0]


OTHER = Program(
    "other",
    "your client",
    (),
    again="put the entry into your client's configuration",
    after="take the entry out of your client's configuration",
)

PROGRAMS = (
    Program(
        "claude-desktop",
        "Claude Desktop",
        ("{support}/Claude/claude_desktop_config.json",),
        again="quit Claude Desktop and start it again",
    ),
    Program(
        "claude-code",
        "Claude Code",
        ("{claude}/.claude.json",),
        is_typed=True,
        expands="${",
        again="end the sessions of Claude Code and start a new one",
        sign="{home}/.claude",
    ),
    Program(
        "cursor",
        "Cursor",
        ("{home}/.cursor/mcp.json",),
        is_typed=True,
        reads_notes=True,
        expands="${",
        again="restart Cursor, and see that {name} is switched on in its MCP settings",
        after="restart Cursor",
    ),
    Program(
        "vscode",
        "VS Code",
        ("{support}/Code/User/mcp.json", "{support}/Code - Insiders/User/mcp.json"),
        key="servers",
        is_typed=True,
        reads_notes=True,
        expands="${",
        again="start the server {name} in VS Code (command: MCP: List Servers), or restart VS Code",
        after="restart VS Code",
    ),
    Program(
        "windsurf",
        "Windsurf",
        ("{home}/.codeium/windsurf/mcp_config.json",),
        expands="${",
        again="refresh the MCP servers in Windsurf, or restart it",
    ),
    Program(
        "zed",
        "Zed",
        ("{config}/zed/settings.json",),
        key="context_servers",
        reads_notes=True,
        again="Zed takes it up by itself; see its agent settings",
        after="Zed sees it by itself",
    ),
    Program(
        "gemini-cli",
        "Gemini CLI",
        ("{home}/.gemini/settings.json",),
        reads_notes=True,
        expands="$",
        again="start a new session of Gemini CLI",
    ),
    OTHER,
)


def known(name: str) -> Program | None:
    """Gives the client of that name."""
    return next((each for each in PROGRAMS if each.name == name), None)


def entry(
    program: Program, command: Sequence[str], root: Path, principal: str, variables: Mapping[str, str]
) -> dict[str, object]:
    """Gives the entry by which a client starts the relay. `command` is absolute: a client has no shell and no PATH."""
    kind = {"type": "stdio"} if program.is_typed else {}
    arguments = [*command[1:], "--vault", os.fspath(root), "mcp", "--principal", principal]
    return {**kind, "command": command[0], "args": arguments, "env": dict(variables)}


def variables(token: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Gives the environment of an entry: the token, and folders that are not where a client would look for them."""
    usual = {"XDG_RUNTIME_DIR": f"/run/user/{os.getuid()}"}
    home = environ.get("HOME", "")
    usual |= {"XDG_STATE_HOME": f"{home}/.local/state", "XDG_CONFIG_HOME": f"{home}/.config"}
    moved = {name: environ[name] for name in _FOLDERS if environ.get(name) not in {None, "", usual[name]}}
    return {TOKEN: token, **moved}


def is_for(value: object, root: Path) -> bool:
    """Tells whether an entry starts the relay of the vault at `root`."""
    said = value.get("args") if isinstance(value, dict) else None
    if not isinstance(said, list) or "mcp" not in said or "--vault" not in said[:-1]:
        return False
    vault = said[said.index("--vault") + 1]
    return isinstance(vault, str) and Path(os.path.realpath(vault)) == Path(os.path.realpath(root))


def token_id(value: object) -> str | None:
    """Gives the id of the token that an entry holds, which is no secret."""
    said = value.get("env") if isinstance(value, dict) else None
    token = said.get(TOKEN) if isinstance(said, dict) else None
    parts = token.split("_", 2) if isinstance(token, str) else []
    return f"tok_{parts[1]}" if len(parts) == 3 and parts[0] == "pcp" else None


def principal_of(value: object) -> str | None:
    """Gives the principal that an entry names."""
    said = value.get("args") if isinstance(value, dict) else None
    if not isinstance(said, list) or "--principal" not in said[:-1]:
        return None
    named = said[said.index("--principal") + 1]
    return named if isinstance(named, str) else None


def _path(place: str, environ: Mapping[str, str], platform: str) -> Path:
    home = environ.get("HOME") or "/"
    given = environ.get("XDG_CONFIG_HOME", "")
    config = given if given.startswith("/") else f"{home}/.config"
    is_mac = platform == "darwin"
    return Path(
        place.format(
            home=home,
            claude=environ.get("CLAUDE_CONFIG_DIR") or home,
            config=f"{home}/.config" if is_mac else config,
            support=f"{home}/Library/Application Support" if is_mac else config,
        )
    )
