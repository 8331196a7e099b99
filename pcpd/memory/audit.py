"""The audit trail of the acts: who writes a row commits it, with those that came meanwhile, before the answer."""

import threading
from dataclasses import dataclass, field

from pcpd.errors import Unavailable
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow
from pcpd.ledger.ledger import Ledger
from pcpd.memory.listeners import Listeners

BATCH = 500


@dataclass(slots=True)
class _Waiting:
    """A row, and the act that waits for it: until it is written (`is_done`), or it is this act's turn to write."""

    row: AuditRow
    turn: threading.Lock = field(default_factory=threading.Lock)
    is_done: bool = False
    error: BaseException | None = None


class Trail:
    """Writes audit rows on the threads of the acts that they account for: a row alone wakes no other thread.

    One act writes at a time. Rows that come while it writes wait, and the first of them writes them all, in one
    transaction. An act waits for its row: what is not written down is not answered (architecture.md, *The road
    out*). `listeners` are told when rows were added, on the thread of whoever wrote them.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.listeners = Listeners()
        self._ledger = ledger
        self._rows: list[_Waiting] = []
        self._changed = threading.Condition()
        self._is_writing = False
        self._closing = False

    def write(self, row: AuditRow) -> None:
        """Returns once the row is committed; raises what the ledger raised."""
        mine = _Waiting(row)
        with self._changed:
            if self._closing:
                raise Unavailable("owner.closing", "the owner is shutting down", hint="try again in a moment")
            self._rows.append(mine)
            is_alone, self._is_writing = not self._is_writing, True
            if not is_alone:
                mine.turn.acquire()
        if not is_alone:
            mine.turn.acquire()  # until whoever writes lets go of it
        if not mine.is_done:
            self._write()
        if mine.error is not None:
            raise mine.error

    def close(self) -> None:
        """Takes no more rows, and returns when those that wait are written."""
        with self._changed:
            self._closing = True
            self._changed.wait_for(lambda: not self._is_writing)

    def _write(self) -> None:
        """Writes what waits, and leaves what came meanwhile to the first that waits for it."""
        with self._changed:
            batch, self._rows = self._rows[:BATCH], self._rows[BATCH:]
        error = None
        try:
            audit.record(self._ledger, [each.row for each in batch])
        except BaseException as failure:  # noqa: BLE001  (each waiting act raises it)
            error = failure
        for each in batch:
            each.is_done, each.error = True, error
            if each.turn.locked():
                each.turn.release()
        with self._changed:
            if self._rows:
                self._rows[0].turn.release()
            else:
                self._is_writing = False
                self._changed.notify_all()
        self.listeners.tell()
