"""Promise 6: to an agent, a vault with pages outside its grant answers as the same vault without them.

Two vaults hold the same visible pages; the second one also holds pages that the agent may not see, made to be in
the way: of the same names, words, titles and aliases, linked from and to everywhere, and in the past of visible pages.
"""

import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from pcpd.errors import PcpError
from pcpd.memory import describe, read, upkeep, versions
from pcpd.memory.memory import Caller
from pcpd.policy.grants import Grant
from tests.vaults import Opened

WORDS = ("zyxquartz", "heat", "pump", "boiler", "plan", "budget", "garden")
HIDDEN = (
    {"partition": "work"},
    {"sensitivity": "sensitive"},
    {"review": "{state: proposed}"},
    {"review": "{state: rejected}"},
    {"type": "episodic"},
    {"x_session": "{mode: wild}"},
    {"sensitivity": "[cannot be read"},
)
GRANT = Grant("agent:claude", ("personal",), ("semantic",), ("read", "write"))
COUNT = 30


def page(keys: dict[str, str], body: str) -> str:
    """A page's text."""
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in keys.items()) + f"---\n{body}\n"


def body(draw: random.Random) -> str:
    """A text of few words with some links, so that many pages share both."""
    words = " ".join(draw.choice(WORDS) for _ in range(draw.randrange(3, 40)))
    links = " ".join(
        f"[[{draw.choice(('n', 'a/n', 'gone', 'alias'))}{draw.randrange(COUNT)}]]" for _ in range(3)
    )
    return f"# {draw.choice(WORDS)}\n{words}\n{links}"


def visible_pages(draw: random.Random) -> dict[str, str]:
    """What the agent may see, in both vaults."""
    pages = {}
    for number in range(COUNT):
        folder = draw.choice(("", "a/", "a/b/"))
        keys = {"updated": f"2026-01-{1 + number % 20:02}"}
        if draw.random() < 0.3:
            keys["aliases"] = f"[alias{number}, zyxalias]"
        if draw.random() < 0.3:
            keys["title"] = f"{draw.choice(WORDS)} {number}"
        pages[f"{folder}n{number}.md"] = page(keys, body(draw))
    return pages


def hidden_pages(draw: random.Random, visible: dict[str, str]) -> dict[str, str]:
    """What it may not see, in the second vault alone: beside each visible page some that could be taken for it."""
    pages: dict[str, str] = {}
    for number, file in enumerate(visible):
        for place in draw.sample(("", "a/", "a/b/", "0/", "z/"), 2):
            keys = {
                **draw.choice(HIDDEN),
                "updated": "2026-01-10",
                "aliases": f"[alias{number}, gone{number}]",
            }
            pages[f"{place}{file.rpartition('/')[2]}"] = page(keys, body(draw))
    return {file: text for file, text in pages.items() if file not in visible}


def save(opened: Opened, pages: dict[str, str], minute: int) -> None:
    """Saves pages and commits them at a minute of one day."""
    for file, text in pages.items():
        opened.save(file, text)
    when = f"2026-02-01T00:{minute:02}:00Z"
    env = {**os.environ, "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
    for command in (("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "words about gone pages")):
        subprocess.run(["git", "-C", str(opened.root), *command], env=env, check=True)
    upkeep.full_scan(opened.memory)


@pytest.fixture(params=range(3))
def twins(make_opened: Callable[..., Opened], request: pytest.FixtureRequest) -> tuple[Opened, Opened]:
    """The two vaults."""
    draw = random.Random(request.param)  # noqa: S311 - vaults that can be made again
    plain, full = (make_opened(name, quiet_s=3600, poll_s=3600).open() for name in ("plain", "full"))
    first, visible = visible_pages(draw), visible_pages(draw)
    past = {file: text for file, text in first.items() if file in visible}
    hidden = hidden_pages(draw, visible)
    was_hidden = {file: page(draw.choice(HIDDEN), body(draw)) for file in draw.sample(sorted(visible), 10)}
    for opened in (plain, full):
        extra = hidden if opened is full else {}
        if opened is full:
            save(opened, {**was_hidden, **extra}, 1)
        save(opened, past, 2)
        if opened is full:
            save(opened, was_hidden, 3)
            save(opened, {file: body(draw) for file in list(hidden)[:5]}, 4)
            save(opened, extra, 5)
        save(opened, visible, 6)
        opened.memory.access.grant(GRANT)
    return plain, full


def to_the_end(ask: Callable[[str | None], tuple[list[Any], str | None]]) -> list[list[Any]]:
    """Follows the cursors; gives the pages of the list, so that it shows where each one ends."""
    lists: list[list[Any]] = []
    cursor: str | None = None
    while True:
        found, cursor = ask(cursor)
        lists.append(found)
        if cursor is None:
            return lists


def answer(act: Callable[[], Any]) -> Any:
    """What an act gives, or all that its error says."""
    try:
        return act()
    except PcpError as error:
        return type(error), error.code, error.message, error.hint, error.details


def searched(opened: Opened, agent: Caller, query: str) -> Any:
    """All results of a search, with scores, snippets and totals, in pages of seven."""

    def ask(cursor: str | None) -> tuple[list[Any], str | None]:
        found = read.search(opened.memory, agent, query, limit=7, cursor=cursor)
        return [found.total, *found.results], found.cursor

    return to_the_end(ask)


def listed(opened: Opened, agent: Caller, act: Callable[..., Any], **options: Any) -> Any:
    """All pages of a list."""

    def ask(cursor: str | None) -> tuple[list[Any], str | None]:
        found = act(opened.memory, agent, limit=7, cursor=cursor, **options)
        return [found.total, *found.pages], found.cursor

    return to_the_end(ask)


def loose(opened: Opened, agent: Caller, act: Callable[..., Any]) -> Any:
    """All links to nowhere, or all orphans."""

    def ask(cursor: str | None) -> tuple[list[Any], str | None]:
        found = act(opened.memory, agent, limit=7, cursor=cursor)
        return [*found.links, *found.pages], found.cursor

    return to_the_end(ask)


def past_of(opened: Opened, agent: Caller, path: str) -> Any:
    """All versions of a page but for the names that git gave them, their texts and what changed between them."""
    found: list[Any] = []

    def ask(cursor: str | None) -> tuple[list[Any], str | None]:
        answered = versions.history(opened.memory, agent, path, limit=1, cursor=cursor)
        found.extend(answered.versions)
        return [replace(each, rev=None) for each in answered.versions], answered.cursor

    told = to_the_end(ask)
    revs = [each.rev for each in found if each.rev]
    texts = [versions.version(opened.memory, agent, path, rev).data for rev in revs]
    changes = [versions.changes(opened.memory, agent, path, rev) for rev in revs]
    return told, texts, changes


def described(opened: Opened, agent: Caller) -> Any:
    """The description, but for what names the vault."""
    return asdict(replace(describe.describe(opened.memory, agent), context=""))


def names(count: int) -> list[str]:
    """What pages may be called: paths, file names, aliases, in any case."""
    forms = ("n{}", "N{}", "a/n{}", "a/b/n{}", "b/n{}", "z/n{}", "alias{}", "gone{}", "n{}.md")
    return [form.format(number) for form in forms for number in range(count)] + ["zyxalias", "a", "zzz"]


def test_every_list_is_the_same(twins: tuple[Opened, Opened]) -> None:
    """Pages, order, scores, snippets, totals, and where each page of a list ends."""
    plain, full = twins
    agent = plain.agent()
    for query in (
        *WORDS,
        "heat pump",
        "boiler or plan",
        "-budget",
        "gard*",
        "alias3",
        '"heat pump"',
        "path:a",
        "n3",
    ):
        assert searched(plain, agent, query) == searched(full, agent, query), query
    for folder in ("", "a", "a/b", "z", "0"):
        assert listed(plain, agent, read.list_pages, folder=folder) == listed(
            full, agent, read.list_pages, folder=folder
        )
    assert listed(plain, agent, read.recent) == listed(full, agent, read.recent)
    for act in (read.unresolved, read.orphans):
        assert loose(plain, agent, act) == loose(full, agent, act)


def test_every_name_means_the_same(twins: tuple[Opened, Opened]) -> None:
    """Read, links, versions and suggestions, with what errors say of names of no page or of several."""
    plain, full = twins
    agent = plain.agent()

    def told(opened: Opened, name: str) -> list[Any]:
        memory = opened.memory
        return [
            answer(lambda: read.read_page(memory, agent, name).data),
            answer(lambda: read.links(memory, agent, name, depth=2)),
            answer(lambda: past_of(opened, agent, name)),
        ]

    for name in names(COUNT):
        assert told(plain, name) == told(full, name), name
    for typed in ("", "n", "N1", "a/", "a/b/n", "z", "al", "alias1", "zyx", *WORDS, "gone", "he"):
        for limit in (1, 5, 100):
            assert read.suggest(plain.memory, agent, typed, limit=limit) == read.suggest(
                full.memory, agent, typed, limit=limit
            )


def test_the_context_is_described_the_same(twins: tuple[Opened, Opened]) -> None:
    """Counts are those of visible pages; no partition, no principal more."""
    plain, full = twins
    agent = plain.agent()
    assert described(plain, agent) == described(full, agent)
    assert described(full, agent)["pages"] == COUNT


def test_the_second_vault_is_full_of_what_is_hidden(twins: tuple[Opened, Opened]) -> None:
    """Else the tests above would show nothing."""
    plain, full = twins
    assert read.list_pages(plain.memory, plain.person).total == COUNT
    assert read.list_pages(full.memory, full.person).total > 2 * COUNT
    person = [read.search(each.memory, each.person, "heat").results[0].score for each in twins]
    assert person[0] != person[1]
