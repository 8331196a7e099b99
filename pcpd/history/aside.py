"""The wip ref: where versions go while the person's branch must be left alone.

`refs/pcpd/<device>/wip` is a chain of commits. Its first commit of an episode stands on HEAD (and on the chain
before it, so that nothing in it is ever lost); `refs/pcpd/<device>/landed` says how much of it the branch has.
"""

from pcpd.history.objects import Objects
from pcpd.history.versions import PRINCIPAL, Head, Target

TRAILER = "Pcp-Aside"


class Aside:
    """The wip ref of one device."""

    def __init__(self, objects: Objects, device: str) -> None:
        self._objects = objects
        self.ref = f"refs/pcpd/{device}/wip"
        self.landed_ref = f"refs/pcpd/{device}/landed"
        self._known: tuple[str | None, tuple[str, ...]] = (None, ())

    def target(self, head: Head, base: str | None) -> Target:
        """Gives where the next version goes aside; `base` is the commit that the branch is at."""
        tip = self._objects.ref(self.ref)
        if tip is not None and tip != self._objects.ref(self.landed_ref):
            return Target(self.ref, tip, tip, (tip,), head, aside=True)
        parents = tuple(parent for parent in (base, tip) if parent is not None)
        return Target(self.ref, tip, base, parents, head, aside=True)

    def files(self) -> tuple[str, ...]:
        """Gives the files whose versions wait here for the branch."""
        tip, landed = self._objects.ref(self.ref), self._objects.ref(self.landed_ref)
        if tip is None or tip == landed:
            return ()
        if self._known[0] != tip:
            self._known = (tip, self._walk(tip, landed))
        return self._known[1]

    def land(self, files: set[str], *, log: str) -> None:
        """Notes that the branch now has what it should have of `files`; complete, the episode is over."""
        waiting = self.files()
        tip = self._objects.ref(self.ref)
        if waiting and tip and files.issuperset(waiting):
            self._objects.move(self.landed_ref, old=self._objects.ref(self.landed_ref), new=tip, log=log)

    def _walk(self, tip: str, landed: str | None) -> tuple[str, ...]:
        found: set[str] = set()
        commit: str | None = tip
        while commit and commit != landed and f"\n{TRAILER}: " in self._objects.message(commit):
            parents = self._objects.parents(commit)
            parent = parents[0] if parents else None
            found.update(edit.file for edit in self._objects.changed(parent, commit))
            commit = parent
        return tuple(sorted(found))


def message_of(subject: str, principal: str, *, aside: str | bool) -> str:
    """Gives a commit's message with its trailers. `aside` says why it goes to the wip ref, or is false."""
    trailers = {PRINCIPAL: principal, TRAILER: aside or ""}
    lines = [f"{key}: {' '.join(str(value).split())}" for key, value in trailers.items() if value]
    # A file's name in it need not be UTF-8.
    text = subject.replace("\0", "").encode(errors="replace").decode().strip() or "pages changed"
    return "\n".join([text, "", *lines]) + "\n" if lines else f"{text}\n"
