"""A crash, a full disk or a race leaves the old file or the new one, never half of either."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcpd import durable

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home/sam/Team\\040notes rw - fuse.sshfs host:/notes rw
31 22 0:41 / /home/sam/vault rw - nfs4 server:/vault rw
32 31 0:42 / /home/sam/vault/local rw - ext4 /dev/vdb rw
33 22 0:43 / /home/sam/vault2 rw shared:5 - drvfs C: rw
34 22 0:44 / /mnt/twice rw - ext4 /dev/vdc rw
35 22 0:45 / /mnt/twice rw - cifs //server/share rw
broken line
""".splitlines()


def names(folder: Path) -> list[str]:
    """Lists a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())


def test_write_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    """The new bytes are there with the mode that was asked for, whatever the umask."""
    target = tmp_path / "state"
    before = os.umask(0o077)
    try:
        durable.write(target, b"old", mode=0o600)
        durable.write(target, b"new", mode=0o644)
    finally:
        os.umask(before)
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o644
    assert names(tmp_path) == ["state"]


def test_a_secret_is_never_readable_by_others_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The temporary file is private from its first moment."""
    modes = []
    real = os.fsync

    def noted(handle: int) -> None:
        modes.append(os.fstat(handle).st_mode & 0o777)
        real(handle)

    monkeypatch.setattr(os, "fsync", noted)
    before = os.umask(0)
    try:
        durable.write(tmp_path / "token", b"secret")
    finally:
        os.umask(before)
    assert modes[0] == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The error comes through, the old bytes stay, and the temporary file is gone."""
    target = tmp_path / "state"
    durable.write(target, b"old")

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(number)):
        durable.write(target, b"new")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["state"]


def test_data_reaches_the_disk_before_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then rename, then folder: another order can leave an empty file after a power cut."""
    order: list[str] = []
    sync, replace = os.fsync, Path.replace

    def noted_sync(handle: int) -> None:
        order.append("sync folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "sync file")
        sync(handle)

    def noted_replace(path: Path, target: Path) -> Path:
        order.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    durable.write(tmp_path / "state", b"new")
    assert order == ["sync file", "rename", "sync folder"]


def test_a_name_that_leads_elsewhere_is_replaced_not_followed(tmp_path: Path) -> None:
    """Writing over a link replaces the link; its target keeps its bytes."""
    (tmp_path / "elsewhere").write_bytes(b"not ours")
    (tmp_path / "state").symlink_to("elsewhere")
    durable.write(tmp_path / "state", b"new")
    assert (tmp_path / "elsewhere").read_bytes() == b"not ours"
    assert not (tmp_path / "state").is_symlink()


def test_of_many_that_create_one_file_exactly_one_wins(tmp_path: Path) -> None:
    """The file holds the whole of the winner's bytes; the others are told."""
    start, outcomes = threading.Barrier(8), []

    def create(number: int) -> None:
        start.wait()
        try:
            durable.create(tmp_path / "one", str(number).encode() * 10_000)
            outcomes.append(number)
        except FileExistsError:
            outcomes.append(-1)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [number for number in outcomes if number >= 0]
    assert len(outcomes) == 8
    assert [(tmp_path / "one").read_bytes()] == [str(number).encode() * 10_000 for number in winners]
    assert names(tmp_path) == ["one"]


def test_exchange_swaps_two_files_in_one_step(tmp_path: Path) -> None:
    """Both names stand before and after; each holds what the other held. A missing one changes nothing."""
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"1")
    b.write_bytes(b"2")
    durable.exchange(str(a), str(b))
    assert (a.read_bytes(), b.read_bytes()) == (b"2", b"1")
    with pytest.raises(FileNotFoundError):
        durable.exchange(str(a), str(tmp_path / "missing"))
    assert a.read_bytes() == b"2"


@pytest.mark.parametrize("missing", ["nothing", "the call", "the call and links"])
def test_a_rename_never_lands_on_an_existing_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Also on file systems that do not know such a rename, or no hard links either."""
    if missing != "nothing":
        monkeypatch.setattr(durable, "_renameat", None)
    if missing == "the call and links":

        def no_links(*_: object, **__: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", no_links)
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"1")
    b.write_bytes(b"2")
    with pytest.raises(FileExistsError):
        durable.rename_new(str(a), str(b))
    assert (a.read_bytes(), b.read_bytes()) == (b"1", b"2")
    durable.rename_new(str(a), str(tmp_path / "c"))
    assert names(tmp_path) == ["b", "c"]
    assert (tmp_path / "c").read_bytes() == b"1"


def test_exchange_says_when_the_system_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller can tell it from a failure, and takes another way."""
    monkeypatch.setattr(durable, "_renameat", None)
    with pytest.raises(OSError, match="not implemented") as caught:
        durable.exchange(str(tmp_path / "a"), str(tmp_path / "b"))
    assert durable.is_unsupported(caught.value)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/sam", "ext4"),
        ("/home/sam/vault/page.md", "nfs4"),
        ("/home/sam/vault/local/page.md", "ext4"),
        ("/home/sam/vault2", "drvfs"),
        ("/home/sam/vault22", "ext4"),
        ("/home/sam/Team notes/a", "fuse.sshfs"),
        ("/mnt/twice/a", "cifs"),
    ],
)
def test_the_nearest_mount_tells_the_file_system(path: str, kind: str) -> None:
    """The longest mount point counts, of two on one point the later; names only look alike."""
    assert durable.type_in_mountinfo(MOUNTS, path) == kind


@pytest.mark.parametrize(
    ("kind", "is_network"),
    [
        ("ext4", False),
        ("btrfs", False),
        ("fuseblk", False),
        ("nfs4", True),
        ("fuse.sshfs", True),
        ("9p", True),
    ],
)
def test_network_and_fuse_file_systems_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_network: bool
) -> None:
    """Also for a path that is not there yet: its nearest parent counts."""
    monkeypatch.setattr(durable, "filesystem", lambda _: kind)
    assert durable.network_filesystem(tmp_path / "not" / "there") == (kind if is_network else None)


def test_this_machine_names_its_file_system(tmp_path: Path) -> None:
    """The real lookup gives a type, and follows a link to where the data would really lie."""
    (tmp_path / "link").symlink_to(tmp_path)
    assert durable.filesystem(tmp_path / "link" / "missing") == durable.filesystem(tmp_path) != ""


@given(st.lists(st.text()), st.text())
def test_no_mount_table_makes_it_fail(lines: list[str], path: str) -> None:
    """Whatever stands in the table, there is an answer."""
    assert isinstance(durable.type_in_mountinfo(lines, path), str)
