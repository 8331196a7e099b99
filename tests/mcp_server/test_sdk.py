"""What pcpd needs of the SDK: a bounded version, and nothing of it that is not public."""

import ast
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_sdk_is_bounded_and_the_one_that_is_installed_is_within() -> None:
    """A new major version is tried by CI (`scripts/newest-sdk`) and taken on purpose."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (bounds,) = [each for each in needed if re.match(r"mcp\b", each)]
    match = re.fullmatch(r"mcp>=(\d+)\.(\d+),<(\d+)", bounds)
    assert match
    least, most = (int(match[1]), int(match[2])), int(match[3])
    present = tuple(int(part) for part in version("mcp").split(".")[:2])
    assert least <= present < (most, 0)
    assert most == least[0] + 1


def test_nothing_private_of_the_sdk_is_used() -> None:
    """No module and no name with an underscore: a minor release may change those."""
    for file in sorted((ROOT / "pcpd" / "mcp_server").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(r"(mcp|mcp_types)\b", node.module or ""):
                names = [*(node.module or "").split("."), *(each.name for each in node.names)]
                assert not [name for name in names if name.startswith("_")], (file.name, names)
