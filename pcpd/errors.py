"""The PcpError tree. Each class stands for one reaction of a caller; doors map classes, people read codes.

PcpError
├── Usage        the request itself is malformed                         exit 2
├── Unavailable  somebody else owns the vault, or nothing answers        exit 3
├── NotFound     there is no such page, version, token                   exit 4
├── Denied       the principal may not                                   exit 5
├── Conflict     what the act was based on has changed                   exit 6
├── Invalid      the content cannot be taken as it is                    exit 1
└── Broken       a store is damaged, or the system refused               exit 1

This module imports nothing. `docs/troubleshooting.md` lists every code; a test holds the two together.
"""

from collections.abc import Mapping

_HERE = __file__.removesuffix("errors.py")


class PcpError(Exception):
    """A failure that a person or an agent can act on.

    `code` is stable and stands in `docs/troubleshooting.md`; `message` says what happened, to what and why;
    `hint` is the next step, or empty; `details` are JSON values for programs (never secrets or page text).
    """

    def __init__(
        self, code: str, message: str, *, hint: str = "", details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details: dict[str, object] = dict(details or {})


class Usage(PcpError):
    """The request itself is malformed."""


class Unavailable(PcpError):
    """Somebody else owns the vault, or nothing answers; trying again later may help."""


class NotFound(PcpError):
    """There is no such page, version, token or vault, as far as the asker may know."""


class Denied(PcpError):
    """The principal may not do that."""


class Conflict(PcpError):
    """What the act was based on has changed meanwhile; nothing was written."""


class Invalid(PcpError):
    """The content cannot be taken as it is; nothing was written."""


class Broken(PcpError):
    """A store is damaged, or the operating system refused; the run stops here."""


def as_told(error: Exception) -> PcpError:
    """Gives an error that nobody foresaw as one that can be told; for the outermost edges of threads and doors."""
    if isinstance(error, PcpError):
        return error
    if isinstance(error, OSError):
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Broken(
            "owner.system", f"the system refused: {what}", hint="look at the disk and its permissions"
        )
    return Broken(
        "owner.fault",
        f"pcpd met a fault of its own: {type(error).__name__} in {_place_of(error)}",
        hint="please report it, with the owner's log",
    )


def as_told_to_agents(error: Exception) -> PcpError:
    """Gives an error as agents may know it: that a store of the person's failed, and not where on the disk it lies."""
    if isinstance(error, OSError):
        return as_told(OSError(error.errno, error.strerror or "no reason given"))
    told = as_told(error)
    room = told.code.partition(".")[0]
    is_of_a_store = isinstance(told, Broken) and room != "vault" and told.code != "owner.fault"
    if not is_of_a_store and told.code not in {"vault.vanished", "vault.owned"}:
        return told  # what cannot be done with a file of the vault names it as it was asked for
    kind = Broken if isinstance(told, Broken) else Unavailable
    return kind(told.code, f"the person's {room} cannot be used now", hint="`pcpd status` tells them why")


def _place_of(error: Exception) -> str:
    """Says where in pcpd an error came up. Its own words are left out: they may quote a page or a secret."""
    place, trace = "an unknown place", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(_HERE):
            place = f"{file.removeprefix(_HERE)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
