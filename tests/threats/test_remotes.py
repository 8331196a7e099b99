"""Whoever can push to the vault's remote: they can reclassify pages, which is told; they can open no access."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pcpd.ledger import audit
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.memory import read, reclassed, write
from pcpd.memory.doctor import status
from pcpd.pages.edits import Edit
from pcpd.policy.grants import CATEGORIES, Grant
from tests.hazards.conftest import Asked, git
from tests.vaults import Opened
from tests.waiting import until

SAM = ("-c", "user.name=Sam", "-c", "user.email=sam@example.org")
PAGES = {
    "plan.md": "---\npartition: work\n---\nzyxplan\n",
    "diary.md": "---\nsensitivity: sensitive\n---\nzyxdiary\n",
    "idea.md": "---\nreview: {state: proposed}\n---\nzyxidea\n",
    "boiler.md": "zyxboiler\n",
}


class Shared:
    """A vault, and another clone of it from which somebody pushes."""

    def __init__(self, opened: Opened) -> None:
        self.opened, self.ask = opened, Asked(opened)
        self.other = opened.base / "other"
        self.ask.commit_all()
        git(opened.base, "clone", "-q", str(opened.root), str(self.other))

    def push(self, **texts: str) -> None:
        """Changes pages elsewhere."""
        for name, text in texts.items():
            (self.other / f"{name}.md").write_text(text, encoding="utf-8")
        git(self.other, *SAM, "commit", "-qam", "theirs")

    def pull(self) -> None:
        """Has the person pull; returns when the index and history have followed."""
        before = self.opened.memory.applied
        git(self.opened.root, *SAM, "pull", "-q", "--ff-only", str(self.other))
        until(lambda: self.opened.memory.applied > before)
        self.ask.commit_all()

    def told(self) -> list[AuditRow]:
        """The rows that tell of it, oldest first."""
        return audit.rows(self.opened.memory.ledger, Filter(action=reclassed.ACTION), after=0)


@pytest.fixture
def shared(make_opened: Callable[..., Opened]) -> Shared:
    """A vault of four pages, all committed."""
    opened = make_opened("shared", ahead_s=3600, quiet_s=0.05)
    for file, text in PAGES.items():
        opened.save(file, text)
    opened.open()
    opened.memory.access.grant(Grant("agent:a", ("personal",), CATEGORIES, ("read",)))
    return Shared(opened)


def test_a_pull_that_reclassifies_pages_is_told_in_status_and_in_the_trail(shared: Shared) -> None:
    """By partition, sensitivity, type and review; and how many pages agents may read now that they could not."""
    agent = shared.opened.agent("agent:a")
    assert read.list_pages(shared.opened.memory, agent).total == 1
    shared.push(
        plan="---\npartition: personal\n---\nzyxplan\n", diary="zyxdiary\n", idea="zyxidea\n",
        boiler="---\ntype: episodic\n---\nzyxboiler\n",
    )  # fmt: skip
    shared.pull()
    until(shared.told)
    assert read.list_pages(shared.opened.memory, agent).total == 4
    (row,) = shared.told()
    assert (row.principal, row.channel, row.outcome) == ("unknown", "disk", "ok")
    assert row.categories == ("episodic", "semantic")
    assert row.counts == {"pages": 4, "opened": 3}
    paths = set(audit.object_paths(shared.opened.memory.ledger, row.object_ids).values())
    assert paths == {"plan", "diary", "idea", "boiler"}
    said = shared.ask.notice("git")
    assert "4 pages in the last 7 days" in said
    assert "3 of them were opened to agents" in said
    assert "diary" in said


def test_a_pull_while_no_owner_ran_is_told_too(shared: Shared) -> None:
    """Clients start owners, and those end when nobody asks: most pulls meet none."""
    shared.push(plan="---\npartition: personal\n---\nzyxplan\n")
    shared.opened.close()
    git(shared.opened.root, *SAM, "pull", "-q", "--ff-only", str(shared.other))
    shared.opened.open()
    until(shared.told)
    assert "1 of them were opened" in shared.ask.notice("git")
    shared.opened.restart()
    assert "plan" in shared.ask.notice("git")
    assert len(shared.told()) == 1


def test_a_context_that_a_pull_brings_is_told_by_the_pages_that_it_reclassifies(shared: Shared) -> None:
    """The default partition and the profile decide of pages that say nothing."""
    context = shared.other / ".pcp" / "context.yaml"
    text = context.read_text(encoding="utf-8")
    assert "profile" not in text
    context.write_text(f"{text}profile: boiler\n", encoding="utf-8")
    git(shared.other, *SAM, "commit", "-qam", "theirs")
    shared.pull()
    until(shared.told)
    assert shared.told()[0].categories == ("profile", "semantic")
    assert shared.told()[0].counts["pages"] == 1


def test_what_the_person_or_an_act_reclassifies_is_no_news(shared: Shared) -> None:
    """An editor's save is committed by pcpd, and an act has a row of its own; text alone changes no facts."""
    opened = shared.opened
    opened.save("plan.md", "---\npartition: personal\n---\nzyxplan\n")
    until(lambda: read.read_page(opened.memory, opened.agent("agent:a"), "plan"))
    write.edit_page(opened.memory, opened.person, "boiler", [Edit("set", "sensitivity", "sensitive")])
    shared.ask.commit_all()
    git(shared.other, *SAM, "pull", "-q", "--ff-only", str(opened.root))
    shared.push(diary="---\nsensitivity: sensitive\n---\nzyxother\n")
    shared.pull()
    until(lambda: shared.ask.found("zyxother"))
    shared.ask.commit_all()
    assert shared.told() == []
    assert "git" not in {each["topic"] for each in status(opened.memory)["notices"]}


def test_a_pull_opens_no_access(shared: Shared) -> None:
    """Grants lie on the device: neither a list of them in the vault nor a principal in the context gives any."""
    context = shared.other / ".pcp" / "context.yaml"
    text = context.read_text(encoding="utf-8").replace(
        "principals:\n", "principals:\n  - {id: agent:evil, role: curator}\n"
    )
    context.write_text(text, encoding="utf-8")
    for place in ("access.yaml", ".pcp/access.yaml"):
        (shared.other / place).write_text(
            "grants:\n  - {principal: agent:evil, partitions: [personal, work], categories: [semantic],"
            " rights: [read, write], sensitivity: sensitive}\n",
            encoding="utf-8",
        )
    git(shared.other, "add", "-A")
    shared.push(boiler="zyxarrived\n")
    shared.pull()
    until(lambda: shared.ask.found("zyxarrived"))
    assert read.list_pages(shared.opened.memory, shared.opened.agent("agent:evil")).total == 0


def test_what_a_repository_brings_along_is_not_run(shared: Shared) -> None:
    """Hooks that came with a copied folder, and attributes that name a filter which is set up nowhere."""
    marker = shared.opened.base / "ran"
    hooks = shared.opened.root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    shared.opened.save(".gitattributes", "*.md diff=evil merge=evil\n")
    shared.opened.save("boiler.md", "zyxafter\n")
    until(lambda: shared.ask.found("zyxafter"))
    shared.ask.commit_all()
    until(lambda: git(shared.opened.root, "show", "HEAD:boiler.md") == "zyxafter\n")
    assert not marker.exists()


def test_a_link_that_a_pull_brings_leads_nowhere(shared: Shared, tmp_path: Path) -> None:
    """Git may bring links; what they point at is neither read nor found."""
    outside = tmp_path / "outside.md"
    outside.write_text("zyxoutside\n", encoding="utf-8")
    (shared.other / "linked.md").symlink_to(outside)
    (shared.other / "folder").symlink_to(tmp_path)
    git(shared.other, "add", "-A")
    shared.push(boiler="zyxarrived\n")
    shared.pull()
    until(lambda: shared.ask.found("zyxarrived"))
    assert (shared.opened.root / "linked.md").is_symlink()
    assert shared.ask.found("zyxoutside") == []
    shutil.rmtree(shared.other)
