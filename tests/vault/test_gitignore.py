"""Ignore rules mean what they mean to git; `git check-ignore` is the judge."""

import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcpd.vault import gitignore
from pcpd.vault.ignore import Ignore

NAMES = ["a", "b", "ab", "abc", "foo", "foo.md", "b.log", "x y", "[a]", "a-b", "Foo"]
SEGMENTS = [
    "a", "b", "foo", "FOO", "foo.md", "*", "**", "a*", "*b", "*.md", "*o*", "a**", "*a*b*", "?", "a?c", "[ab]", "[!a]",
    "[^a]*", "[a-c]*", "[]a]", "[a-", "[z-a]", "[[:alpha:]]", "[[:nope:]]", "\\a", "x\\ y", "\\[a\\]",
]  # fmt: skip

lines = st.builds(
    lambda negated, rooted, parts, folder, tail: (
        ("!" if negated else "") + ("/" if rooted else "") + "/".join(parts) + ("/" if folder else "") + tail
    ),
    st.booleans(),
    st.booleans(),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["", "", "", " ", "\\ ", "\r"]),
).filter(
    lambda line: "[a-/" not in line and not ("a**" in line and "/" in line)
)  # the deviations that the module tells
rules = st.lists(
    st.one_of(lines, st.sampled_from(["", "#a", "\\#a", "\\!a", "/", "!", "!/", "**", "/**", "**/"])),
    max_size=6,
)


def tree_of(root: Path, files: Iterable[tuple[str, ...]]) -> None:
    """Makes a file for each path, where no folder of that name stands."""
    for parts in files:
        path = root.joinpath(*parts)
        if path.is_dir() or any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def ignored_by_git(root: Path, names: list[str]) -> set[str]:
    """Asks git which of the files it ignores."""
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=", "check-ignore", "-z", "--no-index", "--stdin"],
        cwd=root,
        input="\0".join(names).encode(),
        capture_output=True,
        check=False,
    )
    assert asked.returncode in {0, 1}, asked.stderr
    return {name for name in asked.stdout.decode().split("\0") if name}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with files of many names, three folders deep."""
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    tree_of(root, [(name,) for name in NAMES[3:]])
    tree_of(root, [(one, two) for one in ("a", "b") for two in NAMES if two != "foo"])
    tree_of(root, [("ab", name, last) for name in ("a", "x y", "foo") for last in NAMES])
    return root


@settings(max_examples=60)
@given(top=rules, deep=rules)
def test_random_rules_mean_what_they_mean_to_git(repository: Path, top: list[str], deep: list[str]) -> None:
    """Order, negation, anchors, `**`, brackets, classes, escapes and spaces, at two levels of files."""
    (repository / ".gitignore").write_bytes("\n".join(top).encode())
    (repository / "ab" / ".gitignore").write_bytes("\n".join(deep).encode())
    names = [
        str(path.relative_to(repository))
        for path in repository.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != ".gitignore"
    ]
    ignore = Ignore.load(repository)
    assert {name for name in names if ignore.file(name)} == ignored_by_git(repository, names)


@pytest.mark.parametrize(
    ("pattern", "ignored", "kept"),
    [
        ("*.log", ["b.log", "deep/er/b.log"], ["b.logs", "log"]),
        ("/build", ["build"], ["deep/build"]),
        ("docs/_build/", ["docs/_build/x.md"], ["_build/x.md", "deep/docs/_build/x.md"]),
        ("**/drafts/*.md", ["drafts/a.md", "x/y/drafts/a.md"], ["drafts/deep/a.md"]),
        ("private/**", ["private/a.md", "private/b/c.md"], ["privat/a.md"]),
        ("a/**/z.md", ["a/z.md", "a/b/z.md", "a/b/c/z.md"], ["z.md", "b/z.md"]),
        ("entwürfe", ["entwürfe/a.md"], ["entwurfe/a.md"]),
        ("\ufefffirst", ["first"], ["second"]),
        ("*\n!keep.md", ["x.md"], ["keep.md"]),
        ("foo/\n!foo/keep.md", ["foo/keep.md"], ["bar/keep.md"]),
    ],
)
def test_common_rules(root: Path, pattern: str, ignored: list[str], kept: list[str]) -> None:
    """What people write in such files."""
    (root / ".gitignore").write_text(pattern, encoding="utf-8")
    ignore = Ignore.load(root)
    assert [name for name in ignored if not ignore.file(name)] == []
    assert [name for name in kept if ignore.file(name)] == []


def test_the_same_rules_twice_are_stronger_further_down(root: Path) -> None:
    """The lower file's `!*` takes back what the upper file's last line ignores, though both hold both lines."""
    (root / "ab").mkdir()
    for folder in (root, root / "ab"):
        (folder / ".gitignore").write_text("!*\n/*/a/a\n", encoding="utf-8")
    assert not Ignore.load(root).file("ab/a/a")


def test_no_pattern_makes_matching_explode() -> None:
    """Many stars take no more than linear time, also against names that nearly match."""
    state = gitignore.beginning(gitignore.START, gitignore.parse(b"*a" * 60 + b"b\n" + b"**/" * 60 + b"z\n"))
    began = time.process_time()
    for _ in range(100):
        assert not gitignore.name_rules(state).ignores_file("a" * 250)
        state = gitignore.inside(state, "a" * 250)
    assert time.process_time() - began < 30


@given(st.binary(max_size=200), st.text(min_size=1).filter(lambda name: "/" not in name))
def test_no_file_of_rules_is_an_error(data: bytes, name: str) -> None:
    """Whatever bytes stand in it, every name gets an answer, here and below."""
    state = gitignore.beginning(gitignore.START, gitignore.parse(data))
    for _ in range(3):
        compiled = gitignore.name_rules(state)
        assert compiled.ignores_file(name) in {True, False}
        assert compiled.ignores_folder(name) in {True, False}
        state = gitignore.inside(state, name)
