"""How proposals are shown to the person who decides: in a table, whole, and as words that went and came.

Who proposes may write anything: whatever comes from a proposal is shown, and steers no terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcpd.cli.output import counted, plain, styled

Item = Mapping[str, Any]

COLUMNS = ("id", "op", "page", "by", "age", "state", "summary")
ID_SHOWN = 12
SUMMARY_SHOWN = 60
CONTEXT = 3
"""Lines that are shown before and after what changed."""
WIDTH_LIMIT = 100_000
"""Characters of one line that are shown; a page may be one line of megabytes."""

_SECONDS = (("d", 86_400), ("h", 3_600), ("min", 60))
_MARKS = {"removed": ("[-", "-]", "red"), "added": ("{+", "+}", "green")}
_OPS = {"new": "a new page", "change": "a change of", "move": "a move of", "remove": "the removal of"}
_STATES = {
    "stale": "The page has changed since; what still fits would be brought together.",
    "conflict": "The page has changed since, in the same places: approve it with `pcpd review edit`, or reject it.",
    "orphan": "Its page is not there any more.",
    "invalid": "The file is no proposal; rejecting it removes the file.",
}


def row(item: Item, now_s: float, *, is_short: bool) -> tuple[str, ...]:
    """Gives a proposal as a row of the table; short for a person's eyes, else with all that a script may want."""
    id_, op = str(item["id"]), str(item["op"])
    place = f"{item['path']} -> {item['to']}" if item["to"] else str(item["path"])
    return (
        id_[:ID_SHOWN] if is_short and op != "new" else id_,
        op,
        "" if is_short and op == "new" else place,
        _by(item),
        age(str(item["at"]), now_s),
        str(item["state"]),
        _short(str(item["summary"])) if is_short else str(item["summary"]),
    )


def age(at: str, now_s: float) -> str:
    """Gives how long ago a time was, in its largest unit; empty where it is no time."""
    from datetime import datetime

    try:
        past_s = max(now_s - datetime.fromisoformat(at).timestamp(), 0)
    except (ValueError, OverflowError):
        return ""
    return next((f"{past_s // size:.0f} {unit}" for unit, size in _SECONDS if past_s >= size), "now")


def head(shown: Item) -> Iterator[str]:
    """Gives what a proposal is, in lines: what, by whom, when, why, and how it stands."""
    item = shown["waiting"]
    place = plain(item["path"]) + (f" to {plain(item['to'])}" if item["to"] else "")
    what = f"{_OPS.get(item['op'], item['op'])}{':' if item['op'] == 'new' else ''} {place}"
    yield styled(what[0].upper() + what[1:], "cyan", is_bold=True)
    yield f"  id       {plain(item['id'])}"
    yield f"  by       {plain(_by(item))}, {plain(item['at'])}"
    if item["summary"]:
        yield f"  says     {plain(item['summary'])}"
    if item["state"] == "rejected":
        why = f": {plain(item['reason'])}" if item["reason"] else ""
        yield f"  rejected by {plain(item['decided_by'])}, {plain(item['decided_at'])}{why}"
    elif item["state"] != "open":
        yield styled(f"  {plain(item['state'])}: {_STATES.get(item['state'], '')}".rstrip(": "), "yellow")
    if item["is_expired"]:
        yield styled("  It has waited for 90 days: `pcpd review expire` takes such away.", "yellow")


def clashes(shown: Item) -> Iterator[str]:
    """Gives where the proposal and the page as it is now contradict each other, as both have it."""
    for clash in shown["clashes"]:
        where = f"the key {plain(clash['key'])}" if clash["key"] else "the text"
        yield styled(f"Both changed {where}:", "yellow")
        yield from _side("was", clash["base"])
        yield from _side("is now", clash["ours"])
        yield from _side("proposed", clash["theirs"])


def difference(spans: Sequence[Item], *, is_coloured: bool, context: int = CONTEXT) -> Iterator[str]:
    """Gives the lines around what differs: in colour, or with `[-what went-]` and `{+what came+}`."""
    lines = list(_lines(spans, is_coloured=is_coloured))
    near = [False] * len(lines)
    for at, (is_changed, _) in enumerate(lines):
        if is_changed:
            for other in range(max(at - context, 0), min(at + context + 1, len(lines))):
                near[other] = True
    left_out = 0
    for is_near, (_, text) in zip(near, lines, strict=True):
        if not is_near:
            left_out += 1
            continue
        if left_out:
            yield _left_out(left_out)
            left_out = 0
        yield text
    if left_out:
        yield _left_out(left_out)


def outcome(decided: Item) -> str:
    """Says what came of a decision."""
    why = f": {plain(decided['why'])}" if decided["why"] else ""
    what = str(decided["outcome"])
    return f"{plain(what[:1].upper() + what[1:])}: {plain(decided['path'] or decided['id'])}{why}"


def _left_out(number: int) -> str:
    return styled(f"… {counted(number, 'line')} as before …", "bright_black")


def _lines(spans: Sequence[Item], *, is_coloured: bool) -> Iterator[tuple[bool, str]]:
    """Gives lines, each with whether something in it changed. A line that went stands before the one that came."""
    parts: list[str] = []
    is_changed = False
    for span in spans:
        pieces = str(span["text"]).split("\n")
        for number, piece in enumerate(pieces):
            is_last = number == len(pieces) - 1
            ends = "" if is_last else "\n"
            if piece or (ends and span["op"] != "same"):
                parts.append(_marked(str(span["op"]), piece, is_coloured=is_coloured))
                is_changed |= span["op"] != "same"
            if not is_last:
                yield is_changed, "".join(parts)
                parts, is_changed = [], False
    if parts:
        yield is_changed, "".join(parts)


def _marked(op: str, text: str, *, is_coloured: bool) -> str:
    cut = f"{text[:WIDTH_LIMIT]}… ({len(text):,} characters)" if len(text) > WIDTH_LIMIT else text
    said = plain(cut)
    if op not in _MARKS:
        return said
    begin, end, colour = _MARKS[op]
    return styled(said, colour) if is_coloured and said.strip() else f"{begin}{said}{end}"


def _side(name: str, text: str | None) -> Iterator[str]:
    if text is None:
        yield f"  {name}: nothing"
        return
    yield f"  {name}:"
    yield from (f"    {plain(each)}" for each in text[:WIDTH_LIMIT].split("\n"))


def _by(item: Item) -> str:
    return str(item["by"]) + (f" and {counted(len(item['also_by']), 'other')}" if item["also_by"] else "")


def _short(text: str) -> str:
    return text if len(text) <= SUMMARY_SHOWN else f"{text[: SUMMARY_SHOWN - 1]}…"
