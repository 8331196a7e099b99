"""How the vault is: the short `status`, and `doctor`, which names every problem and proves the index."""

import shutil
import tempfile
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from pcpd.errors import PcpError, as_told
from pcpd.index import outbox, proposals
from pcpd.index import tables as page_tables
from pcpd.index.dump import differences
from pcpd.index.store import Index
from pcpd.memory import pausing, reclassed, trail, upkeep
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Memory
from pcpd.pages.page import Problem
from pcpd.pages.times import to_z

PREFIX = "doctor-"
MOST_DIFFERENCES = 1_000
TRIES = 3


def status(memory: Memory) -> dict[str, Any]:
    """Gives counts, how the index stands, what history waits for, and every notice that wants a person."""
    health = memory.health
    with memory.index.reader() as conn:
        counts = page_tables.counts(conn)
        waiting = len(outbox.waiting(conn))
        left_out = page_tables.left_out(conn)
        proposed = proposals.count(conn, ("open", "invalid"))
    trouble = memory.watch_trouble()
    notices = {**health.notices, **_standing_notices(memory, trouble)}
    return {
        "vault": {
            "root": str(memory.place.root),
            "id": memory.context.id,
            "features": memory.context.features,
        },
        "pages": counts.pages,
        "attachments": counts.attachments,
        "problems": counts.problems,
        "index": {
            "in_step": health.in_step and not trouble,
            "proved_at": to_z(health.proved_at) if health.proved_at else None,
            "bytes": memory.index.size_bytes(),
        },
        "history": _history(memory, waiting),
        "left_out": left_out,
        "lost": len(memory.losses.held),
        "proposals": proposed,
        "notices": [{"topic": topic, "text": text} for topic, text in sorted(notices.items())],
    }


def _standing_notices(memory: Memory, trouble: str) -> dict[str, str]:
    said = {"access": memory.access.notice, "ledger": memory.ledger.notice, "git": reclassed.notice(memory)}
    said["paused"] = pausing.notice(memory)
    said["watcher"] = (
        f"changes are not noticed now: {trouble}; it is mended within a minute" if trouble else None
    )
    return {topic: text for topic, text in said.items() if text}


def _history(memory: Memory, waiting: int) -> dict[str, Any]:
    if memory.history is None:
        return {"kept": False, "waiting": waiting, "why": memory.health.notices.get("history", "")}
    try:
        return {"kept": True, "waiting": waiting, **asdict(memory.history.state())}
    except (OSError, PcpError) as error:
        return {"kept": False, "waiting": waiting, "why": as_told(error).message}


def doctor(memory: Memory, *, deep: bool = False) -> dict[str, Any]:
    """Names each problem of each page, and paths and ids that clash.

    `deep` compares the index with one made anew from the files, and names every difference; it checks the audit
    trail too, whose faults are told as a notice.
    """
    if deep:
        trail.verify(memory)
    with memory.index.reader() as conn:
        problems = [
            {"file": each.file, **_shown(each.problem)}
            for each in islice(page_tables.problems(conn), MOST_DIFFERENCES)
        ]
        clashes = [list(group) for group in page_tables.clashes(conn)]
    found: dict[str, Any] = {"problems": problems, "clashes": clashes, "notices": status(memory)["notices"]}
    if not deep:
        return {"ok": memory.health.in_step, **found}
    found["differences"] = compare(memory)
    upkeep.let_go(memory)
    return {"ok": not found["differences"], **found}


def _shown(problem: Problem) -> dict[str, Any]:
    return {"code": problem.code, "message": problem.message, "line": problem.line}


def compare(memory: Memory) -> list[dict[str, Any]]:
    """Gives the rows in which the index and a rebuild differ; once more when files changed underneath."""
    for _ in range(TRIES):
        applied = memory.applied
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=memory.place.state) as folder:
            fresh = Index.open(Path(folder))
            try:
                upkeep.fill(memory, fresh, "checking")
                memory.keeper.run(Urgency.SCAN, memory.index.release).result()  # what a scan holds counts
                differing = _differences(memory.index, fresh)
            finally:
                fresh.close()
        if memory.applied == applied:
            break
    return differing


def clear(state: Path) -> None:
    """Removes what a check that was killed left in the state folder: it holds the text of all pages."""
    for left in state.glob(f"{PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def _differences(live: Index, fresh: Index) -> list[dict[str, Any]]:
    with live.reader() as here, fresh.reader() as rebuilt:
        return [each._asdict() for each in islice(differences(here, rebuilt), MOST_DIFFERENCES)]
