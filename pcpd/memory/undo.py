"""The act that takes an agent's act back: as a new version, three ways where the page changed since, never a loss.

An act of an agent is a commit of its own, with who acted in a trailer. What is there now is merged with what was there
before the act, over what the act made; what clashes is shown, and then nothing is changed.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pcpd.errors import Conflict, NotFound, Unavailable, Usage
from pcpd.history.versions import Touched, Version
from pcpd.index import outbox
from pcpd.ledger import audit
from pcpd.memory import reconcile
from pcpd.memory.account import managed
from pcpd.memory.carry_out import Doing, Step, Written, carry_out, once
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.versions import controller_only
from pcpd.pages import merge, paths
from pcpd.pages.merge import Clash
from pcpd.pages.times import parse_time, to_z
from pcpd.policy import principals
from pcpd.vault.files import FileBytes
from pcpd.vault.inode import version_of

LOOKED_BACK = 2_000
"""Commits among which the last act is looked for."""
FILE_LIMIT = 10 * 1024 * 1024
SUBJECT = "Undo "
REV = 12
TRIES, TRY_S = 100, 0.05


@dataclass(frozen=True, slots=True)
class Undone:
    """What taking an act back came to, or would come to in a dry run (`is_done` False).

    `outcome` is restored (its text from before the act), merged (with what changed since), removed, moved, unchanged
    (it is as it was before), or clash: then nothing was changed, and `clashes` has what both changed, each as the act
    made it (`base`), as it is now (`ours`) and as it was before (`theirs`). `diff` is what changes, as unified text.
    """

    rev: str
    at: str
    principal: str
    subject: str
    path: str
    outcome: str
    version: str
    is_done: bool
    diff: str
    clashes: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done: nothing where there are no steps."""

    path: str
    outcome: str
    steps: tuple[Step, ...] = ()
    clashes: tuple[Clash, ...] = ()

    @property
    def version(self) -> str:
        """The version that the page gets; empty where it goes or stays."""
        data = self.steps[0].data if self.steps else None
        return version_of(data) if data is not None else ""


def undo(
    memory: Memory, caller: Caller, act: str | None, *, principal: str | None = None, dry_run: bool = False
) -> Undone:
    """Takes one act back: `act` is a version or the id of an audit row; else the last one of `principal`, or of any
    agent, that was not taken back yet. For the person alone.

    Raises `NotFound` (`undo.nothing`, `history.no-version`), `Conflict` (`undo.changed` where the page's place is
    taken or it is gone, `undo.ambiguous`), `Usage` (`undo.not-a-page`), `Unavailable` (`undo.waiting`, `history.none`).
    """
    controller_only(caller)
    memory.require_history()
    _wait_for_commits(memory)
    version = _named(memory, act) if act else _last(memory, principal)
    if dry_run:
        return _undone(memory, version, _planned(memory, version), is_done=False)
    found: list[tuple[_Plan, str]] = []

    def run(doing: Doing) -> Written:
        plan = _planned(memory, version)
        found.append((plan, _diff(memory, plan)))
        meant = Written(plan.path, plan.version, plan.outcome if plan.steps else "unchanged")
        if not plan.steps:
            return meant
        subject = f"{SUBJECT}{version.rev[:REV]}: {version.subject}"
        return carry_out(doing, plan.steps, meant, subject, move=plan.outcome == "moved")

    with managed(memory, "undo", version.principal) as note:
        once(memory, caller, "undo", (version.rev,), run)
        plan, diff = found[0]
        note.paths = (*note.paths, plan.path)
        note.counts = {"changed": int(bool(plan.steps)), "clashes": len(plan.clashes)}
    return _undone(memory, version, plan, is_done=bool(plan.steps), diff=diff)


def _wait_for_commits(memory: Memory) -> None:
    """Returns once every act has its commit: the last act must not be taken for the one before."""
    pause = threading.Event()
    for _ in range(TRIES):
        with memory.index.reader() as conn:
            if not outbox.pending(conn, "commit", 1):
                return
        memory.versions_waiting.set()
        pause.wait(TRY_S)
    raise Unavailable(
        "undo.waiting",
        "acts wait for their commits, so that the last one is not known",
        hint="try again in a moment",
    )


def _last(memory: Memory, principal: str | None) -> Version:
    """Gives the last act of a principal, or of any but the person, that was not taken back."""
    undone: set[str] = set()
    controller = memory.context.controller
    for version in memory.require_history().log(None, limit=LOOKED_BACK):
        if version.principal == controller and version.subject.startswith(SUBJECT):
            undone.add(version.subject[len(SUBJECT) :][:REV])
        if version.rev[:REV] in undone or not version.principal:
            continue
        is_asked = version.principal != controller if principal is None else _is_of(principal, version)
        if is_asked:
            return version
    whom = principal or "an agent"
    raise NotFound(
        "undo.nothing", f"no act of {whom} is there to be taken back", hint="`pcpd log` lists the versions"
    )


def _is_of(principal: str, version: Version) -> bool:
    return principals.covers(principal, version.principal)


def _named(memory: Memory, act: str) -> Version:
    """Gives the version that a rev or an audit row names."""
    history = memory.require_history()
    if act.startswith(("aud_", "act_")):
        return _of_row(memory, act)
    rev = history.resolve(act)
    return next(_found(memory, lambda each: each.rev == rev), None) or _too_old(act)


def _of_row(memory: Memory, id_: str) -> Version:
    row = audit.row(memory.ledger, id_)
    if row is None:
        raise NotFound("undo.nothing", f"no row {id_} is in the audit trail", hint="`pcpd audit` lists them")
    if not row.counts.get("changed"):
        return _too_old(id_)
    files = {f"{path}.md" for path in audit.object_paths(memory.ledger, row.object_ids).values()}
    end = parse_time(row.at)
    start = end - timedelta(milliseconds=row.duration_ms, seconds=1)
    found = list(
        _found(
            memory,
            lambda each: each.principal == row.principal and each.file in files and start <= each.at <= end,
        )
    )
    if len(found) > 1:
        revs = ", ".join(each.rev[:REV] for each in found)
        raise Conflict(
            "undo.ambiguous", f"{id_} may be any of the versions {revs}", hint="name one of these instead"
        )
    return found[0] if found else _too_old(id_)


def _found(memory: Memory, is_it: Callable[[Version], bool]) -> Iterator[Version]:
    return (each for each in memory.require_history().log(None, limit=LOOKED_BACK) if is_it(each))


def _too_old(name: str) -> Version:
    raise NotFound(
        "undo.nothing",
        f"{name} changed no page, as far as the last {LOOKED_BACK:,} versions tell",
        hint="`pcpd log` lists the versions; `pcpd restore` brings older ones back",
    )


def _planned(memory: Memory, version: Version) -> _Plan:
    """Decides what taking a version back comes to now. Raises `Conflict`, `Usage`."""
    touched = memory.require_history().touched(version.rev)
    for each in touched:
        if paths.is_closed(each.file) or not reconcile.is_ours(memory, each.file):
            raise Usage(
                "undo.not-a-page",
                f"the version {version.rev[:REV]} is about a proposal or about files that are no pages",
                hint="`pcpd review` approves and rejects proposals",
            )
    if len(touched) == 1:
        return _one(memory, version.rev, touched[0])
    move = _as_move(touched)
    if move is not None:
        return _back(memory, *move)
    raise Usage(
        "undo.not-a-page",
        f"the version {version.rev[:REV]} touched {len(touched)} files, not one page",
        hint="`pcpd restore PAGE@REV` brings single pages back",
    )


def _one(memory: Memory, rev: str, touched: Touched) -> _Plan:
    file, history = touched.file, memory.require_history()
    before = history.show(file, f"{rev}^") if touched.old else None
    after = history.show(file, rev) if touched.new else None
    now = _now(memory, file)
    path = file.removesuffix(".md")
    if (now.data if now else None) == before:
        return _Plan(path, "unchanged")
    if (now.data if now else None) == after:
        outcome = "removed" if before is None else "restored"
        return _Plan(path, outcome, (Step(file, before, now),))
    if now is None:
        raise _changed(path, "is not there any more: it was moved or removed since")
    if after is None:
        raise _changed(path, "is another page now: a new one was made there since")
    if before is None:
        clash = Clash("", _text(after), _text(now.data), None)
        return _Plan(path, "clash", clashes=(clash,))
    merged = merge.merge(after, now.data, before)
    if merged.data is None:
        return _Plan(path, "clash", clashes=merged.clashes)
    if merged.data == now.data:
        return _Plan(path, "unchanged")
    return _Plan(path, "merged", (Step(file, merged.data, now),))


def _as_move(touched: Sequence[Touched]) -> tuple[str, str] | None:
    """Gives from where to where a version moved a page; None where it did something else."""
    gone = [each for each in touched if each.new is None]
    come = [each for each in touched if each.old is None]
    if len(touched) == 2 and len(gone) == len(come) == 1 and gone[0].old == come[0].new:
        return gone[0].file, come[0].file
    return None


def _back(memory: Memory, source: str, target: str) -> _Plan:
    """Moves a page back with what it says now."""
    now = _now(memory, target)
    path = source.removesuffix(".md")
    if now is None and _now(memory, source) is not None:
        return _Plan(path, "unchanged")
    if now is None:
        raise _changed(target.removesuffix(".md"), "is not there any more: it was moved or removed since")
    if _now(memory, source) is not None:
        raise _changed(path, "is taken: another page was made there since")
    return _Plan(path, "moved", (Step(source, now.data, None), Step(target, None, now)))


def _changed(path: str, what: str) -> Conflict:
    return Conflict(
        "undo.changed",
        f"{path} {what}",
        hint=f"`pcpd log {path}` lists its versions; `pcpd restore` brings one back",
    )


def _now(memory: Memory, file: str) -> FileBytes | None:
    try:
        return memory.files.read(file, FILE_LIMIT)
    except FileNotFoundError:
        return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _diff(memory: Memory, plan: _Plan) -> str:
    """Gives what the plan changes, as unified text."""
    history = memory.require_history()
    if plan.outcome == "moved":
        there, here = plan.steps[1].file, plan.steps[0].file
        return f"rename from {there}\nrename to {here}\n"
    return "".join(
        f"--- a/{step.file}\n+++ b/{step.file}\n"
        + history.compare(
            history.store(step.file, step.base.data if step.base else b""),
            history.store(step.file, step.data or b""),
        )
        for step in plan.steps
    )


def _undone(
    memory: Memory, version: Version, plan: _Plan, *, is_done: bool, diff: str | None = None
) -> Undone:
    return Undone(
        rev=version.rev,
        at=to_z(version.at),
        principal=version.principal,
        subject=version.subject,
        path=plan.path,
        outcome=plan.outcome,
        version=plan.version,
        is_done=is_done,
        diff=_diff(memory, plan) if diff is None else diff,
        clashes=plan.clashes,
    )
