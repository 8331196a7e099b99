"""access.yaml of one vault on this device: loads it, keeps the last good one, edits it, says what is wrong.

It lies in the person's configuration folder, never in the vault: a commit that arrives from elsewhere must
not give a right here. Source: pages.md §4.
"""

import os
import stat
import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pcpd import durable
from pcpd.access.owned import Identity, changed_at_ns, identity, read_owned
from pcpd.errors import Broken, Conflict, Invalid, PcpError
from pcpd.policy import lists
from pcpd.policy.grants import Access, Grant, parse_access, render_grant
from pcpd.policy.strict_yaml import SIZE_LIMIT

NAME = "access.yaml"
LAST_GOOD = "access.last-good.yaml"
SETTLE_NS = 2_000_000_000
NEW_FILE = b"""\
# Who may do what, where; nothing else is allowed. Edit it by hand, or with `pcpd grant` and `pcpd revoke`.
grants:
"""


MOST_EDITS = 100


@dataclass(frozen=True, slots=True)
class HandEdit:
    """An edit of the file that was not made here: grants that came and went, or the code of why it was not taken."""

    added: tuple[Grant, ...] = ()
    removed: tuple[Grant, ...] = ()
    outcome: str = "ok"


class AccessFile:
    """The grants in force. Any thread may use it.

    A file that cannot be taken (bad YAML, written by somebody else, unreadable) never opens access: the last
    good grants stay in force, also over a restart, and `notice` says what is wrong. No file: no grants. `edits` keeps
    what was changed by hand until somebody takes it.
    """

    def __init__(self, folder: Path, *, uid: int | None = None) -> None:
        """Names the vault's configuration folder; `uid` is who may own the file, by default this process."""
        self.path = folder / NAME
        self.notice: str | None = None
        self.edits: deque[HandEdit] = deque(maxlen=MOST_EDITS)
        self._last_good = folder / LAST_GOOD
        self._uid = os.geteuid() if uid is None else uid
        self._lock = threading.Lock()
        self._seen: Identity | None = None
        self._settled = False
        self._data: bytes | None = None
        self._access: Access | None = None

    def current(self, now: datetime) -> Access:
        """Gives the grants in force; looks at the file's times first and reads it again when they changed.

        `now` is the wall clock: a file that changed less than 2 s before is read again the next time, since
        two edits within one tick of the clock leave the same times.
        """
        with self._lock:
            try:
                seen = identity(self.path)
            except Broken as error:
                return self._fall_back(error)
            if seen != self._seen or not self._settled or self._access is None:
                self._load()
                self._seen = seen
                self._settled = changed_at_ns(seen) + SETTLE_NS <= int(now.timestamp() * 1e9)
            return self._access or Access()

    def grant(self, grant: Grant) -> bool:
        """Adds a grant and returns when it is on the disk; False when an equal one stands there already.

        Raises `Invalid` where file or grant are wrong, `Broken` where the file is not to be trusted or cannot
        be written, `Conflict` where somebody else just changed it.
        """
        line = render_grant(grant)
        with self._lock:
            data, access = self._for_edit()
            if grant in access.grants:
                return False
            after = lists.append_item(data if data is not None else NEW_FILE, "grants", line)
            self._replace(data, after, Access((*access.grants, grant)))
            return True

    def revoke(self, principal: str, *, partitions: Collection[str] = ()) -> int:
        """Takes a principal's grants away, or only those partitions of them; gives how many it touched.

        Returns when it is on the disk. Raises as `grant` does; when the file cannot be edited because it is
        wrong, the last good grants, which are what is in force, lose them all the same.
        """
        with self._lock:
            try:
                data, access = self._for_edit()
            except (Invalid, Broken) as error:
                self._revoke_in_force(principal, partitions)
                error.hint = f"{error.hint}. What is in force has lost the grants, the file has not"
                raise
            numbers = _matching(access, principal, partitions)
            if data is None or not numbers:
                return 0
            after: bytes | None = lists.remove_items(data, "grants", numbers)
            narrowed = _narrowed(access, numbers, partitions)
            for grant in narrowed:
                after = after and lists.append_item(after, "grants", render_grant(grant))
            kept = tuple(grant for n, grant in enumerate(access.grants) if n not in numbers)
            self._replace(data, after, Access((*kept, *narrowed)))
            return len(numbers)

    def take_back(self, grant: Grant) -> bool:
        """Takes away the grant that is equal to this one, and no other; tells whether there was one.

        Returns when it is on the disk. Raises as `grant` does.
        """
        with self._lock:
            data, access = self._for_edit()
            if data is None or grant not in access.grants:
                return False
            number = access.grants.index(grant)
            kept = tuple(each for n, each in enumerate(access.grants) if n != number)
            self._replace(data, lists.remove_items(data, "grants", [number]), Access(kept))
            return True

    def check(self) -> None:
        """Raises what an edit would be refused with because the file is wrong or not to be trusted."""
        with self._lock:
            self._for_edit()

    def _load(self) -> None:
        try:
            data = read_owned(self.path, uid=self._uid, limit=SIZE_LIMIT)
            if data is not None and data == self._data and self._access is not None:
                self.notice = None
                return
            access = Access() if data is None else parse_access(data)
        except (Invalid, Broken) as error:
            self._fall_back(error)
            return
        self._take_edited(data, access)

    def _take_edited(self, data: bytes | None, access: Access) -> None:
        """Takes what the file says, and notes how that differs from what was in force."""
        before = self._access if self._access is not None else self._kept()
        added = tuple(each for each in access.grants if each not in before.grants)
        removed = tuple(each for each in before.grants if each not in access.grants)
        if added or removed:
            self.edits.append(HandEdit(added, removed))
        self._take(data, access)

    def _take(self, data: bytes | None, access: Access) -> None:
        self.notice = None
        self._data, self._access = data, access
        try:
            if data is None:
                self._last_good.unlink(missing_ok=True)
            elif read_owned(self._last_good, uid=self._uid, limit=SIZE_LIMIT) != data:
                durable.write(self._last_good, data, mode=0o600)
        except (OSError, Broken) as error:
            self.notice = (
                f"{self._last_good} cannot be kept ({error}); after a restart, a bad edit of {NAME} would "
                "bring back older grants or none"
            )

    def _fall_back(self, error: PcpError) -> Access:
        if self._access is None:
            self._access = self._kept()
        self._data = None
        hint = f" ({error.hint})" if error.hint else ""
        count = len(self._access.grants)
        stay = f"the last good one stays in force, grants: {count}" if count else "no grant is in force"
        notice = f"{error.message}; {stay}{hint}"
        if notice != self.notice:
            self.edits.append(HandEdit(outcome=error.code))
        self.notice = notice
        return self._access

    def _kept(self) -> Access:
        """Gives the grants that were in force before this process began."""
        try:
            data = read_owned(self._last_good, uid=self._uid, limit=SIZE_LIMIT)
            return Access() if data is None else parse_access(data)
        except (Invalid, Broken):
            return Access()

    def _for_edit(self) -> tuple[bytes | None, Access]:
        data = read_owned(self.path, uid=self._uid, limit=SIZE_LIMIT)
        access = Access() if data is None else parse_access(data)
        if data != self._data or self._access is None:
            self._take_edited(data, access)
        return data, access

    def _replace(self, before: bytes | None, after: bytes | None, wanted: Access) -> None:
        if after is None or not _reads_as(after, wanted):
            raise Invalid(
                "access.layout",
                f"{self.path}: the grants are laid out so that one cannot be changed without touching others",
                hint="edit the file by hand, or write each grant on a line of its own",
            )
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if before is None:
                _close_off(self.path.parent)
            elif read_owned(self.path, uid=self._uid, limit=SIZE_LIMIT) != before:
                raise Conflict(
                    "access.changed", f"{self.path} was just changed by somebody else", hint="try again"
                )
            durable.write(self.path, after, mode=0o600)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._seen = None
        self._take(after, wanted)

    def _revoke_in_force(self, principal: str, partitions: Collection[str]) -> None:
        before = self._access if self._access is not None else self._kept()
        numbers = _matching(before, principal, partitions)
        if not numbers:
            return
        kept = [grant for n, grant in enumerate(before.grants) if n not in numbers]
        kept += _narrowed(before, numbers, partitions)
        self._access = Access(tuple(kept))
        lines = "".join(f"  - {render_grant(grant)}\n" for grant in kept)
        try:
            durable.write(self._last_good, NEW_FILE + lines.encode(), mode=0o600)
        except OSError as error:
            raise _unwritable(self._last_good, error) from error


def _matching(access: Access, principal: str, partitions: Collection[str]) -> list[int]:
    return [
        n
        for n, grant in enumerate(access.grants)
        if grant.principal == principal and (not partitions or set(partitions) & set(grant.partitions))
    ]


def _narrowed(access: Access, numbers: Collection[int], partitions: Collection[str]) -> list[Grant]:
    """Gives what is left of the grants `numbers` without `partitions`; nothing when none are named."""
    if not partitions:
        return []
    left = [
        replace(grant, partitions=tuple(name for name in grant.partitions if name not in partitions))
        for n, grant in enumerate(access.grants)
        if n in numbers
    ]
    return [grant for grant in left if grant.partitions]


def _reads_as(data: bytes, wanted: Access) -> bool:
    try:
        return parse_access(data) == wanted
    except Invalid:
        return False


def _unwritable(path: Path, error: OSError) -> Broken:
    return Broken(
        "access.unwritable",
        f"{path} cannot be written: {error.strerror}",
        hint="make its folder writable for the user that runs pcpd",
    )


def _close_off(folder: Path) -> None:
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
