"""What each route answers when all is well, and which refusals are its own, for the API's description."""

from collections.abc import Mapping
from dataclasses import dataclass

from pcpd.api import shapes
from pcpd.index.links import LinksAnswer
from pcpd.index.listing import PageList
from pcpd.index.search import Results
from pcpd.memory.consent import Preview
from pcpd.memory.describe import Description
from pcpd.memory.read import LooseEnds
from pcpd.memory.review import Decided, Queue, Shown
from pcpd.memory.standing import AccessNow
from pcpd.memory.trail import AuditList, Summary
from pcpd.memory.undo import Undone
from pcpd.memory.versions import PageVersions

JSON = "application/json"
TEXT = "text/markdown"
_CONFLICTS = (404, 409, 412, 422)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its status, what it is, its bodies by media type (None: text or bytes), and the headers it has."""

    status: int
    about: str
    bodies: Mapping[str, tuple[type, ...] | None]
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers of a route, and the statuses with which it may refuse besides those of every route."""

    answers: tuple[Answer, ...]
    refusals: tuple[int, ...] = ()


def _gives(*kinds: type, refusals: tuple[int, ...] = ()) -> Outcome:
    return Outcome((Answer(200, "As asked.", {JSON: kinds}),), refusals)


def _writes(about: str, *, makes: bool = False, refusals: tuple[int, ...] = _CONFLICTS) -> Outcome:
    done = Answer(200, about, {JSON: (shapes.WrittenPage,)}, ("ETag",))
    made = Answer(201, "The page was made.", {JSON: (shapes.WrittenPage,)}, ("ETag", "Location"))
    waits = Answer(
        202, "It waits for the person's review; nothing has changed.", {JSON: (shapes.WrittenPage,)}
    )
    return Outcome((done, made, waits) if makes else (done, waits), refusals)


_SHOWN = ("ETag", "Vary", "Content-Location", "Pcp-Origin")
_BYTES = "application/octet-stream"

OUTCOMES: Mapping[str, Outcome] = {
    "read_page": Outcome(
        (
            Answer(
                200,
                "The page, as text or as JSON.",
                {TEXT: None, JSON: (shapes.PageView,)},
                (*_SHOWN, "Pcp-Review"),
            ),
            Answer(304, "The client has it already.", {}, _SHOWN),
        ),
        (404, 422),
    ),
    "write_page": _writes("The page was replaced.", makes=True),
    "edit_page": _writes("The page was changed."),
    "remove_page": _writes("The page is gone."),
    "move_page": _writes("The page has its new path."),
    "restore": _writes("The page has its earlier text again.", makes=True, refusals=(404, 409, 422)),
    "list_pages": _gives(PageList, refusals=(422,)),
    "recent": _gives(PageList, refusals=(422,)),
    "search": _gives(Results, refusals=(422,)),
    "links": _gives(LinksAnswer, refusals=(404,)),
    "loose_ends": _gives(LooseEnds, refusals=(422,)),
    "log_of_vault": _gives(shapes.Versions, refusals=(404,)),
    "history": _gives(PageVersions, shapes.Versions, refusals=(404, 422)),
    "show": Outcome((Answer(200, "The page's bytes then.", {_BYTES: None}),), (404, 422)),
    "diff": Outcome((Answer(200, "Changes as `git diff` prints them.", {"text/x-diff": None}),), (404, 422)),
    "take_back_act": _gives(Undone, refusals=(404, 409, 422)),
    "events": Outcome(
        (Answer(200, "Server-sent events, each with an `Event` as data.", {"text/event-stream": None}),)
    ),
    "proposals": _gives(Queue, refusals=(422,)),
    "proposal": _gives(Shown, refusals=(404,)),
    "decide": _gives(Decided, refusals=(404, 409, 422)),
    "decide_many": _gives(shapes.AllDecided, refusals=(422,)),
    "audit": _gives(AuditList, refusals=(422,)),
    "summary": _gives(Summary, refusals=(422,)),
    "proof": _gives(shapes.TrailProof),
    "prune": _gives(shapes.Pruned, refusals=(409, 422)),
    "access": _gives(AccessNow),
    "pause": _gives(shapes.Paused, refusals=(404, 422)),
    "resume": _gives(shapes.Resumed, refusals=(404, 409, 422)),
    "tokens": _gives(shapes.Tokens),
    "create_token": _gives(shapes.MadeToken, refusals=(409, 422)),
    "grants": _gives(shapes.Grants),
    "grant": _gives(shapes.Granted, refusals=(409, 422)),
    "preview": _gives(Preview, refusals=(409, 422)),
    "take_back": _gives(shapes.TakenBack, refusals=(409, 422)),
    "principals": _gives(shapes.Principals),
    "revoke": _gives(shapes.Revoked, refusals=(404, 409, 422)),
    "health": _gives(shapes.Health),
    "context": _gives(Description),
    "status": _gives(shapes.Status),
    "work": _gives(shapes.WorkNow),
    "doctor": _gives(shapes.Checked),
    "rebuild": _gives(shapes.Rebuilt),
    "accept": _gives(shapes.Accepted, shapes.AcceptedCopy, refusals=(409,)),
    "handover": _gives(shapes.HandedOver),
    "metrics": Outcome((Answer(200, "Prometheus' text format 0.0.4.", {"text/plain": None}),)),
    "description": Outcome((Answer(200, "This description.", {JSON: None}),)),
}
