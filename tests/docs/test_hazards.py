"""The page of hazards names tests that exist, and every test that was written for a hazard."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "hazards.md"


def rows() -> list[list[str]]:
    """The cells of each hazard's row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] not in {"what can go wrong", "---"}]


def named(row: list[str]) -> list[str]:
    """The tests that a row names."""
    return re.findall(r"`([\w/]+\.py::\w+)`", row[2])


def functions_in(file: Path) -> set[str]:
    """The names of the test functions of a file, those in classes too."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_every_hazard_has_tests_that_exist(row: list[str]) -> None:
    """Three cells, and at least one test, each in the file that is named."""
    assert len(row) == 3
    assert named(row)
    for test in named(row):
        file, _, name = test.partition("::")
        assert (TESTS / file).exists(), test
        assert name in functions_in(TESTS / file), test


def test_every_test_of_a_hazard_is_on_the_page() -> None:
    """Whoever writes one adds its row."""
    on_page = {test for row in rows() for test in named(row)}
    written = {
        f"hazards/{file.name}::{name}"
        for file in sorted((TESTS / "hazards").glob("test_*.py"))
        for name in functions_in(file)
    }
    assert written - on_page == set()
