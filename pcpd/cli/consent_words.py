"""What a person reads before they let an agent in: in plain words what it would get, and what will be changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pcpd.cli.output import counted, plain
from pcpd.client.plans import Plan
from pcpd.client.programs import OTHER

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
    title = wanted.program.title
    yield f"{title[0].upper()}{title[1:]} would come to the vault {plain(wanted.root)} as {wanted.principal}."
    yield ""
    yield "It could:"
    yield from (f"  - {each}" for each in _allowed(preview))
    if preview["others"]:
        yield "It has already, and keeps:"
        yield from (f"  - {_in_short(each)}" for each in preview["others"])
    yield "It could not:"
    yield from (f"  - {each}" for each in _refused(preview))
    yield "What it does is written down: pcpd audit. What it reads, it may send to whoever runs its model."
    yield ""
    yield from _change(planned)
    yield from (f"Note: {plain(each)}." for each in cautions)
    yield ""


def _allowed(preview: Mapping[str, Any]) -> Iterator[str]:
    grant = preview["grant"]
    rights = grant["rights"]
    if "read" in rights:
        yield f"read {_scope(grant)}: {counted(preview['pages'], 'page')} now{_examples(preview['titles'])}"
    if "propose" in rights and "write" not in rights:
        yield f"propose changes: {_proposing(preview['features'])}"
    yield from (_RIGHTS[right] for right in rights if right in _RIGHTS)
    if grant.get("until"):
        yield f"do so until {grant['until']}"


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
    grant = preview["grant"]
    closed = ["pages of other partitions"]
    closed += ["pages marked sensitive"] if grant["sensitivity"] == "normal" else []
    closed += ["recorded conversations"] if "conversation" not in grant["categories"] else []
    yield f"read {', '.join(closed)}: {counted(preview['closed'], 'page')} now"
    if "write" not in grant["rights"]:
        yield "change anything by itself"


def _in_short(grant: Mapping[str, Any]) -> str:
    return f"{', '.join(grant['rights'])}: {_scope(grant)}"


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
