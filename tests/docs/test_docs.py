"""The documentation cannot lie: what it names exists, and what exists is named."""

import re
import shlex
import sys
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import click
import pytest

from pcpd import __version__
from pcpd.cli.main import cli
from pcpd.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import api_reference  # noqa: E402
import reference  # noqa: E402

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def read(page: Path) -> str:
    """The text of a page of the documentation."""
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the web."""
    headings = re.findall(r"^#+ (.*)$", read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Files and headings alike; addresses on the web are left alone."""
    for target in re.findall(r"\]\(([^)\s]+)\)", read(page)):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        assert not heading or heading in anchors(there), target


def test_command_reference_is_what_the_commands_say() -> None:
    """`scripts/docs` writes it again."""
    assert read(DOCS / "cli.md") == reference.cli_page()


def test_mcp_reference_is_what_the_tools_say() -> None:
    """`scripts/docs` writes it again below its mark; above it a person does."""
    assert reference.MCP_MARK in read(DOCS / "mcp.md")
    assert read(DOCS / "mcp.md") == reference.mcp_page()


def test_api_reference_is_what_the_routes_say() -> None:
    """Below what a person wrote; `scripts/docs` writes it again."""
    assert api_reference.MARK in read(DOCS / "api.md")
    assert read(DOCS / "api.md") == api_reference.api_page()


def test_every_command_and_option_has_help() -> None:
    """A first line without a full stop, and a word on each option."""
    with click.Context(cli, info_name="pcpd") as top:
        for name in cli.list_commands(top):
            command = cli.get_command(top, name)
            assert command is not None, name
            assert command.help, name
            silent = [
                each.name for each in command.params if isinstance(each, click.Option) and not each.help
            ]
            assert silent == [], name


def test_every_error_code_is_explained_and_no_other() -> None:
    """Each code stands in the table of docs/troubleshooting.md with its meaning and next step."""
    assert sorted(reference.error_codes() - reference.explained_codes()) == []
    assert sorted(reference.explained_codes() - reference.error_codes()) == []


def test_every_setting_is_documented_with_its_default() -> None:
    """The table of docs/configuration.md names setting, variable and default as the code has them."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\S+) \|", read(DOCS / "configuration.md"), re.MULTILINE)
    settings = [each for each in fields(Settings) if each.default is not MISSING]
    assert rows == [(each.name, f"PCPD_{each.name.upper()}", str(each.default)) for each in settings]


def test_every_dependency_is_explained() -> None:
    """One row for each package that pcpd runs on."""
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    wanted = [re.split(r"[<>=]", text)[0].lower() for text in project["dependencies"]]
    assert re.findall(r"^\| `([\w.-]+)` \|", read(DOCS / "dependencies.md"), re.MULTILINE) == sorted(wanted)


def test_dependencies_do_their_work_where_the_page_says() -> None:
    """Each row's rooms hold a module that imports the package."""
    modules = {"argon2-cffi": "argon2", "gitpython": "git", "python-frontmatter": "frontmatter"}
    modules |= {"pyyaml": "yaml", "ruamel.yaml": "ruamel", "sqlite-utils": "sqlite_utils"}
    for line in read(DOCS / "dependencies.md").splitlines():
        row = re.match(r"\| `([\w.-]+)` \| [^|]*: ((?:`[\w./]+`(?:, )?)+) \|", line)
        if not row:
            continue
        module = modules.get(row[1], row[1])
        for place in re.findall(r"`([\w./]+)`", row[2]):
            there = ROOT / "pcpd" / place
            sources = [there] if there.is_file() else sorted(there.rglob("*.py"))
            using = rf"^\s*(import|from) {module}\b"
            assert any(re.search(using, read(file), re.MULTILINE) for file in sources), f"{row[1]} in {place}"


def test_newest_version_of_the_changelog_is_this_one() -> None:
    """A release without its entry, or an entry without its release, is found here."""
    assert re.findall(r"^## (\S+)", read(DOCS / "changelog.md"), re.MULTILINE)[0] == __version__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_the_pages_show_exist(page: Path) -> None:
    """Every line of a shell block that calls pcpd names a command and options that there are."""
    for block in re.findall(r"^```sh\n(.*?)^```", read(page), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["pcpd"]:
                check(words[1:], line)


def check(words: list[str], line: str) -> None:
    """Follows a line's words down to its command, and looks up each option."""
    command: click.Command | None = cli
    with click.Context(cli, info_name="pcpd") as context:
        while words and isinstance(command, click.Group):
            if words[0].startswith("-"):
                break
            command = command.get_command(context, words.pop(0))
            assert command is not None, line
        assert command is not None, line
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert [word for word in words if word.startswith("--") and word not in known] == [], line


def test_first_lines_of_the_readme_are_the_two_commands() -> None:
    """Who has cloned the project needs nothing else to start."""
    block = read(ROOT / "README.md").split("```")[1]
    commands = [shlex.split(line, comments=True) for line in block.splitlines()[1:] if line]
    assert commands == [["./scripts/run"], ["./scripts/test"]]
    assert all((ROOT / command[0]).stat().st_mode & 0o111 for command in commands)


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / ".ci" / "run", *sorted((ROOT / "scripts").glob("*"))], ids=str
)
def test_nothing_names_a_machine(page: Path) -> None:
    """The project is at home anywhere."""
    if page.is_file():
        assert not re.search(r"/(root|work|tmp/plan|home/\w+)/", read(page))
