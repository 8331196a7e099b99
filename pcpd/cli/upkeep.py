"""Commands about the vault as a whole: status, doctor, rebuild, accept."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from pcpd.cli import output
from pcpd.cli.invocation import Invocation, command
from pcpd.cli.output import counted, line, plain, say, styled
from pcpd.errors import Unavailable


@command("status", short_help="Tell how vault, index, history and owner are")
@click.option("--no-start", is_flag=True, help="Start no owner where none runs: then the status is 3.")
def status_command(invocation: Invocation, *, no_start: bool) -> None:
    """Tell how vault, index, history and owner are

    Answers also while the vault is still being read.
    """
    if no_start:
        _require_owner(invocation)
    answer = invocation.ask("GET", "status", wait_ready=False).json()
    if invocation.is_json:
        output.document(answer)
        return
    output.pairs(_status_rows(answer))
    for notice in _items(answer.get("notices")):
        line(f"{styled('notice:', 'yellow')} {plain(notice.get('topic'))}: {plain(notice.get('text'))}")


def _require_owner(invocation: Invocation) -> None:
    """Raises Unavailable (`owner.none`) where no owner runs."""
    from pcpd.client import owner

    root = invocation.root()
    if owner.find(root, invocation.settings) is None:
        raise Unavailable(
            "owner.none", f"no process owns {root} now", hint="commands start one when they need it"
        )


def _status_rows(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Gives what a person wants to know, one row a subject."""
    vault, owner = _mapping(answer.get("vault")), _mapping(answer.get("owner"))
    yield "vault", f"{vault.get('root', '')} ({vault.get('id', '')})"
    yield "owner", f"process {owner.get('pid')}, version {owner.get('version')}, {owner.get('url')}"
    yield "pages", _page_words(answer)
    index = _mapping(answer.get("index"))
    state = "in step" if index.get("in_step") else "not in step yet"
    by = f", watched by {owner['watch']}" if owner.get("watch") else ""
    yield "index", f"{state}, proved {index.get('proved_at') or 'never'}{by}"
    yield "history", _history_words(_mapping(answer.get("history")))
    if waiting := answer.get("proposals"):
        yield "review", f"{counted(waiting, 'proposal')} waiting for you: see `pcpd review`"
    if answer.get("lost"):
        yield "lost", f"{counted(answer['lost'], 'page')} gone at once, kept back: see `pcpd accept`"
    for file, why in answer.get("left_out") or ():
        yield "left out", f"{file} ({str(why).replace('-', ' ')})"


def _page_words(answer: Mapping[str, Any]) -> str:
    """Says how many pages and other files there are, and how many pages have problems."""
    words = counted(answer.get("pages") or 0, "page")
    if problems := answer.get("problems"):
        words += f", {problems:,} with problems (see `pcpd doctor`)"
    if others := answer.get("attachments"):
        words += f", {counted(others, 'other file')}"
    return words


def _history_words(history: Mapping[str, Any]) -> str:
    """Says whose repository it is, which branch, and what waits to be committed."""
    if not history.get("kept", True):
        return f"none is kept: {history.get('why') or 'see the notices'}"
    words = [f"{history.get('kind', '')} repository".strip(), f"branch {history.get('branch') or 'none'}"]
    if history.get("operation"):
        words.append(f"a {history['operation']} is under way")
    if history.get("detached"):
        words.append("HEAD is detached")
    waiting = history.get("waiting") or 0
    words.append(f"{counted(waiting, 'version')} waiting to be committed" if waiting else "all committed")
    return ", ".join(words)


@command("doctor", short_help="Check the vault and name every problem")
@click.option("--deep", is_flag=True, help="Also make the index anew aside and name every difference.")
def doctor_command(invocation: Invocation, *, deep: bool) -> int:
    """Check the vault and name every problem

    Changes nothing. Exit status 1 when something is wrong with the index; a page with a problem is not.
    """
    answer: dict[str, Any] = invocation.ask("POST", "doctor", body={"deep": deep}).json()
    if invocation.is_json:
        output.document(answer)
        return _verdict(answer)
    for problem in answer["problems"]:
        at = f":{problem['line']}" if problem["line"] else ""
        line(f"{styled(plain(problem['file']) + at, 'green')}  {plain(problem['message'])}")
    for clash in answer["clashes"]:
        line(f"{styled('clash:', 'yellow')} {plain(', '.join(clash))}")
    for notice in answer["notices"]:
        line(f"{styled('notice:', 'yellow')} {plain(notice['topic'])}: {plain(notice['text'])}")
    for difference in answer.get("differences") or ():
        words = " ".join(difference[key] for key in ("what", "table", "name"))
        line(f"{styled('difference:', 'red')} {plain(words)}")
    say(_doctor_words(answer))
    return _verdict(answer)


def _doctor_words(answer: Mapping[str, Any]) -> str:
    """Says in one line what the doctor found."""
    if _verdict(answer):
        if answer.get("differences"):
            return "The index differs from the vault: `pcpd rebuild` makes it anew."
        return "The index is not in step with the vault yet: `pcpd status` says why."
    problems, clashes = answer["problems"], answer["clashes"]
    if not problems and not clashes and not answer["notices"]:
        return "All is well."
    words = []
    if problems:
        files = {each["file"] for each in problems}
        words.append(f"{counted(len(problems), 'problem')} in {counted(len(files), 'file')}")
    if clashes:
        words.append(counted(len(clashes), "clash", "clashes"))
    words.append("the index equals one made anew" if "differences" in answer else "the index is in order")
    said = "; ".join(words)
    return f"{said[0].upper()}{said[1:]}."


def _verdict(answer: Mapping[str, Any]) -> int:
    return 0 if answer.get("ok", True) else 1


@command("rebuild", short_help="Make the index anew beside the old one, and swap")
def rebuild_command(invocation: Invocation) -> None:
    """Make the index anew beside the old one, and swap

    Searches are answered from the old one meanwhile.
    """
    answer = invocation.ask("POST", "rebuild").json()
    if invocation.is_json:
        output.document(answer)
    else:
        pages = answer.get("pages")
        say(
            f"Rebuilt the index of {counted(pages, 'page')}."
            if isinstance(pages, int)
            else "Rebuilt the index."
        )


@command("accept", short_help="Accept that many pages are gone, or that a copy replaces its original")
@click.option(
    "--copy", is_flag=True, help="This vault is a copy that replaces the original, and takes its state."
)
def accept_command(invocation: Invocation, *, copy: bool) -> None:
    """Accept that many pages are gone, or that a copy replaces its original

    When most pages vanish at once, pcpd keeps what it knows of them until this says that it was meant.
    """
    answer: dict[str, Any] = invocation.ask("POST", "accept", body={"copy": copy}).json()
    if invocation.is_json:
        output.document(answer)
    elif copy:
        say("This copy has taken over the state of the original, with its grants and tokens.")
    else:
        number = answer["accepted"]
        say(f"Accepted: {counted(number, 'page')} gone." if number else "There was nothing to accept.")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Mapping[str, Any]]:
    """Gives the objects of a list; plain words become objects too."""
    many = value if isinstance(value, list) else []
    return [
        each if isinstance(each, Mapping) else {"text": each, "message": each, "file": each} for each in many
    ]
