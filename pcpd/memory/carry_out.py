"""How an act on files is carried out: once, whole, and so that history gets every version.

Before a file is touched, its new bytes are git objects, a version that no commit has yet is too, and an act with
an idempotency key has noted what it means to do. Then one job of the keeper changes files and index.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from pcpd.errors import Conflict
from pcpd.index import outbox, tables
from pcpd.ledger import idempotency
from pcpd.memory import reconcile
from pcpd.memory.account import Note, audited, begin_change
from pcpd.memory.keeper import Urgency
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.quotas import Use
from pcpd.pages.times import to_z
from pcpd.vault.files import FileBytes
from pcpd.vault.inode import version_of
from pcpd.vault.refusals import stale


@dataclass(frozen=True, slots=True)
class Written:
    """What an act on a page came to. `conflict_copy` names the file that kept a version met underway.

    `broken_links` are the pages, of those that the caller may see, with a link that led to the page before a move
    or a removal and does not any more. `proposal` is the id of what waits for review, where the outcome is `proposed`;
    nothing that the act meant has been done then.
    """

    path: str
    version: str
    outcome: str
    conflict_copy: str | None = None
    broken_links: tuple[str, ...] = ()
    proposal: str = ""


@dataclass(frozen=True, slots=True)
class Doing:
    """One call of an act, under way: who asked, its audit row, and the digest of all that the request said."""

    memory: Memory
    caller: Caller
    note: Note
    request: str


@dataclass(frozen=True, slots=True)
class Step:
    """One file of an act: the bytes that it gets (None: it goes) and what it is based on (None: a new file).

    One that gets the bytes that it has stays untouched, and keeps the act from being done once it is another.
    """

    file: str
    data: bytes | None
    base: FileBytes | None

    @property
    def version(self) -> str:
        """The version that the step is based on; empty for a new file."""
        return self.base.version if self.base else ""

    @property
    def becomes(self) -> str:
        """The version that the file gets; empty when it goes."""
        return version_of(self.data) if self.data is not None else ""

    @property
    def is_kept(self) -> bool:
        """Tells whether the file stays as it is."""
        return self.base is not None and self.data == self.base.data


def once(
    memory: Memory, caller: Caller, action: str, asked: Sequence[object], act: Callable[[Doing], Written]
) -> Written:
    """Runs an act under its idempotency key, with its audit row. `asked` is all that the request said.

    One that was answered is answered again. One whose owner died before the answer is answered if the files are
    what it meant them to be, done if they are as it found them, and refused (`write.unknown`) otherwise. A key
    that came with another request before is refused (`write.key-reused`).
    """
    request = hashlib.sha256(repr((action, *asked)).encode("utf-8", "surrogatepass")).hexdigest()
    with audited(memory, caller, action) as note:
        doing = Doing(memory, caller, note, request)
        before = _answered(doing)
        written = before or act(doing)
        note.paths = tuple(dict.fromkeys((*note.paths, written.path)))
        if before is not None:
            with memory.index.reader() as conn:
                note.categories = tables.categories(conn, note.paths)
        is_change = before is None and written.outcome not in {"unchanged", "proposed"}
        note.counts = {"changed": int(is_change), "broken_links": len(written.broken_links)}
    _settle(doing, {"written": asdict(written)})
    return written


def carry_out(
    doing: Doing, steps: Sequence[Step], meant: Written, subject: str, *, move: bool = False
) -> Written:
    """Changes files and index as `steps` say. `meant` is the answer if all goes well; gives what came of it."""
    memory, caller = doing.memory, doing.caller
    at = to_z(memory.clock.now())
    unseen = _unseen_by_history(memory, steps)
    act = {
        "changes": _stored(memory, steps),
        "principal": caller.principal.name,
        "subject": subject,
        "at": at,
        "branch": memory.history.branch() if memory.history else "",
    }
    use = _use(doing, steps, meant)
    begin_change(memory, caller, doing.note)
    _note_intent(doing, steps, meant)

    def job() -> Written:
        # Before a file is changed: a kill after that must not lose the only note of what it was, and an index that
        # another program has locked refuses the act here.
        names = ", ".join(str(each["file"]) for each in unseen)
        before = {**act, "changes": unseen, "principal": "", "subject": f"Save {names}"}
        with memory.transaction() as tx:
            noted = [outbox.add(tx, "commit", before)] if unseen else []
        try:
            copy = _apply_steps(memory, steps, move=move)
        except BaseException:
            _take_back(memory, noted, [step.file for step in steps])
            raise
        reconcile.apply(memory, [reconcile.look(memory, step.file) for step in steps], is_act=True)
        with memory.transaction() as tx:
            outbox.add(tx, "commit", act)
        memory.versions_waiting.set()
        return replace(meant, conflict_copy=copy)

    try:
        return memory.keeper.run(Urgency.ACT, job).result()
    except BaseException:
        memory.quotas.give_back(caller.principal.name, use)
        raise


def _use(doing: Doing, steps: Sequence[Step], meant: Written) -> Use:
    """Counts an act of an agent against its quota. Raises `Unavailable` (`quota.reached`)."""
    memory, caller = doing.memory, doing.caller
    size = sum(len(step.data) for step in steps if step.data is not None and not step.is_kept)
    is_proposal = meant.outcome == "proposed"
    use = Use(memory.clock.now(), int(not is_proposal), int(is_proposal), size)
    if not caller.principal.is_controller:
        memory.quotas.take(caller.principal.name, use)
        doing.note.bytes = size
    return use


def _take_back(memory: Memory, noted: Sequence[int], files: Sequence[str]) -> None:
    """Forgets the note of an act that changed nothing. It may be on its way to git: what is on disk then follows."""
    if noted:
        with memory.transaction() as tx:
            outbox.done(tx, noted)
            outbox.mark_all(tx, files, memory.clock.now_ns())


def _answered(doing: Doing) -> Written | None:
    """Gives the answer of an act that was asked before under the same key, or None where it is to be done."""
    memory, caller = doing.memory, doing.caller
    said = idempotency.recall(memory.ledger, caller.principal.name, caller.key) if caller.key else None
    if said is None:
        return None
    noted = json.loads(said)
    if noted.get("request", doing.request) != doing.request:
        raise Conflict(
            "write.key-reused",
            "this idempotency key came with another request before",
            hint="give each request a key of its own",
        )
    written = Written(**{**noted["written"], "broken_links": tuple(noted["written"].get("broken_links", ()))})
    if "steps" not in noted or _are(memory, noted["steps"], "becomes"):
        return written
    if _are(memory, noted["steps"], "base"):
        return None
    raise Conflict(
        "write.unknown",
        f"the owner ended during this write of {written.path}, and the page has changed since",
        hint="read the page and decide whether to write again",
    )


def _are(memory: Memory, steps: Sequence[dict[str, str]], side: str) -> bool:
    """Tells whether every file is at the noted version; an empty one means that there is no file."""
    return all(_version_now(memory, step["file"]) == step[side] for step in steps)


def _version_now(memory: Memory, file: str) -> str:
    try:
        return memory.files.read(file, 0).version
    except FileNotFoundError:
        return ""


def _note_intent(doing: Doing, steps: Sequence[Step], meant: Written) -> None:
    noted = [{"file": step.file, "base": step.version, "becomes": step.becomes} for step in steps]
    _settle(doing, {"written": asdict(meant), "steps": noted})


def _settle(doing: Doing, noted: dict[str, object]) -> None:
    """Notes what is known of the act under its key, with the request that it came with."""
    caller = doing.caller
    if caller.key:
        said = json.dumps({"request": doing.request, **noted})
        idempotency.settle(doing.memory.ledger, caller.principal.name, caller.key, said)


def _stored(memory: Memory, steps: Sequence[Step]) -> list[dict[str, str | None]]:
    """Stores what the files become, so that each act's version is kept, however soon the next one comes."""
    history = memory.history
    return [
        {
            "file": step.file,
            "oid": history.store(step.file, step.data) if history and step.data is not None else None,
        }
        for step in steps
        if not step.is_kept
    ]


def _unseen_by_history(memory: Memory, steps: Sequence[Step]) -> list[dict[str, str | None]]:
    """Stores what the files were, where no commit has it yet: an act must not bury a person's last save."""
    history = memory.history
    if history is None:
        return []
    return [
        {"file": step.file, "oid": history.store(step.file, step.base.data)}
        for step in steps
        if step.base is not None and history.differs(step.file, step.base.data)
    ]


def _apply_steps(memory: Memory, steps: Sequence[Step], *, move: bool) -> str | None:
    """Changes the files; gives the conflict copy that kept an editor's save of the same moment, if any.

    What an act does to several files is done only while all are as it found them.
    """
    if len(steps) > 1:
        _require_bases(memory, steps)
    copy = None
    if move:
        target, source, *steps = steps
        memory.files.move(source.file, target.file, base=source.version)
    for step in steps:
        copy = _apply_step(memory, step) or copy
    return copy


def _require_bases(memory: Memory, steps: Sequence[Step]) -> None:
    """Raises `Conflict` (`page.stale`) where a file is another than the one that a step is based on."""
    for step in steps:
        now = _version_now(memory, step.file)
        if step.base is not None and now != step.version:
            raise stale(step.file, now)


def _apply_step(memory: Memory, step: Step) -> str | None:
    if step.is_kept:
        return None
    if step.data is None:
        memory.files.remove(step.file, base=step.version)
        return None
    if step.base is None:
        memory.files.create(step.file, step.data)
        return None
    return memory.files.replace(step.file, step.data, base=step.version).conflict_copy
