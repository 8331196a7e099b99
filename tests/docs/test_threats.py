"""The page of threats names tests that exist, says of each threat what is left, and leaves out none of its tests."""

import re
from pathlib import Path

import pytest

from tests.docs.test_hazards import functions_in

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "threats.md"
HEAD = ["what may be tried", "what pcpd does", "what is left", "tests"]


def rows() -> list[list[str]]:
    """The cells of each threat's row."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row != HEAD and row[0] != "---"]


def named(row: list[str]) -> list[str]:
    """The tests that a row names."""
    return re.findall(r"`([\w/]+\.py::\w+)`", row[3])


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_every_threat_says_what_is_left_and_has_tests_that_exist(row: list[str]) -> None:
    """Four cells, none of them empty, and at least one test, each in the file that is named."""
    assert len(row) == 4
    assert all(row)
    assert named(row)
    for test in named(row):
        file, _, name = test.partition("::")
        assert (TESTS / file).exists(), test
        assert name in functions_in(TESTS / file), test


def test_every_test_of_a_threat_is_on_the_page() -> None:
    """Whoever writes one adds its row."""
    on_page = {test for row in rows() for test in named(row)}
    written = {
        f"threats/{file.name}::{name}"
        for file in sorted((TESTS / "threats").glob("test_*.py"))
        for name in functions_in(file)
    }
    assert written - on_page == set()


@pytest.mark.parametrize(
    "who",
    ["Agents", "poisoning", "hostile page", "push", "Web pages", "Other users", "own user", "stolen", "Logs"],
)
def test_each_of_those_who_might_try_has_a_chapter(who: str) -> None:
    """With what is not defended said in plain words where that is so."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^## .*{who}", text, re.MULTILINE)
    assert text.count("**Not defended") >= 3
