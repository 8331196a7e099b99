"""The account of each act of an agent: one audit row, written before the answer leaves, also when it failed.

No content: rows name pages by opaque numbers, and what was asked for not at all. Source: pages.md §6.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from pcpd.errors import Denied, PcpError, as_told
from pcpd.ledger import audit, begun
from pcpd.ledger.audit import AuditRow
from pcpd.memory.memory import Caller, Memory
from pcpd.pages.times import to_z
from pcpd.policy.decide import Facts, Principal

log = logging.getLogger("pcpd")

_ACCOUNTED = "the audit trail has it"
_ROWS: ContextVar[list[bool] | None] = ContextVar("rows", default=None)
MANAGEMENT = "management"
ABOUT = "/"
"""What begins the name of whom a decision is about, where rows name pages: no page's path begins so."""
REVIEWS = frozenset({"approve", "reject", "expire"})
"""The acts that decide about proposals."""
LOST = "owner.lost"
"""The outcome of a change that began under an owner that died before it was accounted for."""


@dataclass
class Note:
    """What goes into an act's audit row: its name, how it ended, the pages that it touched, and counts.

    `categories` are those of the pages whose text or name the answer gives, or which the act changed. `id` is empty
    but for a change that has begun; `bytes` is how many it wrote.
    """

    action: str
    outcome: str = "ok"
    paths: tuple[str, ...] = ()
    categories: frozenset[str] = frozenset()
    counts: dict[str, int] = field(default_factory=dict)
    id: str = ""
    bytes: int = 0

    def about(self, *names: str) -> None:
        """Notes whom or what the person decided about: principals, tokens."""
        self.paths = tuple(dict.fromkeys((*self.paths, *(f"{ABOUT}{name}" for name in names if name))))

    def touched(self, facts: Facts) -> None:
        """Notes one more page that the act is about, and its category."""
        self.paths = tuple(dict.fromkeys((*self.paths, facts.path)))
        self.categories |= {facts.category}

    def refused(self, path: str) -> None:
        """Notes that the act was refused because of a page that is there, though the caller is not told so.

        The trail is for the person alone. What is not there is not named: agents could fill the trail with names.
        """
        self.paths, self.categories = (path,), frozenset()


@contextmanager
def audited(memory: Memory, caller: Caller, action: str) -> Iterator[Note]:
    """Writes one audit row for what runs inside, whether it succeeds or is refused.

    The person's own reads and writes are not written down, their `REVIEWS` are; and all that an agent asks for.
    """
    note = Note(action)
    start = memory.clock.monotonic()
    try:
        yield note
    except Exception as error:
        note.outcome = "denied" if isinstance(error, Denied) else as_told(error).code
        raise
    finally:
        if not caller.principal.is_controller or action in REVIEWS:
            _write(memory, caller, note, start)


@contextmanager
def managed(memory: Memory, action: str, *about: str) -> Iterator[Note]:
    """Writes one audit row for what the person decides about agents, whether it succeeds or is refused.

    The row is the controller's, by the channel `management`; `about` names principals and tokens.
    """
    note = Note(action)
    note.about(*about)
    start = memory.clock.monotonic()
    try:
        yield note
    except Exception as error:
        note.outcome = as_told(error).code
        raise
    finally:
        _write(memory, _manager(memory), note, start)


def note_managed(memory: Memory, note: Note) -> None:
    """Writes the audit row of a decision that was made outside pcpd, such as an edit of access.yaml."""
    _write(memory, _manager(memory), note, memory.clock.monotonic())


def _manager(memory: Memory) -> Caller:
    return Caller(Principal(memory.context.controller, is_controller=True), MANAGEMENT)


@contextmanager
def one_call() -> Iterator[None]:
    """Runs one call on one thread. Marks an error that leaves the body if an act in it has written its audit row.

    So the door that catches the error can tell (`is_accounted`), and writes no second row.
    """
    rows: list[bool] = []
    before = _ROWS.set(rows)
    try:
        yield
    except Exception as error:
        if rows:
            error.add_note(_ACCOUNTED)
        raise
    finally:
        _ROWS.reset(before)


def is_accounted(error: BaseException) -> bool:
    """Tells whether the call that raised this error within `one_call` has its audit row, or tried to write it."""
    return _ACCOUNTED in getattr(error, "__notes__", ())


def begin_change(memory: Memory, caller: Caller, note: Note) -> None:
    """Notes that a change begins, before a file is touched: an agent's change that cannot be written down is refused.

    Raises `Broken`. If the owner ends before the act has its row, the next one writes it (`owner.lost`).
    """
    if caller.principal.is_controller:
        return
    note.id = f"act_{memory.ledger.entropy(8).hex()}"
    row = _row(memory, caller, note, memory.clock.monotonic())
    begun.add(memory.ledger, replace(row, outcome=LOST))


def account_for_lost(memory: Memory) -> None:
    """Writes the rows of changes that had begun when an owner died: whether they were done, history tells.

    A ledger that cannot be written now keeps them for the next start.
    """
    try:
        for row in begun.left(memory.ledger):
            memory.trail.write(row)
    except PcpError as error:
        log.error("%s: changes of an earlier owner could not be accounted for: %s", error.code, error.message)


def note_refusal(memory: Memory, caller: Caller, action: str, error: PcpError) -> None:
    """Writes the audit row of a call that was refused before any act began."""
    note = Note(action, "denied" if isinstance(error, Denied) else error.code)
    _write(memory, caller, note, memory.clock.monotonic())


def _write(memory: Memory, caller: Caller, note: Note, start: float) -> None:
    rows = _ROWS.get()
    if rows is not None:
        rows.append(True)
    memory.trail.write(_row(memory, caller, note, start))


def _row(memory: Memory, caller: Caller, note: Note, start: float) -> AuditRow:
    return AuditRow(
        at=to_z(memory.clock.now()),
        principal=caller.principal.name,
        action=note.action,
        channel=caller.channel,
        outcome=note.outcome,
        categories=tuple(sorted(note.categories)),
        object_ids=tuple(audit.object_numbers(memory.ledger, note.paths)) if note.paths else (),
        counts={**note.counts, **({"bytes": note.bytes} if note.bytes else {})},
        id=note.id,
        duration_ms=round((memory.clock.monotonic() - start) * 1000, 3),
    )
