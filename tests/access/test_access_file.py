"""access.yaml on this device: a bad edit never opens access, and what a person wrote stays."""

import errno
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pcpd import durable
from pcpd.access import access_file
from pcpd.access.access_file import AccessFile
from pcpd.access.owned import identity
from pcpd.errors import Broken, Conflict, Invalid
from pcpd.policy.grants import Access, Grant, parse_access

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
READ = Grant("agent:claude", ("work", "home"), ("semantic",), ("read",))
WRITE = Grant("agent:cursor", ("work",), ("semantic",), ("read", "write"))
BY_HAND = b"""\
# my grants
grants:
  # Claude may read
  - {principal: "agent:claude",   partitions: [work, home], categories: [semantic], rights: [read]}  # for now

  - principal: agent:cursor
    partitions: [work]
    categories: [semantic]
    rights: [read, write]
# the end
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration folder that is closed to others."""
    made = tmp_path / "config"
    made.mkdir(mode=0o700)
    return made


def put(folder: Path, data: bytes, mode: int = 0o600) -> Path:
    """Saves access.yaml as an editor would that writes in place."""
    path = folder / "access.yaml"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def grants_of(access: Access) -> list[str]:
    """Names whose grants are in force."""
    return [grant.principal for grant in access.grants]


def test_without_a_file_or_folder_there_are_no_grants(tmp_path: Path) -> None:
    """And nothing to say about it."""
    file = AccessFile(tmp_path / "none")
    assert file.current(NOW) == Access()
    assert file.notice is None


def test_a_file_that_a_person_wrote_is_in_force(folder: Path) -> None:
    """Grants in both styles, with comments."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    assert file.current(NOW) == Access((READ, WRITE))
    assert file.notice is None


def test_an_edit_is_in_force_at_the_next_look(folder: Path) -> None:
    """Also one that leaves size and times as they were, within two seconds of the first look."""
    path = put(folder, BY_HAND)
    before = path.stat()
    file = AccessFile(folder)
    now = datetime.fromtimestamp(before.st_mtime, UTC)
    assert len(file.current(now).grants) == 2
    put(folder, BY_HAND.replace(b"agent:claude", b"agent:claudi"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert grants_of(file.current(now)) == ["agent:claudi", "agent:cursor"]


def test_a_file_whose_times_are_young_is_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two edits within one tick of the clock leave size, times and inode as they were."""
    path = put(folder, BY_HAND)
    same = identity(path)
    monkeypatch.setattr(access_file, "identity", lambda _: same)
    file = AccessFile(folder)
    saved = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    file.current(saved + timedelta(seconds=1))
    put(folder, BY_HAND.replace(b"agent:claude", b"agent:claudi"))
    assert grants_of(file.current(saved + timedelta(seconds=3)))[0] == "agent:claudi"
    put(folder, BY_HAND)
    assert grants_of(file.current(saved + timedelta(seconds=4)))[0] == "agent:claudi"


def test_a_file_at_rest_is_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question of an agent asks for the grants; a look at the times must do."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    later = datetime.now(UTC) + timedelta(hours=1)
    first = file.current(later)

    def never(*_: object, **__: object) -> None:
        pytest.fail("read again")

    monkeypatch.setattr(access_file, "read_owned", never)
    assert file.current(later) is first


@pytest.mark.parametrize(
    "bad",
    [
        b"grants: [",
        b"grants:\n  - {principal: agent:x}\n",
        b"\xff",
        b"a" * (1024 * 1024 + 1),
        b"grants: &a [*a]",
    ],
)
def test_a_bad_edit_leaves_the_last_good_grants_in_force(folder: Path, bad: bytes) -> None:
    """The error is shown; after a restart it is the same."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    file.current(NOW)
    path = put(folder, bad)
    for again in (file, AccessFile(folder)):
        assert again.current(NOW) == Access((READ, WRITE))
        assert again.notice is not None
        assert "access.yaml: line " in again.notice
        assert "stays in force, grants: 2" in again.notice
    assert path.read_bytes() == bad
    put(folder, BY_HAND)
    assert file.current(NOW) == Access((READ, WRITE))
    assert file.notice is None


def test_a_bad_edit_that_widens_a_grant_opens_nothing(folder: Path) -> None:
    """Not even the part of it that could be read."""
    put(folder, BY_HAND)
    AccessFile(folder).current(NOW)
    put(folder, BY_HAND.replace(b"rights: [read]}", b"rights: [read, write, erase]}"))
    assert AccessFile(folder).current(NOW) == Access((READ, WRITE))


def test_a_bad_first_file_grants_nothing(folder: Path) -> None:
    """There is no last good one."""
    put(folder, b"grants: {")
    file = AccessFile(folder)
    assert file.current(NOW) == Access()
    assert file.notice is not None
    assert "no grant is in force" in file.notice


def test_a_removed_file_means_no_grants_also_after_a_bad_edit(folder: Path) -> None:
    """The last good policy is then that there is none: old grants do not come back."""
    path = put(folder, BY_HAND)
    file = AccessFile(folder)
    file.current(NOW)
    path.unlink()
    assert file.current(NOW) == Access()
    assert list(folder.iterdir()) == []
    put(folder, b"grants: [")
    assert file.current(NOW) == Access()
    assert AccessFile(folder).current(NOW) == Access()


def test_an_emptied_file_means_no_grants(folder: Path) -> None:
    """As an editor's truncation does for a moment: access closes, and comes back with the text."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    file.current(NOW)
    put(folder, b"")
    assert file.current(NOW) == Access()
    put(folder, BY_HAND)
    assert file.current(NOW) == Access((READ, WRITE))


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o664])
def test_a_file_that_others_may_write_is_not_used(folder: Path, mode: int) -> None:
    """Another user of the machine could give themselves rights; the notice says how to close it."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    file.current(NOW)
    path = put(folder, BY_HAND.replace(b"[read]", b"[read, write]"), mode)
    assert file.current(NOW) == Access((READ, WRITE))
    assert file.notice is not None
    assert f"chmod 600 {path}" in file.notice
    path.chmod(0o600)
    assert file.current(NOW).grants[0].rights == ("read", "write")


def test_a_folder_that_others_may_write_is_not_used(folder: Path) -> None:
    """They could put another file there, or bring an old one back."""
    put(folder, BY_HAND)
    folder.chmod(0o777)
    file = AccessFile(folder)
    assert file.current(NOW) == Access()
    assert file.notice is not None
    assert f"chmod 700 {folder}" in file.notice
    folder.chmod(0o700)
    assert file.current(NOW) == Access((READ, WRITE))


def test_a_file_of_another_user_is_not_used(folder: Path, unprivileged: Path) -> None:
    """Root's files are: who is root needs no grant."""
    put(unprivileged, BY_HAND)
    mine = AccessFile(unprivileged)
    assert mine.current(NOW) == Access((READ, WRITE))
    stranger = AccessFile(unprivileged, uid=os.geteuid() + 1)
    assert stranger.current(NOW) == Access()
    assert stranger.notice is not None
    assert f"belongs to another user (uid {os.geteuid()})" in stranger.notice


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder"])
def test_what_is_no_plain_file_is_not_used(folder: Path, tmp_path: Path, kind: str) -> None:
    """A link could be led elsewhere, a FIFO would hold up the owner."""
    path = folder / "access.yaml"
    elsewhere = tmp_path / "elsewhere.yaml"
    if kind == "link":
        elsewhere.write_bytes(BY_HAND)
    if kind in {"link", "dangling"}:
        path.symlink_to(elsewhere)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    file = AccessFile(folder)
    assert file.current(NOW) == Access()
    assert file.notice is not None
    assert "is not used" in file.notice
    with pytest.raises(Broken) as caught:
        file.grant(READ)
    assert caught.value.code == "access.untrusted"


def test_a_file_that_cannot_be_read_leaves_the_last_good_grants_in_force(unprivileged: Path) -> None:
    """Permission taken away is no removal."""
    unprivileged.chmod(0o700)
    path = put(unprivileged, BY_HAND)
    file = AccessFile(unprivileged)
    file.current(NOW)
    path.chmod(0)
    assert file.current(NOW) == Access((READ, WRITE))
    assert file.notice is not None
    assert "cannot be read" in file.notice
    path.chmod(0o600)


def test_a_grant_makes_a_closed_file_in_a_closed_folder(tmp_path: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        file = AccessFile(tmp_path / "a" / "config")
        assert file.grant(READ)
        assert not file.grant(READ)
    finally:
        os.umask(before)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.parent.stat().st_mode & 0o777 == 0o700
    assert file.current(NOW) == Access((READ,))
    assert AccessFile(tmp_path / "a" / "config").current(NOW) == Access((READ,))


def test_an_open_folder_is_closed_with_the_first_grant(folder: Path) -> None:
    """A folder made with the usual umask."""
    folder.chmod(0o755)
    AccessFile(folder).grant(READ)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_grant_adds_one_line_to_what_a_person_wrote(folder: Path) -> None:
    """Comments, spaces and styles stay."""
    path = put(folder, BY_HAND)
    more = Grant(
        "agent:new", ("work",), ("profile",), ("read",), "sensitive", datetime(2027, 1, 1, tzinfo=UTC)
    )
    assert AccessFile(folder).grant(more)
    line = (
        b"  - {principal: agent:new, partitions: [work], categories: [profile], rights: [read],"
        b" sensitivity: sensitive, until: 2027-01-01T00:00:00Z}\n"
    )
    assert path.read_bytes() == BY_HAND.replace(b"# the end\n", line + b"# the end\n")


def test_a_revocation_takes_the_lines_of_the_grant_and_no_others(folder: Path) -> None:
    """Whichever style it has; how many were touched is told."""
    path = put(folder, BY_HAND)
    file = AccessFile(folder)
    assert file.revoke("agent:nobody") == 0
    assert path.read_bytes() == BY_HAND
    assert file.revoke("agent:cursor") == 1
    lines = BY_HAND.splitlines(keepends=True)
    assert path.read_bytes() == b"".join(lines[:5] + lines[9:])
    assert file.revoke("agent:claude") == 1
    assert file.current(NOW) == Access()
    assert path.read_bytes() == b"# my grants\ngrants:\n  # Claude may read\n\n# the end\n"
    assert file.grant(WRITE)
    assert file.current(NOW) == Access((WRITE,))


def test_a_revocation_may_name_partitions(folder: Path) -> None:
    """The grant keeps the others; one without any goes."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    assert file.revoke("agent:claude", partitions=["work"]) == 1
    assert file.current(NOW) == Access((WRITE, Grant("agent:claude", ("home",), ("semantic",), ("read",))))
    assert file.revoke("agent:claude", partitions=["home", "other"]) == 1
    assert file.current(NOW) == Access((WRITE,))


def test_a_wrong_file_is_never_edited(folder: Path) -> None:
    """Not even where the wrong part is another grant."""
    path = put(folder, BY_HAND + b"x: 1\n")
    with pytest.raises(Invalid) as caught:
        AccessFile(folder).grant(Grant("agent:new", ("work",), ("profile",), ("read",)))
    assert caught.value.code == "access.invalid"
    assert path.read_bytes() == BY_HAND + b"x: 1\n"


def test_a_revocation_works_while_the_file_is_wrong(folder: Path) -> None:
    """Taking away cannot wait for a corrected file; what is in force loses the grant, also over a restart."""
    put(folder, BY_HAND)
    AccessFile(folder).current(NOW)
    path = put(folder, BY_HAND + b"x: 1\n")
    file = AccessFile(folder)
    with pytest.raises(Invalid) as caught:
        file.revoke("agent:claude")
    assert "the file has not" in caught.value.hint
    assert path.read_bytes() == BY_HAND + b"x: 1\n"
    assert file.current(NOW) == Access((WRITE,))
    assert AccessFile(folder).current(NOW) == Access((WRITE,))


def test_a_layout_that_cannot_be_edited_line_by_line_is_left_to_the_person(folder: Path) -> None:
    """Here the dash stands on a line of its own, and would stay behind."""
    odd = BY_HAND.replace(b"  - principal: agent:cursor\n", b"  -\n    principal: agent:cursor\n")
    path = put(folder, odd)
    with pytest.raises(Invalid) as caught:
        AccessFile(folder).revoke("agent:cursor")
    assert caught.value.code == "access.layout"
    assert path.read_bytes() == odd


def test_an_edit_that_a_person_saves_meanwhile_is_not_overwritten(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails and says to try again."""
    path = put(folder, BY_HAND)
    theirs = BY_HAND.replace(b"# the end", b"# saved meanwhile")
    file = AccessFile(folder)
    read: list[bytes] = []

    def saved_after_reading(data: bytes) -> Access:
        if not read:
            path.write_bytes(theirs)
        read.append(data)
        return parse_access(data)

    monkeypatch.setattr(access_file, "parse_access", saved_after_reading)
    with pytest.raises(Conflict):
        file.grant(Grant("agent:new", ("work",), ("profile",), ("read",)))
    assert path.read_bytes() == theirs


def failing(number: int) -> Callable[..., None]:
    """Gives a `durable.write` that meets an error."""

    def write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
        raise OSError(number, os.strerror(number), str(path))

    return write


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_grant_that_cannot_be_written_is_not_in_force(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Disk full, read-only, forbidden: the old file is whole, and the error says which file and why."""
    put(folder, BY_HAND)
    file = AccessFile(folder)
    file.current(NOW)
    monkeypatch.setattr(durable, "write", failing(number))
    with pytest.raises(Broken) as caught:
        file.grant(Grant("agent:new", ("work",), ("profile",), ("read",)))
    assert caught.value.code == "access.unwritable"
    assert os.strerror(number) in caught.value.message
    assert file.current(NOW) == Access((READ, WRITE))


def test_good_grants_are_in_force_even_where_they_cannot_be_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk does not shut agents out; the notice says what a restart would do."""
    put(folder, BY_HAND)
    monkeypatch.setattr(durable, "write", failing(errno.ENOSPC))
    file = AccessFile(folder)
    assert file.current(NOW) == Access((READ, WRITE))
    assert file.notice is not None
    assert "after a restart" in file.notice


def test_a_forged_last_good_file_is_not_used(folder: Path) -> None:
    """It is trusted no more than the file itself."""
    put(folder, b"grants: [")
    kept = folder / "access.last-good.yaml"
    kept.write_bytes(BY_HAND)
    kept.chmod(0o666)
    assert AccessFile(folder).current(NOW) == Access()
    kept.chmod(0o600)
    assert AccessFile(folder).current(NOW) == Access((READ, WRITE))
    kept.write_bytes(b"grants: [")
    assert AccessFile(folder).current(NOW) == Access()


def test_grants_and_looks_of_many_threads_do_not_get_lost(folder: Path) -> None:
    """Each of eight grants is there in the end, and no reader saw anything but a whole policy."""
    file = AccessFile(folder)
    names = [f"agent:a{number}" for number in range(8)]
    seen: list[Access] = []

    def work(name: str) -> None:
        file.grant(Grant(name, ("work",), ("semantic",), ("read",)))
        seen.append(file.current(NOW))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(grants_of(file.current(NOW))) == names
    assert len(seen) == len(names)
    assert all(set(grants_of(access)) <= set(names) for access in seen)
