"""What a commit stands on: HEAD, the branch, what the person has under way, and so which ref it goes to."""

from collections.abc import Iterator

from pcpd.history import operations, refs
from pcpd.history.aside import Aside
from pcpd.history.configuration import Configuration
from pcpd.history.index_file import IndexFile
from pcpd.history.layout import Layout
from pcpd.history.objects import Objects
from pcpd.history.program import Program
from pcpd.history.versions import Target

_ON = frozenset({"true", "yes", "on", "1"})


class Ground:
    """Looks each time it is asked; remembers nothing. `branch` is where a vault inside a repository goes."""

    def __init__(
        self, layout: Layout, objects: Objects, index: IndexFile, *, branch: str, aside: Aside
    ) -> None:
        self._layout = layout
        self._objects = objects
        self._index = index
        self._branch = branch
        self._aside = aside

    def target(self, aside: bool) -> Target:
        """Gives where the next commit goes: the branch, or the wip ref when asked or when the branch is not free."""
        head = self._objects.head()
        if self._layout.kind == "above":
            tip = self._objects.ref(self._branch)
            if aside or head.branch == self._branch:  # checked out: a person's branch never moves here
                return self._aside.target(head, tip)
            return Target(self._branch, tip, tip, (tip,) if tip else (), head, aside=False)
        is_first = head.commit is None and self._layout.kind == "own" and not refs.has_branches(self._layout)
        if aside or head.branch is None or (head.commit is None and not is_first) or self.operation():
            return self._aside.target(head, head.commit)
        parents = (head.commit,) if head.commit else ()
        return Target(head.branch, head.commit, head.commit, parents, head, aside=False)

    def operation(self) -> str:
        """Names what the person has under way, or nothing."""
        if self._layout.kind == "above":
            return ""
        return (
            operations.under_way(self._layout)
            or self._pseudo_refs()
            or ("unmerged" if self._index.unmerged() else "")
        )

    def _pseudo_refs(self) -> str:
        """Looks for marks that the reftable store does not keep as files."""
        if not (self._layout.commondir / "reftable").exists():
            return ""
        return next((name for ref, name in operations.PSEUDO_REFS if self._objects.ref(ref)), "")

    def base(self) -> str | None:
        """Gives the commit that the vault's branch is at, or HEAD when detached."""
        if self._layout.kind == "above":
            return self._objects.ref(self._branch)
        return self._objects.head().commit

    def tips(self) -> list[str]:
        """Gives the commits from which all of the vault's history is reached."""
        return [tip for tip in (self.base(), self._objects.ref(self._aside.ref)) if tip]

    def has_attributes(self, folder: str) -> bool:
        """Tells whether HEAD has a .gitattributes in a folder of the repository, though the disk may not."""
        head = self._objects.head().commit
        name = f"{folder}/.gitattributes" if folder else ".gitattributes"
        return head is not None and self._objects.entry(head, name) is not None


def is_sparse(layout: Layout, configuration: Configuration) -> bool:
    """Tells whether files may be missing from the vault because the person's checkout leaves them out."""
    return layout.kind != "above" and (configuration.get("core.sparsecheckout") or "").lower() in _ON


def notices(layout: Layout, program: Program, configuration: Configuration) -> Iterator[str]:
    """Says what keeps this repository from giving all that history promises, and the cure."""
    if program.problem:
        yield f"{program.problem}: versions are kept, but log, diff and filters need it."
    if (layout.commondir / "shallow").exists():
        yield "The clone is shallow: older versions are not here; `git fetch --unshallow` brings them."
    if configuration.any_set("remote.", ".promisor"):
        yield "The clone is partial: some older versions are only at the remote."
    if is_sparse(layout, configuration):
        yield "The checkout is sparse: files that it leaves out are not taken for deleted."
