"""The audit trail of the acts: rows are gathered while one transaction runs, and committed before the answer."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from pcpd.errors import Unavailable
from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow
from pcpd.ledger.ledger import Ledger

BATCH = 500


class Trail:
    """Writes audit rows on a thread of its own. A row that comes while a batch is written joins the next one.

    An act waits for its row: what is not written down is not answered (architecture.md, *The road out*).
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._rows: list[tuple[AuditRow, Future[None]]] = []
        self._wake = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def write(self, row: AuditRow) -> None:
        """Returns once the row is committed; raises what the ledger raised."""
        written: Future[None] = Future()
        with self._wake:
            if self._closing:
                raise Unavailable("owner.closing", "the owner is shutting down", hint="try again in a moment")
            self._rows.append((row, written))
            self._wake.notify()
        written.result()

    def close(self) -> None:
        """Writes what waits and ends the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._rows and not self._closing:
                    self._wake.wait()
                batch, self._rows = self._rows[:BATCH], self._rows[BATCH:]
            if not batch:
                return
            self._write(batch)

    def _write(self, batch: Sequence[tuple[AuditRow, "Future[None]"]]) -> None:
        try:
            audit.record(self._ledger, [row for row, _ in batch])
        except BaseException as error:  # noqa: BLE001  (the thread's edge: each waiting act gets the error)
            for _, written in batch:
                written.set_exception(error)
            return
        for _, written in batch:
            written.set_result(None)
