"""The clients that are known: where their files lie on each system, and what an entry looks like in them."""

from pathlib import Path

import pytest

from pcpd.client import programs
from pcpd.client.programs import PROGRAMS, Program

LINUX = {
    "claude-desktop": "/home/s/.config/Claude/claude_desktop_config.json",
    "claude-code": "/home/s/.claude.json",
    "cursor": "/home/s/.cursor/mcp.json",
    "vscode": "/home/s/.config/Code/User/mcp.json",
    "windsurf": "/home/s/.codeium/windsurf/mcp_config.json",
    "zed": "/home/s/.config/zed/settings.json",
    "gemini-cli": "/home/s/.gemini/settings.json",
}
MAC = LINUX | {
    "claude-desktop": "/home/s/Library/Application Support/Claude/claude_desktop_config.json",
    "vscode": "/home/s/Library/Application Support/Code/User/mcp.json",
}
KEYS = {"vscode": "servers", "zed": "context_servers"}
TYPED = {"claude-code", "cursor", "vscode"}


def known(name: str) -> Program:
    """The client of that name."""
    program = programs.known(name)
    assert program is not None
    return program


@pytest.mark.parametrize(("platform", "places"), [("linux", LINUX), ("darwin", MAC)])
def test_each_client_s_file_lies_where_the_client_looks(platform: str, places: dict[str, str]) -> None:
    """On Linux and macOS."""
    env = {"HOME": "/home/s"}
    found = {each.name: str(each.file(env, platform)) for each in PROGRAMS if each.places}
    assert found == places


def test_moved_folders_are_followed() -> None:
    """XDG on Linux, and the folder that Claude Code takes from its environment; a relative one is none."""
    env = {"HOME": "/home/s", "XDG_CONFIG_HOME": "/cfg", "CLAUDE_CONFIG_DIR": "/cc"}
    assert known("claude-desktop").file(env, "linux") == Path("/cfg/Claude/claude_desktop_config.json")
    assert known("zed").file(env, "linux") == Path("/cfg/zed/settings.json")
    assert known("zed").file(env, "darwin") == Path("/home/s/.config/zed/settings.json")
    assert known("claude-code").file(env, "linux") == Path("/cc/.claude.json")
    assert known("zed").file({"HOME": "/home/s", "XDG_CONFIG_HOME": "x"}, "linux").is_relative_to("/home/s")


def test_of_two_builds_the_one_that_is_there_is_meant(tmp_path: Path) -> None:
    """VS Code's preview keeps a folder of its own."""
    env = {"HOME": str(tmp_path)}
    vscode = known("vscode")
    assert not vscode.is_installed(env, "linux")
    preview = tmp_path / ".config" / "Code - Insiders" / "User"
    preview.mkdir(parents=True)
    assert vscode.file(env, "linux") == preview / "mcp.json"
    assert vscode.is_installed(env, "linux")
    stable = tmp_path / ".config" / "Code" / "User"
    stable.mkdir(parents=True)
    assert vscode.file(env, "linux") == stable / "mcp.json"


def test_a_home_alone_is_no_sign_of_claude_code(tmp_path: Path) -> None:
    """Its file lies in the home itself; its folder tells."""
    env = {"HOME": str(tmp_path)}
    assert not known("claude-code").is_installed(env, "linux")
    (tmp_path / ".claude").mkdir()
    assert known("claude-code").is_installed(env, "linux")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_an_entry_starts_the_relay_by_absolute_paths(program: Program) -> None:
    """With `type` where the client asks for it, under the client's own key."""
    entry = programs.entry(program, ["/py", "-m", "pcpd"], Path("/my notes"), "agent:x", {"PCPD_TOKEN": "t"})
    assert entry.pop("type", None) == ("stdio" if program.name in TYPED else None)
    assert entry == {
        "command": "/py",
        "args": ["-m", "pcpd", "--vault", "/my notes", "mcp", "--principal", "agent:x"],
        "env": {"PCPD_TOKEN": "t"},
    }
    assert program.key == KEYS.get(program.name, "mcpServers")
    assert programs.is_for(entry, Path("/my notes"))
    assert not programs.is_for(entry, Path("/my"))


def test_folders_that_are_elsewhere_go_into_the_entry() -> None:
    """A client that the desktop starts has not the shell's environment, and must find the same vault's state."""
    env = {
        "HOME": "/home/s",
        "XDG_STATE_HOME": "/state",
        "XDG_CONFIG_HOME": "/home/s/.config",
        "XDG_DATA_HOME": "/d",
    }
    assert programs.variables("t", env) == {"PCPD_TOKEN": "t", "XDG_STATE_HOME": "/state"}


@pytest.mark.parametrize(
    "value", [None, 5, [], {}, {"args": "mcp"}, {"args": ["mcp", "--vault"]}, {"args": ["--vault", 5, "mcp"]},
              {"args": ["--vault", "/v"]}, {"env": []}, {"env": {"PCPD_TOKEN": 5}}, {"env": {"PCPD_TOKEN": "x"}}]
)  # fmt: skip
def test_whatever_stands_in_a_file_is_looked_at(value: object) -> None:
    """Other people's entries have any shape."""
    assert not programs.is_for(value, Path("/v"))
    assert programs.token_id(value) is None
