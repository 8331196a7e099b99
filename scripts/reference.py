"""The parts of the documentation that come from the code: commands, MCP tools, routes, error codes.

`scripts/docs` writes them; tests/docs holds the pages to them.
"""

import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from api_reference import api_page
from pcpd.cli.main import cli
from pcpd.mcp_server.tool import Schema, Tool
from pcpd.mcp_server.tools import TOOLS

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z0-9]+)*")
_FILES = re.compile(r".*\.(json|sock|sqlite|yaml|lock|md|py|tmp|log|toml|sql|html|txt)")
_NO_ERRORS = {"get", "scalar", "one_of", "Path"}
"""Calls whose first argument looks like a code and is a key of front matter, of git's configuration, a file."""

MCP_MARK = "<!-- From here on written by `scripts/docs`, from the tools themselves. -->"

_HEAD = """# Commands

Written by `scripts/docs` from the commands themselves; `pcpd COMMAND --help` shows the same.

Results go to standard output, everything else to standard error. Every command takes `--json`; the keys in
its answer may grow in number, but do not change.
"""


def cli_page() -> str:
    """Gives docs/cli.md."""
    parts = [_HEAD]
    with click.Context(cli, info_name="pcpd") as top:
        parts.append(_section(cli, top, 2))
        for name in cli.list_commands(top):
            command = cli.get_command(top, name)
            if command is not None:
                parts += _command(command, name, top, 2)
    return "\n".join(parts)


def _command(command: click.Command, name: str, above: click.Context, level: int) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=above) as context:
        yield _section(command, context, level)
        if isinstance(command, click.Group):
            for part in command.list_commands(context):
                inner = command.get_command(context, part)
                if inner is not None:
                    yield from _command(inner, part, context, level + 1)


def _section(command: click.Command, context: click.Context, level: int) -> str:
    formatter = click.HelpFormatter(width=100)
    command.format_help(context, formatter)
    text = "\n".join(line.rstrip() for line in formatter.getvalue().splitlines())
    return f"{'#' * level} {context.command_path}\n\n```text\n{text.strip()}\n```\n"


def mcp_page() -> str:
    """Gives docs/mcp.md: what a person has written there, and below it the tools."""
    head, mark, _ = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8").partition(MCP_MARK)
    return head + mark + "\n\n" + "\n".join(_tool(tool) for tool in TOOLS)


def _tool(tool: Tool) -> str:
    effect = tool.effect
    hints = "reads only" if effect.reads_only else "can remove or replace" if effect.destroys else "changes"
    repeats = (
        ""
        if effect.reads_only
        else "; a second call does no more"
        if effect.repeats
        else "; each call counts"
    )
    said = f"{tool.title} ({hints}{repeats}). {tool.description}"
    parts = [f"### {tool.name}", "", textwrap.fill(said, 118, break_on_hyphens=False), ""]
    if tool.properties:
        parts += ["| argument | type | |", "| --- | --- | --- |"]
        parts += [_argument(tool, name, schema) for name, schema in tool.properties.items()]
        parts.append("")
    parts += ["| the answer has | type | |", "| --- | --- | --- |", *_keys("", tool.gives), ""]
    return "\n".join(parts)


def _argument(tool: Tool, name: str, schema: Schema) -> str:
    needed = ", needed" if name in tool.required else ""
    among = f" One of {', '.join(f'`{each}`' for each in schema['enum'])}." if "enum" in schema else ""
    return f"| `{name}` | {_type(schema)}{needed} | {_cell(schema['description'] + among)} |"


def _keys(above: str, keys: Mapping[str, Schema]) -> Iterator[str]:
    for name, schema in keys.items():
        yield f"| `{above}{name}` | {_type(schema)} | {_cell(schema.get('description', ''))} |"
        inner = schema.get("items", schema)
        yield from _keys(f"{above}{name}{'[]' if 'items' in schema else ''}.", inner.get("properties", {}))


def _type(schema: Schema) -> str:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    of = f" of {schema['items']['type']}s" if "items" in schema else ""
    return " or ".join(kinds) + of


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def error_codes() -> set[str]:
    """Gives every error or problem code that the code raises: `room.what`, first in a call."""
    found = set()
    for file in sorted((ROOT / "pcpd").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] not in _NO_ERRORS:
                first = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "code")]
                texts = [each.value for each in first if isinstance(each, ast.Constant)]
                found |= {text for text in texts if isinstance(text, str) and is_code(text)}
    return found


def is_code(text: str) -> bool:
    """Tells whether a text looks like an error code, and not like a file's name."""
    return bool(CODE.fullmatch(text)) and not _FILES.fullmatch(text)


def explained_codes() -> set[str]:
    """Gives the codes that docs/troubleshooting.md explains."""
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def main() -> int:
    """Writes what can be written and names what a person must explain."""
    (ROOT / "docs" / "cli.md").write_text(cli_page(), encoding="utf-8")
    (ROOT / "docs" / "mcp.md").write_text(mcp_page(), encoding="utf-8")
    (ROOT / "docs" / "api.md").write_text(api_page(), encoding="utf-8")
    missing, stale = error_codes() - explained_codes(), explained_codes() - error_codes()
    for code in sorted(missing):
        print(f"docs/troubleshooting.md does not explain {code}", file=sys.stderr)
    for code in sorted(stale):
        print(f"docs/troubleshooting.md explains {code}, which nothing raises", file=sys.stderr)
    return 1 if missing or stale else 0


if __name__ == "__main__":
    sys.exit(main())
