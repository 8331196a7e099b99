"""What changed since a reader last looked, as far as they may know, and being told that looking is worth it.

Level-triggered: a wake says that something may have changed, `since` says what, for the caller as they are now.
Replaying what it gives from any cursor ends with the pages that the caller may see (path and version).
"""

from collections.abc import Callable
from dataclasses import dataclass

from pcpd.index import events
from pcpd.index.events import Kind
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.positions import Positions
from pcpd.sqlite import Transaction


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a page. `id` is the cursor after it; `version` None where the page is gone or was not read.

    `at` is when the index noticed, `category` the page's, the last one known where it is gone.
    """

    id: str
    kind: Kind
    path: str
    version: str | None
    at: str
    category: str


@dataclass(frozen=True, slots=True)
class News:
    """Changes in their order, and the cursor after the last one.

    `is_reset`: what happened since the cursor that was asked for cannot be told (it is too old, of another index,
    another reader, other grants, or none): whoever follows lists the pages again and goes on from this cursor.
    """

    events: tuple[Event, ...]
    cursor: str
    is_reset: bool


def listen(memory: Memory, wake: Callable[[], None]) -> Callable[[], None]:
    """Has `wake` called when `since` may give something new or grants changed; gives what ends that.

    It is called on the thread that made the change, mostly the keeper: it returns at once and hops elsewhere.
    """
    return memory.listeners.add(wake)


def since(memory: Memory, caller: Caller, cursor: str | None, *, limit: int = 100) -> News:
    """Gives up to `limit` changes after a cursor; fewer mean that there are no more now. None: from now on.

    A page that the caller may see before and after is changed, after alone created, before alone removed. Of one
    that they may not see today, nothing is told but its removal.
    """
    visible = memory.visible_to(caller)
    with memory.index.reader() as conn:
        positions = Positions.of(memory.events_key, events.epoch(conn), caller.principal, visible)
        last = events.last(conn, visible)
        seq = last if cursor is None else positions.read(cursor)
        if seq is None or not events.floor(conn, visible) <= seq <= last:
            return News((), positions.write(last), True)
        changes, seq = events.following(conn, visible, seq, limit)
    told = tuple(
        Event(positions.write(each.seq), each.kind, each.path, each.version, each.at, each.category)
        for each in changes
    )
    return News(told, positions.write(seq), False)


def begin(memory: Memory) -> None:
    """Has changes kept from now on, where they are not yet: after the first scan of an empty index."""
    with memory.index.reader() as conn:
        if events.epoch(conn):
            return

    def job() -> None:
        with memory.transaction() as tx:
            begin_in(memory, tx)

    memory.keeper.run(Urgency.SCAN, job).result()


def begin_in(memory: Memory, tx: Transaction) -> None:
    """Has changes kept in the index that is being written."""
    events.begin(tx, int.from_bytes(memory.ledger.entropy(4)) or 1)
