"""What waits for review, as the owner tells it: the whole queue, one proposal, and what is decided."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pcpd.cli.invocation import Invocation, page_argument
from pcpd.errors import NotFound, Usage

Item = Mapping[str, Any]

AT_ONCE = 100
"""Proposals in one request."""
CANDIDATES_NAMED = 5
DONE = ("approved", "rejected", "expired")
"""What a decision comes to when it is carried out."""


def waiting(invocation: Invocation, *, state: str = "open") -> list[Item]:
    """Gives all proposals that the person may decide, the oldest first."""
    return list(_pages_of(invocation, state))


def _pages_of(invocation: Invocation, state: str) -> Iterator[Item]:
    cursor: object = None
    while True:
        query = {"limit": AT_ONCE, "cursor": cursor, "state": state}
        answer = invocation.ask("GET", "proposals", query=query).json()
        items = answer["items"]
        yield from items if isinstance(items, list) else ()
        cursor = answer["cursor"]
        if not cursor:
            return


def chosen(items: Iterable[Item], *, by: str = "", under: str = "") -> list[Item]:
    """Gives those by a principal (also as one of several), of pages in a folder or below."""
    folder = under.strip("/")
    return [
        each
        for each in items
        if (not by or by in (each["by"], *each["also_by"]))
        and (not folder or any(place.startswith(f"{folder}/") for place in (each["path"], each["to"] or "")))
    ]


def named(invocation: Invocation, texts: Sequence[str], *, state: str = "open") -> list[str]:
    """Gives the ids that a person means: an id, its beginning where only one has it, or the page's path.

    Raises `NotFound` (`proposal.not-found`), `Usage` (`proposal.ambiguous`).
    """
    root, items = invocation.root(), waiting(invocation, state=state)
    found = [_one(items, text, page_argument(root, text)) for text in texts]
    return list(dict.fromkeys(found))


def _one(items: Sequence[Item], text: str, path: str) -> str:
    ids = [str(each["id"]) for each in items]
    ways = (
        [id_ for id_ in ids if id_ in (text, path)],
        [str(each["id"]) for each in items if each["path"] == path],
        [id_ for id_ in ids if text and id_.startswith(text)],
    )
    candidates = next((way for way in ways if way), [])
    if not candidates:
        raise NotFound(
            "proposal.not-found",
            f"no proposal is called {text!r}",
            hint="`pcpd review` lists those that wait",
        )
    if len(candidates) > 1:
        few = ", ".join(candidates[:CANDIDATES_NAMED])
        raise Usage(
            "proposal.ambiguous",
            f"{text!r} names {len(candidates)} proposals: {few}{', …' if len(candidates) > CANDIDATES_NAMED else ''}",
            hint="give more of the id",
        )
    return candidates[0]


def shown(invocation: Invocation, id_: str) -> Item:
    """Gives one proposal with what was, what is proposed, and the words that differ."""
    from pcpd.client.http import quoted

    return invocation.ask("GET", f"proposals/{quoted(id_)}").json()


def decide(invocation: Invocation, ids: Sequence[str], decision: str, reason: str = "") -> list[Item]:
    """Decides proposals, each for itself; gives what came of each."""
    decided: list[Item] = []
    for start in range(0, len(ids), AT_ONCE):
        body = {"ids": list(ids[start : start + AT_ONCE]), "decision": decision, "reason": reason}
        answer = invocation.ask("POST", "proposals", body=body).json()
        some = answer["decided"]
        decided += some if isinstance(some, list) else []
    return decided


def decide_one(invocation: Invocation, id_: str, body: Mapping[str, object]) -> Item:
    """Decides one, also with the person's own text (`page`), or only while it says what was shown (`if_digest`)."""
    from pcpd.client.http import quoted

    return invocation.ask("POST", f"proposals/{quoted(id_)}", body=body).json()


def is_done(decided: Item) -> bool:
    """Tells whether a decision was carried out."""
    return decided["outcome"] in DONE
