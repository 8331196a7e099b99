"""What a person reads before they let an agent in: in plain words what it would get, and what will be changed."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pcpd.cli.output import counted, plain
from pcpd.client.connecting import Undone
from pcpd.client.plans import Plan
from pcpd.client.programs import OTHER, Program

HIDDEN_TOKEN = "a token of its own, not shown here"  # noqa: S105 - what stands in the place of one

_RIGHTS = {
    "write": "write: make, change, move and remove such pages by itself; each version is kept",
    "review": "review: approve and reject what others propose",
    "forget": "forget: erase such pages for good",
    "record": "record: add to conversations",
}
_KINDS = {
    "semantic": "semantic (what is so)",
    "episodic": "episodic (what happened)",
    "procedural": "procedural (how to do things)",
    "profile": "your profile",
    "conversation": "recorded conversations",
}


def shown(planned: Plan, cautions: Sequence[str]) -> Iterator[str]:
    """Gives the lines: who would get what, what it would not get, and the file with the entry as it will be."""
    wanted, preview = planned.wanted, planned.preview
    yield f"{sentence(wanted.program.title)} would come to the vault {plain(wanted.root)} as {wanted.principal}."
    yield ""
    yield "It could:"
    yield from (f"  - {each}" for each in _allowed(preview))
    if preview["replaces"]:
        yield "Instead of what `pcpd connect` gave before:"
        yield from (f"  - {_in_short(each, wanted.principal)}" for each in preview["replaces"])
    if preview["keeps"]:
        yield "It has besides, and keeps:"
        yield from (f"  - {_in_short(each, wanted.principal)}" for each in preview["keeps"])
        yield f"By all of these it could read {_now(preview)}."
    yield "It could not:"
    yield from (f"  - {each}" for each in _refused(preview))
    yield "What it does is written down: pcpd audit. What it reads, it may send to whoever runs its model."
    yield ""
    yield from _change(planned)
    yield from (f"Note: {_ended(plain(each))}" for each in cautions)
    yield ""


def _allowed(preview: Mapping[str, Any]) -> Iterator[str]:
    grant = preview["grant"]
    rights = grant["rights"]
    if "read" in rights:
        yield f"read {_scope(grant)}" + ("" if preview["keeps"] else f": {_now(preview)}")
    if "propose" in rights and "write" not in rights:
        yield f"propose changes: {_proposing(preview['features'])}"
    yield from (_RIGHTS[right] for right in rights if right in _RIGHTS)
    if grant.get("until"):
        yield f"do so until {grant['until']}"


def _now(preview: Mapping[str, Any]) -> str:
    return f"{counted(preview['pages'], 'page')} now{_examples(preview['titles'])}"


def _proposing(features: Sequence[str]) -> str:
    """Says what a proposal comes to now."""
    if "review" in features:
        return "new pages, changes, moves and removals wait until you approve them: pcpd review"
    return "refused, since nobody reviews here: to change that, add review to features in .pcp/context.yaml"


def _scope(grant: Mapping[str, Any]) -> str:
    kinds = [_KINDS[each] for each in grant["categories"]]
    what = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
    places = ", ".join(grant["partitions"])
    partitions = "the partition" if len(grant["partitions"]) == 1 else "the partitions"
    sensitive = ", also those marked sensitive" if grant["sensitivity"] == "sensitive" else ""
    return f"every page in {partitions} {places}{sensitive}, if {what}"


def _examples(titles: Sequence[str]) -> str:
    names = [f"“{plain(title)[:60]}”" for title in titles]
    return f", such as {', '.join(names)}" if names else ""


def _refused(preview: Mapping[str, Any]) -> Iterator[str]:
    """Says what stays closed after all: to the new grant, and to those that it has besides."""
    grants = [preview["grant"], *preview["keeps"]]
    reading = [each for each in grants if "read" in each["rights"]]
    closed = counted(preview["closed"] - preview["unread"], "page")
    open_to = _places(reading)
    if reading:
        talks = _places(each for each in reading if "conversation" in each["categories"])
        kinds = ["pages of other partitions", *_of_other_kinds(reading), *_sensitive(reading)]
        kinds += _besides("recorded conversations", open_to, talks)
        yield f"read {', '.join(kinds)}: {closed} now"
    else:
        yield f"read anything: {closed} now"
    if preview["unread"]:
        unread = counted(preview["unread"], "page")
        yield f"read {unread} whose front matter cannot be read, counted as sensitive: see `pcpd doctor`"
    writing = _places(each for each in grants if "write" in each["rights"])
    yield from _besides("change anything by itself", open_to, writing)


def _of_other_kinds(reading: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    opened = {kind for each in reading for kind in each["categories"]}
    left = [kind for kind in _KINDS if kind not in {*opened, "conversation"}]
    if left:
        yield f"what is {' or '.join(_KINDS[kind] for kind in left)}"


def _sensitive(reading: Sequence[Mapping[str, Any]]) -> list[str]:
    """Says where pages marked sensitive stay closed: a grant may open those of some kinds alone."""
    wide = [each for each in reading if each["sensitivity"] == "sensitive"]
    pairs, open_pairs = (
        {(place, kind) for each in grants for place in each["partitions"] for kind in each["categories"]}
        for grants in (reading, wide)
    )
    left = {place for place, _ in pairs - open_pairs}
    places = _places(reading)
    what = "other pages marked sensitive" if wide else "pages marked sensitive"
    return _besides(what, places, [each for each in places if each not in left] if wide else [])


def _places(grants: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(place for each in grants for place in each["partitions"]))


def _besides(what: str, places: Sequence[str], opened: Sequence[str]) -> list[str]:
    """Says what is closed: everywhere, or in those places that are not among the opened ones; nothing where all are."""
    left = [place for place in places if place not in opened]
    if left == list(places):
        return [what]
    return [f"{what} in {' or '.join(left)}"] if left else []


def _in_short(grant: Mapping[str, Any], principal: str) -> str:
    who = "" if grant["principal"] == principal else f"{grant['principal']}: "
    until = f", until {grant['until']}" if grant.get("until") else ""
    return f"{who}{', '.join(grant['rights'])}: {_scope(grant)}{until}"


def _change(planned: Plan) -> Iterator[str]:
    """Says what will be put into which file."""
    wanted, program = planned.wanted, planned.wanted.program
    file = plain(wanted.file)
    link = "" if wanted.file == planned.file.target else f" (a link to {plain(planned.file.target)})"
    if planned.file.data is None:
        yield f"A new file, for you alone: {file}{link}"
    else:
        yield f"This file gets an entry, and is kept as it was for `pcpd connect {program.name} --undo`: {file}{link}"
    yield f"  under {program.key}" + (", in the place of the present one:" if planned.is_replaced else ":")
    entry = json.dumps(wanted.entry(HIDDEN_TOKEN), ensure_ascii=False, indent=2)
    yield "\n".join(f"  {each}" for each in f'"{planned.name}": {plain_lines(entry)}'.split("\n"))
    if program is OTHER:
        yield "Copy it from there into your client's configuration."


def plain_lines(text: str) -> str:
    """Gives text of several lines that a terminal shows and does not obey."""
    return "\n".join(map(plain, text.split("\n")))


def _ended(text: str) -> str:
    return sentence(text) + ("" if text.endswith("?") else ".")


def sentence(text: str) -> str:
    """Gives text as it stands at the start of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def taken_back(done: Undone, program: Program, *, is_dry: bool) -> Iterator[str]:
    """Says what was taken back, or would be."""
    what = f"{counted(done.grants, 'grant')}, {counted(done.tokens, 'token')}"
    file, is_was = plain(done.config), "would be" if is_dry else "is"
    yield f"{'Would be taken' if is_dry else 'Taken'} back from {done.principal}: {what}."
    if not done.is_out:
        yield f"There {'is' if is_dry else 'was'} no entry of this vault any more in {file}."
    elif done.is_gone:
        yield f"The file {file}, which pcpd connect made, {is_was} removed."
    else:
        yield f"The entry {is_was} taken out of {file}."
    if not is_dry and (done.is_out or program is OTHER):
        yield f"Next: {program.to_let_go()}."
