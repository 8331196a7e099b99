"""Promise 2: your files stay yours. A file changes only by an act somebody asked for, and then only there."""

import hashlib
import subprocess
import sys
from pathlib import Path

from pcpd.memory import doctor, read, upkeep, write
from pcpd.pages.edits import Edit
from tests.vaults import Opened
from tests.waiting import until

ODD = {
    "bom.md": b"\xef\xbb\xbf---\r\ntitle: 'B'  # why\r\nno: no\r\nver: 1.10\r\n---\r\ntext  \r\n\r\n\r\n",
    "empty.md": b"",
    "no end.md": b"---\ntitle: x\n---\nno final newline",
    "broken.md": b"---\ntitle: [\n---\n",
    "twice.md": b"---\na: 1\na: 2\n---\n",
    "binary.md": b"\xff\xfe\x00",
    "\u212b.md": "Ångström, decomposed or not\n".encode(),
    "link.txt": b"attachment",
}


def digest(root: Path) -> dict[str, tuple[str, int, int, int]]:
    """Bytes, times, modes and inodes of every file that is the person's."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_mode,
            path.stat().st_ino,
        )
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts and ".pcp" not in path.parts
    }


def test_indexing_searching_checking_and_committing_change_no_byte_and_no_time(opened: Opened) -> None:
    """A whole vault, with odd pages among ordinary ones, is exactly as it was after all that pcpd does by itself."""
    maker = Path(__file__).resolve().parents[2] / "scripts" / "make_vault.py"
    opened.close()
    subprocess.run([sys.executable, str(maker), str(opened.root / "made"), "--pages", "60", "--seed", "3"], check=True,
                   capture_output=True)  # fmt: skip
    for file, data in ODD.items():
        (opened.root / file).write_bytes(data)
    before = digest(opened.root)
    opened.open()
    read.search(opened.memory, opened.person, "text")
    upkeep.rebuild(opened.memory)
    assert doctor.doctor(opened.memory, deep=True)["ok"]
    until(lambda: doctor.status(opened.memory)["history"]["waiting"] == 0)
    opened.restart()
    assert digest(opened.root) == before


def test_a_save_is_never_answered_by_a_write(opened: Opened) -> None:
    """After a person's save, indexed and committed, the file is what they saved: same inode, same time."""
    path = opened.save("note.md", "---\nupdated: 2020-01-01\n---\nmine\n")
    before = digest(opened.root)["note.md"]
    until(lambda: read.search(opened.memory, opened.person, "mine").results)
    until(lambda: doctor.status(opened.memory)["history"]["waiting"] == 0)
    assert digest(opened.root)["note.md"] == before
    assert path.exists()


def test_an_edit_through_pcpd_changes_the_lines_asked_for_and_leaves_every_other_byte(opened: Opened) -> None:
    """Mode included; the other files are untouched."""
    path = opened.save("bom.md", ODD["bom.md"])
    path.chmod(0o640)
    opened.save("other.md", "other\n")
    until(lambda: read.list_pages(opened.memory, opened.person).total == 2)
    other = digest(opened.root)["other.md"]
    write.edit_page(opened.memory, opened.person, "bom", [Edit("set", "ver", "1.20")])
    assert path.read_bytes() == ODD["bom.md"].replace(b"ver: 1.10", b'ver: "1.20"')
    assert path.stat().st_mode & 0o777 == 0o640
    assert digest(opened.root)["other.md"] == other


def test_commits_carry_the_bytes_on_disk(opened: Opened) -> None:
    """In repositories that pcpd made: CRLF, BOM and invalid UTF-8 as they are."""
    for file, data in ODD.items():
        opened.save(file, data)
    until(lambda: doctor.status(opened.memory)["history"]["waiting"] == 0)
    git = ["git", "-C", str(opened.root), "cat-file", "blob"]
    for file, data in ODD.items():
        shown = subprocess.run([*git, f"HEAD:{file}"], capture_output=True, check=True).stdout
        assert shown == data
