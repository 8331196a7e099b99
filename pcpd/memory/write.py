"""The acts that change pages: write, edit, move, remove, restore.

Each gathers what is there, decides by policy, and has it done by `carry_out`, or proposed by `propose` where the
caller may do no more.
"""

from collections.abc import Sequence
from dataclasses import replace

from pcpd.errors import Conflict, Invalid
from pcpd.memory import by_hand, propose, reconcile
from pcpd.memory.bases import refuse_part, require_base, require_version
from pcpd.memory.carry_out import Doing, Step, Written, carry_out, once
from pcpd.memory.dangling import broken, linked
from pcpd.memory.facts import facts_of
from pcpd.memory.memory import Caller, Memory
from pcpd.memory.named import file_named, is_page, no_page, page_at, present_page
from pcpd.memory.propose import must_propose
from pcpd.memory.versions import controller_only, past_version
from pcpd.pages import authorship, frontmatter, paths
from pcpd.pages.authorship import Authorship, Proposed
from pcpd.pages.edits import Edit, apply_edits, touched_keys
from pcpd.pages.page import parse
from pcpd.pages.paths import PagePath
from pcpd.pages.times import to_z
from pcpd.policy.decide import Facts
from pcpd.vault.files import FileBytes
from pcpd.vault.inode import version_of

PAGE_LIMIT = 10 * 1024 * 1024
ATTEMPTS = 5


def write_page(
    memory: Memory,
    caller: Caller,
    path: str,
    proposed: Proposed,
    *,
    if_version: str | None = None,
    overwrite: bool = False,
) -> Written:
    """Makes a page or replaces its text.

    Replacing needs `if_version` (the version that was read) or `overwrite`. Raises `Conflict` (`page.exists`,
    `page.stale`, with the present version in `details`), `Denied`, `Invalid`.
    """

    def act(doing: Doing) -> Written:
        refuse_part(if_version)
        present = _read_at(memory, page_at(memory, caller, path) or _new_path(memory, caller, path))
        if present is None:
            return _make(doing, path, proposed, if_version)
        page, read = present
        facts = facts_of(memory.context, parse(page, read.data))
        if not memory.may(caller, "read", facts).allowed:
            doing.note.refused(page)
            return _make(doing, path, proposed, if_version, hidden=facts)
        must_propose(doing, facts, there=page)
        if overwrite:
            require_version(caller, page, if_version)
        require_base(page, read.version, if_version, overwrite=overwrite)
        data = _replaced(memory, caller, page, read, proposed)
        return _change(doing, page, read, data)

    return once(memory, caller, "write_page", (path, proposed, if_version, overwrite), act)


def edit_page(
    memory: Memory, caller: Caller, path: str, edits: Sequence[Edit], *, if_version: str | None = None
) -> Written:
    """Applies edits to one page; bytes that no edit concerns stay. Raises like `write_page`, and `NotFound`.

    Without `if_version` the edits are meant for whatever the page is: those of one page wait for one another, and
    when an editor changes the page underneath, they are made again on what it has become. No work is done for
    whoever may not write there.
    """

    def attempt(doing: Doing) -> Written:
        page, read = _must_exist(doing, path)
        require_base(page, read.version, if_version, overwrite=True)
        must_propose(doing, facts_of(memory.context, parse(page, read.data)), there=page)
        data = apply_edits(read.data, edits)
        if not caller.principal.is_controller and data != read.data:
            authorship.refuse_reserved(touched_keys(edits))
            data = frontmatter.set_key(data, "updated", to_z(memory.clock.now()))
        return _change(doing, page, read, data)

    def act(doing: Doing) -> Written:
        if if_version is not None:
            return attempt(doing)
        with memory.turn_to_edit(present_page(memory, caller, path) or path):
            for _ in range(ATTEMPTS):
                try:
                    return attempt(doing)
                except Conflict as conflict:
                    if conflict.code != "page.stale":
                        raise
            return attempt(doing)

    return once(memory, caller, "edit_page", (path, *edits, if_version), act)


def remove_page(memory: Memory, caller: Caller, path: str, *, if_version: str | None = None) -> Written:
    """Takes a page away; its versions stay in history. Raises `NotFound`, `Conflict`, `Denied`."""

    def act(doing: Doing) -> Written:
        page, read = _must_exist(doing, path)
        require_version(caller, page, if_version)
        require_base(page, read.version, if_version, overwrite=True)
        if must_propose(doing, facts_of(memory.context, parse(page, read.data)), there=page):
            return propose.removal(doing, page, read)
        before = linked(memory, caller, page)
        meant = Written(str(page), read.version, "removed")
        written = carry_out(doing, [Step(page.file, None, read)], meant, f"Remove {page}")
        return replace(written, broken_links=broken(memory, caller, page, before, None))

    return once(memory, caller, "remove_page", (path, if_version), act)


def move_page(
    memory: Memory, caller: Caller, path: str, to: str, *, if_version: str | None = None
) -> Written:
    """Gives a page another path; its bytes stay. Raises `NotFound`, `Conflict` (`page.exists`), `Denied`."""

    def act(doing: Doing) -> Written:
        page, read = _must_exist(doing, path)
        require_base(page, read.version, if_version, overwrite=True)
        target = _new_path(memory, caller, to)
        sides = [facts_of(memory.context, parse(place, read.data)) for place in (page, target)]
        is_proposal = must_propose(doing, *sides, there=page)
        _require_free(doing, target, page, sides[1], is_proposal=is_proposal)
        if is_proposal:
            return propose.move(doing, page, target, read)
        before = linked(memory, caller, page)
        steps = [Step(target.file, read.data, None), Step(page.file, None, read)]
        meant = Written(str(target), read.version, "moved")
        written = carry_out(doing, steps, meant, f"Move {page} to {target}", move=True)
        return replace(written, broken_links=broken(memory, caller, page, before, target))

    return once(memory, caller, "move_page", (path, to, if_version), act)


def restore(memory: Memory, caller: Caller, path: str, rev: str) -> Written:
    """Brings an earlier version of a page back as a new version; nothing is rewritten. For the controller."""

    def act(doing: Doing) -> Written:
        controller_only(caller)
        then, data = past_version(memory, caller, path, rev)
        now = file_named(memory, caller, path)
        # A page that was renamed since gets its text back under the name that it has.
        file = now if memory.files.stat(now) is not None else then
        if paths.is_closed(file) or not reconcile.is_ours(memory, file):
            raise Invalid("path.closed", f"{path!r} is not restored: pcpd has no business there")
        read = memory.files.read(file, PAGE_LIMIT) if memory.files.stat(file) else None
        meant = Written(path, version_of(data), "restored")
        version = memory.require_history().resolve(rev)[:12]  # HEAD~1 would be another one tomorrow
        return carry_out(doing, [Step(file, data, read)], meant, f"Restore {file} from {version}")

    return once(memory, caller, "restore", (path, rev), act)


def _read_at(memory: Memory, page: PagePath) -> tuple[PagePath, FileBytes] | None:
    """Gives a page with its bytes, if there is one."""
    if memory.files.stat(page.file) is None:
        return None
    return page, memory.files.read(page.file, PAGE_LIMIT)


def _must_exist(doing: Doing, path: str) -> tuple[PagePath, FileBytes]:
    """Gives the page that `path` names, if the caller may read it; else raises `NotFound`."""
    memory, caller = doing.memory, doing.caller
    page = present_page(memory, caller, path)
    if page is None and caller.principal.is_controller:
        page = _new_path(
            memory, caller, path
        )  # says where no page can be; to an agent that is one that is not
    present = _read_at(memory, page) if page else None
    if present is None:
        raise no_page(memory, caller, path)
    if not memory.may(caller, "read", facts_of(memory.context, parse(present[0], present[1].data))).allowed:
        doing.note.refused(present[0])
        raise no_page(memory, caller, path)
    return present


def _require_free(doing: Doing, target: PagePath, page: PagePath, wish: Facts, *, is_proposal: bool) -> None:
    """Raises unless a page can be moved there; one that the caller may not see refuses like a place without grant.

    A proposal is not refused because of such a page: whoever reviews it sees that the place is taken.
    """
    memory = doing.memory
    found = _read_at(memory, target) if target.key != page.key else None
    if found is None:
        return
    facts = facts_of(memory.context, parse(target, found[1].data))
    if is_proposal and not memory.may(doing.caller, "read", facts).allowed:
        return
    must_propose(doing, facts, there=target, wish=wish)
    require_base(target, found[1].version, None, overwrite=False)


def _new_path(memory: Memory, caller: Caller, path: str) -> PagePath:
    text = path.removesuffix(".md")
    page = PagePath(text) if caller.principal.is_controller else paths.strict(text)
    if not is_page(memory, page):
        raise Invalid(
            "path.closed",
            f"no page can stand at {text!r}: pcpd does not read there",
            hint="choose another folder: not one that begins with a dot, nor one that `.gitignore` names",
        )
    return page


def _make(
    doing: Doing, path: str, proposed: Proposed, if_version: str | None, *, hidden: Facts | None = None
) -> Written:
    """Makes a page. Where one stands that the caller may not see (`hidden`), everything is refused as if none did,
    and what would be made is refused like a place without grant."""
    memory, caller = doing.memory, doing.caller
    page = _new_path(memory, caller, path)
    if caller.principal.is_controller:
        data = _persons_page(proposed)
    else:
        data = authorship.new_page(page, _placed(memory, caller, proposed), _author(memory, caller))
    wish = facts_of(memory.context, parse(page, data))
    is_proposal = must_propose(doing, wish, there=None)
    if if_version is not None:  # only now: whoever may not write here learns nothing of what is not there
        raise Conflict(
            "page.stale",
            f"the page {page} that this is based on is not there any more",
            hint="to make it anew, name no version",
        )
    if is_proposal:
        return propose.new_page(doing, page, data)
    if hidden is not None:
        must_propose(doing, hidden, there=page, wish=wish)
    meant = Written(str(page), version_of(data), "created")
    return carry_out(doing, [Step(page.file, data, None)], meant, f"Create {page}")


def _persons_page(proposed: Proposed) -> bytes:
    """A person's text is written as it came; keys named beside it are set in its front matter."""
    data = proposed.content.encode()
    for key, value in proposed.keys().items():
        data = frontmatter.set_key(data, key, value)
    return data


def _placed(memory: Memory, caller: Caller, proposed: Proposed) -> Proposed:
    """A page that names no partition goes to the default one, or to the only one that the agent may write to.

    Where it may write nowhere, to the only one that it may propose for.
    """
    if proposed.partition or "partition" in frontmatter.read(proposed.content.encode()):
        return proposed
    grants = memory.grants().grants
    mine = [grant for grant in grants if grant.principal == caller.principal.name]
    for right in ("write", "propose"):
        partitions = {name for grant in mine if right in grant.rights for name in grant.partitions}
        if partitions:
            break
    if memory.context.default_partition in partitions or len(partitions) != 1:
        return proposed
    return replace(proposed, partition=partitions.pop())


def _replaced(memory: Memory, caller: Caller, page: PagePath, read: FileBytes, proposed: Proposed) -> bytes:
    if caller.principal.is_controller:
        return _persons_page(proposed)
    return authorship.replacement(page, read.data, proposed, _author(memory, caller))


def _change(doing: Doing, page: PagePath, read: FileBytes, data: bytes) -> Written:
    """Both what the page was and what it becomes must be open to the caller (pages.md §3)."""
    memory = doing.memory
    sides = [facts_of(memory.context, parse(page, version)) for version in (read.data, data)]
    is_proposal = must_propose(doing, *sides, there=page)
    if data == read.data:
        return Written(str(page), read.version, "unchanged")
    if is_proposal:
        return propose.change(doing, page, read, data)
    data = by_hand.signed(memory, page, data)
    meant = Written(str(page), version_of(data), "replaced")
    return carry_out(doing, [Step(page.file, data, read)], meant, f"Change {page}")


def _author(memory: Memory, caller: Caller) -> Authorship:
    return Authorship(caller.principal.name, to_z(memory.clock.now()), caller.client, caller.session)
