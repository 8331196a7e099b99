"""Promise 5: no edit is lost. Every version that came to rest is in git, whatever else writes meanwhile."""

import random
import subprocess
import threading
from collections.abc import Callable
from functools import partial

from pcpd.errors import PcpError
from pcpd.memory import read, write
from pcpd.memory.doctor import status
from pcpd.pages.authorship import Proposed
from pcpd.pages.edits import Edit
from tests.vaults import Opened
from tests.waiting import until

ROUNDS = 30


def in_git(opened: Opened) -> str:
    """All text that any commit added, as git prints it."""
    log = subprocess.run(
        ["git", "-C", str(opened.root), "log", "--all", "-p", "--format=%H"], capture_output=True, check=True
    )
    return log.stdout.decode("utf-8", "replace")


def at_rest(opened: Opened) -> bool:
    """Tells whether nothing waits for a commit."""
    history = status(opened.memory)["history"]
    return bool(history["waiting"] == 0)


def test_each_version_that_came_to_rest_is_in_git(make_opened: Callable[..., Opened]) -> None:
    """A person saves, pauses, saves again: every pause is a version."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    for number in range(6):
        opened.save("note.md", f"version {number}\n")
        until(partial(_is_found, opened, f'"version {number}"'))
        until(lambda: at_rest(opened))
    text = in_git(opened)
    assert all(f"+version {number}\n" in text for number in range(6))


def test_an_editor_and_an_agent_on_one_page_lose_nothing_of_each_other(
    make_opened: Callable[..., Opened], soak: int
) -> None:
    """While an agent appends, a person saves over it: what either of them wrote stands in git or in a copy."""
    opened = make_opened(ahead_s=3600, quiet_s=0).open()
    agent = opened.agent("agent:claude", "read", "write")
    write.write_page(opened.memory, agent, "shared", Proposed("begin\n"))
    agents_words: list[str] = []

    def append() -> None:
        for number in range(ROUNDS * soak):
            try:
                write.edit_page(opened.memory, agent, "shared", [Edit("append", value=f"agent{number}x\n")])
            except PcpError:
                continue  # refused: then nothing was written, and the agent knows
            agents_words.append(f"agent{number}x")

    thread = threading.Thread(target=append)
    thread.start()
    draw = random.Random(1)  # noqa: S311 - a history that can be repeated
    persons_words: list[str] = []
    while thread.is_alive():
        word = f"person{len(persons_words)}x"
        persons_words.append(word)
        text = (opened.root / "shared.md").read_text() if draw.random() < 0.5 else "over\n"
        opened.save("shared.md", f"{text}{word}\n")
        until(partial(_is_kept, opened, word), word)
    thread.join()
    until(lambda: at_rest(opened))
    everything = _kept(opened)
    assert agents_words
    assert [word for word in agents_words if word not in everything] == []
    assert [word for word in persons_words if word not in everything] == []


def _kept(opened: Opened) -> str:
    """All versions in git, and the conflict copies: what stands in the page itself may be gone in a moment."""
    copies = [path.read_text() for path in opened.root.glob("*conflict*.md")]
    return in_git(opened) + "".join(copies)


def _is_kept(opened: Opened, word: str) -> bool:
    return word in _kept(opened)


def _is_found(opened: Opened, words: str) -> bool:
    return bool(read.search(opened.memory, opened.person, words).results)
