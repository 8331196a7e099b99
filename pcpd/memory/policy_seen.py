"""What the person changed in access.yaml with an editor, for the audit trail; and since when each grant is in force."""

import logging
from datetime import UTC, datetime

from pcpd.access.access_file import HandEdit
from pcpd.errors import PcpError
from pcpd.ledger import granted
from pcpd.memory.account import Note, note_managed
from pcpd.memory.memory import Memory
from pcpd.pages.times import to_z
from pcpd.policy.grants import Access, render_grant

ACTION = "edit_access"

log = logging.getLogger("pcpd")


def note_policy(memory: Memory, access: Access) -> None:
    """Writes down each edit that came from outside, and since when the grants in force are there.

    A ledger that cannot be written raises nothing here, since the grants hold all the same: it is logged, and the
    edit waits for the next look.
    """
    edits = memory.access.edits
    try:
        while edits:
            edit = edits.popleft()
            try:
                note_managed(memory, _note(edit))
            except BaseException:
                edits.appendleft(edit)
                raise
        granted.see(memory.ledger, [render_grant(each) for each in access.grants], _changed_at(memory))
    except IndexError:
        return  # another thread took the last one
    except PcpError as error:
        log.error("%s: a change of access.yaml could not be written down: %s", error.code, error.message)


def _note(edit: HandEdit) -> Note:
    note = Note(ACTION, edit.outcome)
    note.about(*sorted({each.principal for each in (*edit.added, *edit.removed)}))
    note.counts = (
        {"granted": len(edit.added), "taken_back": len(edit.removed)} if edit.outcome == "ok" else {}
    )
    return note


def _changed_at(memory: Memory) -> str:
    """Gives when access.yaml last changed: what is new in it cannot be older."""
    now = memory.clock.now()
    try:
        changed = datetime.fromtimestamp(memory.access.path.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return to_z(now)
    return to_z(min(now, changed).replace(microsecond=0))
