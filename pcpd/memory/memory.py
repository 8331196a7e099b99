"""Memory holds the media of one vault and what the acts share: clock, context, notices, work under way."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zlib import crc32

from pcpd.access.access_file import AccessFile
from pcpd.errors import PcpError, Unavailable
from pcpd.history.repository import Repository
from pcpd.index import pages
from pcpd.index.store import Index
from pcpd.ledger import keys
from pcpd.ledger.ledger import Ledger
from pcpd.memory.audit import Trail
from pcpd.memory.brakes import Brakes
from pcpd.memory.facts import facts_under
from pcpd.memory.health import Health, Knocks, Losses, Work
from pcpd.memory.identity import read_context
from pcpd.memory.keeper import Keeper
from pcpd.memory.listeners import Listeners
from pcpd.memory.quotas import Quotas
from pcpd.policy.context import Context
from pcpd.policy.decide import Decision, Facts, Principal, Visibility, decide, visibility, without_removed
from pcpd.policy.grants import Access
from pcpd.sqlite import Transaction
from pcpd.vault.files import Files
from pcpd.vault.ignore import Ignore

ATTACHMENT_LIMIT = 10 * 1024 * 1024
INDEX_DAMAGED = "index.corrupt"
EDIT_TURNS = 64
"""Pages share a turn by chance, one pair in so many."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time comes from. `now` is aware UTC, `now_ns` the same wall clock in ns, `monotonic` in seconds."""

    now: Callable[[], datetime]
    now_ns: Callable[[], int]
    monotonic: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, by which door, and under which idempotency key, if any."""

    principal: Principal
    channel: str
    client: str = ""
    session: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one vault on this device: its root, state and configuration; `states` holds all states."""

    root: Path
    state: Path
    config: Path
    states: Path


@dataclass(frozen=True, slots=True)
class Media:
    """The stores of one vault, opened."""

    files: Files
    index: Index
    history: Repository | None
    ledger: Ledger
    access: AccessFile


class Memory:
    """One vault's media and the keeper, which alone may change them. Acts take it as their first argument."""

    def __init__(
        self,
        place: Place,
        media: Media,
        context: Context,
        clock: Clock,
        *,
        attachment_limit: int = ATTACHMENT_LIMIT,
    ) -> None:
        self.attachment_limit = attachment_limit
        self.place = place
        self.files = media.files
        self.index = media.index
        self.history = media.history
        self.ledger = media.ledger
        self.access = media.access
        self.clock = clock
        self.context = context
        self.ignore = Ignore.load(place.root)
        self.keeper = Keeper()
        self.trail = Trail(media.ledger)
        self.brakes = Brakes(media.ledger)
        self.quotas = Quotas()
        self.health = Health()
        self.losses = Losses()
        self.listeners = Listeners()
        self.events_key = keys.get_or_create(media.ledger, "events")
        self.knocks = Knocks()
        self._turns_to_edit = tuple(threading.Lock() for _ in range(EDIT_TURNS))
        self.mounts: frozenset[str] = frozenset()
        # Counts index transactions that changed something, so that checks see a moving target.
        self.applied = 0
        self.versions_waiting = threading.Event()
        self.on_rules_changed: Callable[[], None] = lambda: None
        self.reopen_history: Callable[[], None] = lambda: None
        self.watch_trouble: Callable[[], str] = lambda: ""
        self.on_damage: Callable[[], None] = lambda: None
        self.on_policy: Callable[[Access], None] = lambda _access: None
        self._policy_seen: Access | None = None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Gives a transaction of the index that commits at its end; what a scan held open is committed first."""
        self.index.release()
        with self.index.transaction() as tx:
            yield tx

    def turn_to_edit(self, page: object) -> threading.Lock:
        """Gives what the edits of one page that name no version wait in, so that none waits for another page's."""
        return self._turns_to_edit[crc32(str(page).casefold().encode("utf-8", "replace")) % EDIT_TURNS]

    def close(self) -> None:
        """Closes the media; the threads that use them have ended."""
        self.index.close()
        if self.history is not None:
            self.history.close()
        self.ledger.close()

    def require_history(self) -> Repository:
        """Gives the history, or raises `Unavailable` (`history.none`) where none is kept."""
        if self.history is None:
            raise Unavailable(
                "history.none",
                f"no history is kept for {self.place.root}: {self.health.notices.get('history', 'git is missing')}",
                hint="`pcpd status` tells why",
            )
        return self.history

    def reload_context(self, tx: Transaction) -> None:
        """Reads context.yaml again, and remakes what it decides of every page. Keeper only.

        In the transaction that notes the file's new version, so that no kill parts the two; also when this context
        is in force already, as after a start. A bad one changes nothing and is told in `status`.
        """
        try:
            context = read_context(self.place.root)
            self.files.require_root()  # what was read may be the context of another vault, put in this one's place
        except PcpError as error:
            self.health.notice("context", f"{error.message}; the last good one stays in force")
            return
        self.health.notice("context", None)
        self.context = context
        pages.reclass(tx, lambda declared: facts_under(context, declared))

    def reload_rules(self) -> None:
        """Reads the ignore files again and asks for a scan under the new rules."""
        self.ignore = Ignore.load(self.place.root)
        self.on_rules_changed()

    def take_up_root(self) -> None:
        """Goes on with the folder that is at the root's path now, and with its history. Keeper only."""
        self.files.adopt_root()
        self.ignore = Ignore.load(self.place.root)
        self.mounts = frozenset()
        self.reopen_history()

    def show_work(self, what: str, done: int, total: int) -> None:
        """Says how far long work is; a total of 0 ends it."""
        self.health.work = Work(what, done, total) if total else None

    def grants(self) -> Access:
        """Gives the grants in force now: those of access.yaml, without those of removed principals."""
        access = self.access.current(self.clock.now())
        if access is not self._policy_seen or self.access.edits:
            self._policy_seen = access
            self.on_policy(access)
        return without_removed(access, self.context)

    def may(self, caller: Caller, right: str, facts: Facts) -> Decision:
        """Decides whether the caller has a right on a page with these facts now."""
        return decide(self._grants_of(caller), caller.principal, right, facts, self.clock.now())

    def visible_to(self, caller: Caller) -> Visibility:
        """Gives what the caller may read now."""
        return visibility(self._grants_of(caller), caller.principal, self.clock.now())

    def _grants_of(self, caller: Caller) -> Access:
        """Gives the grants that hold for a caller: none while it is paused, also in the middle of an act."""
        is_person = caller.principal.is_controller
        if not is_person and self.brakes.since(caller.principal.name) is not None:
            return Access()
        return self.grants()
