"""The spelling of principals: `human:<id>`, `agent:<name>[/<version>]`, `service:<name>`, `org:<host>`.

A grant or a token is for exactly one spelling: one for `agent:claude` says nothing about `agent:claude/4`,
since consent was given to what was shown. Taking away goes the other way: see `covers`. Source: pages.md §3.
"""

import re

from pcpd.errors import Invalid

_NAME = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::[0-9]{1,5})?"
_PRINCIPAL = re.compile(
    rf"human:{_NAME}|agent:{_NAME}(?:/{_NAME})?|service:{_NAME}|org:{_HOST}|(?:ai|manager):{_NAME}", re.ASCII
)
SPELLING = "human:<id>, agent:<name>, agent:<name>/<version>, service:<name> or org:<host>"


def problem_of(text: str) -> str | None:
    """Says what is wrong with the spelling of a principal; None when it is right.

    `agent:claude`, `agent:claude/4.5` and `human:sam@example.org` are right; `claude`, `agent:`, `agent:a b`
    and `root:sam` are not. The recorder's `ai:<session id>` and `manager:<token id>` are right too.
    """
    if _PRINCIPAL.fullmatch(text):
        return None
    shown = text if len(text) <= 40 else text[:39] + "…"
    return f"{shown!r} is no principal; write {SPELLING}"


def check_principal(text: str) -> str:
    """Gives `text` back when it is spelled as a principal, else raises `Invalid` (`principal.invalid`)."""
    problem = problem_of(text)
    if problem:
        raise Invalid("principal.invalid", problem, hint="for an agent write for example agent:claude")
    return text


def covers(principal: str, other: str) -> bool:
    """Tells whether removing `principal` removes `other`: itself, or a version of the same agent."""
    return other == principal or (principal.startswith("agent:") and other.startswith(f"{principal}/"))
