"""The steward: hears the watcher, scans when events cannot be trusted, and proves the index now and then.

Events are hints, the scan is the proof (product.md, promise 4). The steward's thread sleeps until something
asks for a scan or the heartbeat is due; the watcher's thread brings single files into step at once.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from pcpd.errors import PcpError, Unavailable, as_told
from pcpd.memory import reconcile, upkeep
from pcpd.memory.identity import read_context
from pcpd.memory.keeper import Urgency
from pcpd.memory.lock import VaultLock
from pcpd.memory.memory import INDEX_DAMAGED, Memory
from pcpd.vault.root import RootIdentity
from pcpd.vault.watch import Dirty, Watch

BEAT_S = 20.0
PROOF_S = 600.0
GAP_S = 30.0
MANY_FOLDERS = 50
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
TOPIC = "index"


@dataclass(frozen=True, slots=True)
class Beat:
    """One reading of both clocks, to notice sleep and jumps: wall-clock seconds and monotonic seconds."""

    wall: float
    monotonic: float

    def gap_to(self, later: "Beat") -> float:
        """Seconds by which the wall clock went another way than the monotonic one (sleep, or a set clock)."""
        return abs((later.wall - self.wall) - (later.monotonic - self.monotonic))


class Steward:
    """Owns the watcher and the thread of full scans of one memory."""

    def __init__(
        self,
        memory: Memory,
        on_failure: Callable[[PcpError], None],
        *,
        poll: bool = False,
        poll_s: float = 2.0,
    ) -> None:
        self._memory = memory
        self._on_failure = on_failure
        self._watch = Watch(memory.place.root, memory.ignore, self._dirty, poll=poll, poll_s=poll_s)
        self._wake = threading.Condition()
        self._reasons: list[str] = []
        self._closing = False
        self._retry_s = 0.0
        self._damaged = False
        self._lock = VaultLock()  # of a folder that took the root's place
        self._taking_up = threading.Lock()
        self._last = self._beat()
        self._proved = memory.clock.monotonic()
        self._thread = threading.Thread(target=self._run, name="steward", daemon=True)
        memory.on_rules_changed = self.rules_changed
        memory.watch_trouble = self._watch.trouble
        memory.on_damage = self.index_damaged

    @property
    def mode(self) -> str:
        """`events` or `polling`."""
        return self._watch.mode

    def start(self) -> None:
        """Watches first and scans then, so that nothing changes unseen in between; returns after the scan."""
        self._watch.start()
        self._memory.health.notice("watch", self._watch.notice)
        self.scan(clean=True)
        self._thread.start()

    def close(self) -> None:
        """Ends watcher and thread, and a scan under way at its next slice; the next start scans anyway."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._memory.keeper.refuse(Urgency.SCAN, Urgency.EVENT)
        self._watch.stop()
        if self._thread.is_alive():
            self._thread.join()
        self._lock.release()

    def request_scan(self, reason: str) -> None:
        """Asks for a full scan soon."""
        with self._wake:
            self._reasons.append(reason)
            self._wake.notify()

    def rules_changed(self) -> None:
        """New ignore rules: other folders are watched, and files come and go without having changed."""
        self._watch.use(self._memory.ignore)
        self.request_scan("ignore rules changed")

    def index_damaged(self) -> None:
        """The index cannot be read or written any more: it is made anew from the folder."""
        self._damaged = True
        self.request_scan("the index is damaged")

    def scan(self, *, clean: bool = False) -> None:
        """Scans now, on this thread. A vault that vanished is told in `status` and changes nothing."""
        try:
            with self._taking_up:
                self._take_up_root()
            upkeep.full_scan(self._memory, clean=clean)
            upkeep.compare_with_head(self._memory)
        except Unavailable as error:
            if error.code != "vault.vanished":
                raise
            self._memory.health.in_step = False
            self._memory.health.notice("vault", f"{error.message}. {error.hint}")
            return
        self._memory.health.notice("vault", None)
        self._proved = self._memory.clock.monotonic()

    def _take_up_root(self) -> None:
        """Goes on with a folder that took the root's place, where it holds the same vault: a backup, put back."""
        memory = self._memory
        root = memory.place.root
        if RootIdentity.of(root) == memory.files.identity:
            return
        try:
            is_same_vault = read_context(root).id == memory.context.id
        except PcpError:
            return
        if is_same_vault:
            self._lock.take(root)
            memory.keeper.run(Urgency.SCAN, memory.take_up_root).result()

    def _dirty(self, dirty: Dirty) -> None:
        """Called on the watcher's thread with what may have changed."""
        if dirty.everything or len(dirty.folders) > MANY_FOLDERS:
            self._memory.health.in_step = False
            self.request_scan(dirty.reason or "many changes")
            return
        try:
            reconcile.reconcile(self._memory, dirty.files, Urgency.EVENT, gone=dirty.gone)
            for folder in sorted(dirty.folders):
                upkeep.folder_scan(self._memory, folder)
        except Exception as error:  # noqa: BLE001 - the edge of the watcher's thread, which must live on
            self._failed(as_told(error))
            self.request_scan("a change could not be brought in")

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._closing and (self._retry_s or not self._reasons):
                    self._wake.wait_for(self._is_wanted, self._retry_s or BEAT_S)
                if self._closing:
                    return
                reasons, self._reasons = self._reasons, []
            try:
                self._look_after(reasons)
            except Exception as error:  # noqa: BLE001 - the edge of the steward's thread, which must live on
                self._failed(as_told(error))
                self._retry_s = min(LONGEST_RETRY_S, max(FIRST_RETRY_S, 2 * self._retry_s))
                self.request_scan("a scan failed")

    def _is_wanted(self) -> bool:
        """Tells whether to wake before the time is over: after a failure only to end."""
        return self._closing or bool(self._reasons and not self._retry_s)

    def _failed(self, error: PcpError) -> None:
        """Says what kept the index from following the vault, until a scan has succeeded."""
        if error.code in {"owner.closing", "index.closed"}:
            return
        self._memory.health.in_step = False
        self._damaged = self._damaged or error.code == INDEX_DAMAGED
        if error.code != "vault.vanished":  # the next scan tells that
            self._memory.health.notice(
                TOPIC, f"{error.message}; {error.hint}" if error.hint else error.message
            )
            self._on_failure(error)

    def _look_after(self, reasons: list[str]) -> None:
        beat = self._beat()
        gap = self._last.gap_to(beat)
        self._last = beat
        trouble = self._watch.trouble()
        if trouble:
            self._memory.health.in_step = False
            self._watch.heal()
            reasons.append(f"the watcher was started anew: {trouble}")
        if gap > GAP_S:
            reasons.append(f"the clock went {gap:.0f} s another way than time did")
        if beat.monotonic - self._proved > PROOF_S or self._memory.losses.held:
            reasons.append("proof")
        self._memory.health.notice("watch", self._watch.notice)
        if self._damaged:
            upkeep.rebuild(self._memory)
            self._damaged = False
        if reasons:
            self.scan()
            self._retry_s = 0.0
            self._memory.health.notice(TOPIC, None)

    def _beat(self) -> Beat:
        clock = self._memory.clock
        return Beat(clock.now_ns() / 1e9, clock.monotonic())
