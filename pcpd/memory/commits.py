"""Brings versions that came to rest into git: drains the index's notes, on a thread of its own.

Acts of agents are commits of their own, in their order; what editors save is gathered. Objects are built here,
beside everything else; only the move of the ref is the keeper's (architecture.md, *Commits*). A note is taken
back after its commit, so that a kill at any step leaves at most a commit that finds nothing left to do.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pcpd import heap
from pcpd.errors import Broken, PcpError, as_told
from pcpd.history.versions import Busy, Change, Committed, Moved
from pcpd.index import outbox
from pcpd.memory import by_hand, reclassed, reconcile
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import INDEX_DAMAGED, Memory
from pcpd.memory.refused import RefusedFiles
from pcpd.memory.upkeep import MANY, WAL_BYTES
from pcpd.pages.times import parse_time
from pcpd.sqlite import Transaction

MOST_FILES = 30_000
MOST_ACTS = 50
REBUILDS = 5
LONGEST_RETRY_S = 60.0
BEAT_S = 0.25
TIDY_S = 3.0
ASIDE_S = 1.0
TELL_S = 10.0
MAINTAIN_S = 3600.0
TOPIC = "commits"
NS = 1_000_000_000
CONVERSATION = (60 * NS, 600 * NS)


class Committer:
    """The thread that commits. `quiet_s` and `longest_s` are the waits of pages (2 s and 30 s).

    Conversations wait `CONVERSATION`: each of their messages is soon followed by another.
    """

    def __init__(
        self,
        memory: Memory,
        on_failure: Callable[[PcpError], None],
        *,
        quiet_s: float = 2.0,
        longest_s: float = 30.0,
    ) -> None:
        self._memory = memory
        self._on_failure = on_failure
        self._longest_ns = int(longest_s * NS)
        self._waits = {"page": (int(quiet_s * NS), self._longest_ns), "conversation": CONVERSATION}
        self._closing = False
        self._pause_s: float | None = 0.0
        self._retry_s = 0.0
        self._busy_since: float | None = None
        self._untidy = True
        self._applied = memory.applied
        self._aside = True  # versions may wait on the wip ref, from an owner before
        self._unsettled = True
        self._refused = RefusedFiles(memory)
        self._maintained = memory.clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="commits", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self, drain_s: float) -> None:
        """Commits at once what waits, quiet or not, as far as that goes within `drain_s`, and ends."""
        self._closing = True
        self._memory.versions_waiting.set()
        if self._thread.is_alive():
            self._thread.join(drain_s)

    def flush(self) -> None:
        """Commits what waits now, quiet or not, on the calling thread. Raises what git is busy with."""
        self._commit_acts()
        self._mark_landed()
        while self._commit_gathered(dict.fromkeys(self._waits, (0, 0))):
            pass

    def _run(self) -> None:
        while not self._closing:
            self._memory.versions_waiting.wait(self._pause_s)
            self._memory.versions_waiting.clear()
            if not self._closing:
                self._attempt(self._turn)
        self._attempt(self.flush)

    def _next_pause_s(self) -> float | None:
        """How long to sleep after a turn that went well: for ever when nothing waits and all is tidy."""
        if self._aside or self._unsettled:
            return ASIDE_S
        if self._memory.history is not None:
            with self._memory.index.reader() as conn:
                if outbox.is_waiting(conn):
                    return BEAT_S
        return TIDY_S if self._untidy else self._refused.wait_s(self._memory.clock.monotonic())

    def _attempt(self, work: Callable[[], None]) -> None:
        """Runs one turn; what fails is shown, and tried again with growing waits."""
        try:
            work()
        except Busy as busy:
            self._pause_s = self._retry_s = busy.retry_ms / 1000
            self._tell_of_waiting(busy)
        except Exception as error:  # noqa: BLE001 - the edge of the thread, which must live on
            told = as_told(error)
            self._pause_s = self._retry_s = min(LONGEST_RETRY_S, max(1.0, 2 * self._retry_s))
            if told.code in {"owner.closing", "index.closed"}:  # the next start commits what is left
                return
            self._memory.health.notice(TOPIC, f"{told.message}; {told.hint}" if told.hint else told.message)
            self._on_failure(told)
            if told.code == INDEX_DAMAGED:
                self._memory.on_damage()
        else:
            self._retry_s, self._busy_since = 0.0, None
            self._memory.health.notice(TOPIC, None)

    def _tell_of_waiting(self, busy: Busy) -> None:
        """A person at work in their repository is no news; one lock that stays is."""
        now = self._memory.clock.monotonic()
        self._busy_since = now if self._busy_since is None else self._busy_since
        if now - self._busy_since > TELL_S:
            self._memory.health.notice(TOPIC, f"{busy.message}; {busy.hint}")

    def _turn(self) -> None:
        did = self._commit_acts()
        self._mark_landed()
        self._mark_refused()
        while not self._closing and self._commit_gathered(self._waits):
            did = True
        self._look_back()
        if did or self._applied != self._memory.applied:
            self._applied, self._untidy = self._memory.applied, True
        elif self._untidy:
            self._tidy()
        # Saves without end leave no idle moment, and readers pay for a long log.
        if self._memory.index.wal_bytes() > WAL_BYTES:
            self._memory.index.checkpoint()
        self._pause_s = self._next_pause_s()

    def _commit_acts(self) -> bool:
        """Makes one commit of each act that waits."""
        did = False
        while self._memory.history is not None:
            with self._memory.index.reader() as conn:
                owed = outbox.pending(conn, "commit", MOST_ACTS)
            if not owed:
                return did
            for act in owed:
                self._commit_act(act.payload)
                self._on_keeper(partial(outbox.done, ids=[act.id]))
                did = True
        return did

    def _commit_act(self, payload: Any) -> None:
        changes = [Change(each["file"], each["oid"]) for each in payload["changes"]]
        at = parse_time(payload["at"])
        # On another branch than it was made on, its version is kept aside: the branch has files of its own.
        aside = self._memory.require_history().branch() != payload["branch"]
        self._commit(lambda: changes, payload["subject"], payload["principal"], at, aside=aside)

    def _commit_gathered(self, waits: Mapping[str, tuple[int, int]]) -> bool:
        """Makes one commit of what is at rest by the waits (quiet, longest) of each pace; is there more?

        A file that cannot be read goes on waiting, and keeps no other from its commit. Raises what it met.
        """
        memory = self._memory
        if memory.history is None:
            return False
        now_ns = memory.clock.now_ns()
        with memory.index.reader() as conn:
            due = [
                each
                for pace, (quiet_ns, longest_ns) in waits.items()
                for each in outbox.due(conn, now_ns, quiet_ns=quiet_ns, longest_ns=longest_ns, pace=pace)
            ]
        if not due:
            return False
        taken = due[:MOST_FILES]
        files = [each.file for each in taken]
        unread: dict[str, Broken] = {}
        now, subject = memory.clock.now(), _subject(memory, files)
        done = self._commit(lambda: _changes(memory, files, unread), subject, "", now)
        reclassed.tell(memory, done.skipped_unchanged)
        read = [file for file in files if file not in unread]
        by_hand.tell(memory, read, done.skipped_unchanged)

        def settle(tx: Transaction) -> None:
            reclassed.settle(tx, read)
            by_hand.settle(tx, read)
            outbox.clear(tx, [each for each in taken if each.file not in unread])
            self._refused.settle(tx, files, done.refused)

        self._on_keeper(settle)
        if len(taken) > MANY:
            heap.give_back()
        if unread:
            raise next(iter(unread.values()))
        return len(taken) < len(due)

    def _commit(
        self,
        changes: Callable[[], Iterable[Change]],
        subject: str,
        principal: str,
        at: datetime,
        *,
        aside: bool = False,
    ) -> Committed:
        """Builds beside the keeper, publishes on it; a branch that moved meanwhile means building again.

        `changes` is asked anew each time: files are read one by one while the commit is built.
        """
        history = self._memory.require_history()

        def publish() -> Committed:
            self._memory.files.require_root()  # else the repository that is there is another vault's
            return history.publish(prepared)

        for attempt in range(REBUILDS + 1):
            self._memory.files.require_root()
            prepared = history.build(changes(), message=subject, principal=principal, now=at, aside=aside)
            try:
                done = self._memory.keeper.run(Urgency.COMMIT, publish).result()
            except Moved:
                if attempt == REBUILDS:
                    break
            else:
                self._note(done)
                return done
        raise Busy("the branch keeps moving", 1000)

    def _note(self, done: Committed) -> None:
        self._aside = self._aside or done.aside
        self._unsettled = self._unsettled or bool(done.unsettled)
        if done.rev is not None:
            self._memory.health.committed_at = self._memory.clock.now()

    def _mark_refused(self) -> None:
        now_s = self._memory.clock.monotonic()
        if self._refused.wait_s(now_s) == 0.0:
            self._on_keeper(partial(self._refused.mark_again, now_s=now_s))

    def _mark_landed(self) -> None:
        """Versions that waited beside the branch for the end of a merge or rebase go into one normal commit."""
        history = self._memory.history
        files = history.wip_files() if self._aside and history is not None else ()
        long_ago = self._memory.clock.now_ns() - self._longest_ns
        if files:
            self._on_keeper(partial(_mark, files=files, at_ns=long_ago))

    def _look_back(self) -> None:
        """Sees whether something still waits for the person's git: index entries, or the end of an operation."""
        history = self._memory.history
        if history is None:
            self._aside = self._unsettled = False
            return
        self._unsettled = bool(history.settle()) if self._unsettled else False
        self._aside = history.is_aside() if self._aside else False

    def _on_keeper(self, change: Callable[[Transaction], None]) -> None:
        def job() -> None:
            with self._memory.transaction() as tx:
                change(tx)

        self._memory.keeper.run(Urgency.COMMIT, job).result()

    def _tidy(self) -> None:
        """When nothing is left to commit: merges the full text, empties the WAL, packs loose objects."""
        self._untidy = self._memory.keeper.run(Urgency.COMMIT, self._memory.index.optimize).result()
        if not self._untidy:
            self._memory.index.checkpoint()
        now = self._memory.clock.monotonic()
        if self._memory.history is not None and now - self._maintained > MAINTAIN_S:
            self._maintained = now
            self._memory.history.maintain()


def _mark(tx: Transaction, *, files: Sequence[str], at_ns: int) -> None:
    for file in files:
        outbox.mark(tx, file, at_ns)


def _changes(memory: Memory, files: Sequence[str], unread: dict[str, Broken]) -> Iterator[Change]:
    """Reads what is on disk now; notes in `unread` what the system refused to give.

    Ignored files that are there stay as HEAD has them.
    """
    unread.clear()
    for file in files:
        try:
            change = _change_of(memory, file)
        except Broken as error:
            unread[file] = error
            continue
        if change is not None:
            yield change


def _change_of(memory: Memory, file: str) -> Change | None:
    stat = memory.files.stat(file)
    if stat is None:
        return None if file in memory.losses.held else Change(file)
    if not reconcile.is_ours(memory, file) or stat.size > reconcile.versioned_limit(memory, file):
        return None
    try:
        read = memory.files.read(file, max(memory.attachment_limit, reconcile.PAGE_READ_LIMIT))
    except FileNotFoundError:
        return Change(file)
    return Change(file, data=read.data, executable=bool(stat.mode & 0o100))


def _subject(memory: Memory, files: Sequence[str]) -> str:
    if len(files) > 1:
        return f"Save {len(files)} files"
    verb = "Remove" if memory.files.stat(files[0]) is None else "Save"
    return f"{verb} {files[0]}"
