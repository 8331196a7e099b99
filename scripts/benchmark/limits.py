"""The limits: the least possible work for the same result, with nothing of pcpd in it."""

import ctypes
import hashlib
import json
import os
import re
import resource
import sqlite3
import struct
import sys
import threading
import time
from pathlib import Path

import yaml

_HEADER = struct.Struct("iIII")
_CLOSED_OR_MOVED_IN = 0x8 | 0x80


def scan(root: Path) -> int:
    """Lists and stats every file below a folder, and gives their number."""
    found, waiting = 0, [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    found += 1
    return found


def index(root: Path, database: Path, tables: str) -> dict[str, float]:
    """Reads, hashes and parses every page, stores it, and fills the given FTS tables; gives the seconds.

    `tables` is SQL that creates FTS5 tables with columns out of title, tags, extra, head and body.
    """
    start = time.perf_counter()
    conn = sqlite3.connect(database, isolation_level=None)
    conn.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-65536;" + tables
    )
    conn.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY, path, digest, front, title, body)")
    fills = _fills(conn, tables)
    conn.execute("BEGIN")
    for number, file in enumerate(sorted(root.rglob("*.md")), 1):
        data = file.read_bytes()
        _, front, body = data.decode().split("---\n", 2)
        keys = yaml.load(front, Loader=yaml.CBaseLoader)
        title, tags = str(keys.get("title", "")), " ".join(keys.get("tags") or ())
        row = (number, str(file), hashlib.sha256(data).digest(), json.dumps(keys), title, body)
        conn.execute("INSERT INTO kept VALUES (?, ?, ?, ?, ?, ?)", row)
        texts = {"title": title, "tags": tags, "extra": file.stem, "head": f"{title} {tags}", "body": body}
        for statement, columns in fills:
            conn.execute(statement, [number, *(texts[column] for column in columns)])
    conn.execute("COMMIT")
    conn.close()
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": used.ru_utime + used.ru_stime, "wall": time.perf_counter() - start}


def _fills(conn: sqlite3.Connection, tables: str) -> list[tuple[str, list[str]]]:
    """Gives for each FTS table how a row gets in, and from which columns."""
    fills = []
    for table in re.findall(r"CREATE VIRTUAL TABLE (\w+)", tables):
        columns = [str(row[1]) for row in conn.execute(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * (len(columns) + 1))
        fills.append((f"INSERT INTO {table} (rowid, {', '.join(columns)}) VALUES ({marks})", columns))
    return fills


PLAIN = """DROP TABLE IF EXISTS plain;
CREATE VIRTUAL TABLE plain USING fts5(title, body, content = 'kept', content_rowid = 'id',
    prefix = '2 3', tokenize = 'unicode61 remove_diacritics 2');
INSERT INTO plain (plain) VALUES ('rebuild');"""

RAW_SEARCH = """SELECT kept.path, kept.title, snippet(plain, 1, '', '', '…', 24), bm25(plain) FROM plain
    JOIN kept ON kept.id = plain.rowid WHERE plain MATCH ? ORDER BY rank LIMIT 20"""


class SaveToFound:
    """One folder watched with bare inotify; a saved page is parsed and put into one FTS table."""

    def __init__(self, folder: Path, database: Path) -> None:
        self._folder = folder
        self._conn = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        self._conn.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self._conn.execute("CREATE VIRTUAL TABLE limit_fts USING fts5(title, tags, text)")
        self._seen = threading.Event()
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = libc.inotify_init()
        libc.inotify_add_watch(self._queue, os.fsencode(folder), _CLOSED_OR_MOVED_IN)
        threading.Thread(target=self._drain, daemon=True).start()

    def save(self, name: str, data: bytes) -> float:
        """Saves a page as editors do and gives the milliseconds until it is in the table."""
        draft = self._folder.parent / "draft.tmp"
        draft.write_bytes(data)
        self._seen.clear()
        start = time.perf_counter()
        draft.replace(self._folder / name)
        self._seen.wait(10)
        return (time.perf_counter() - start) * 1000

    def _drain(self) -> None:
        while True:
            events = os.read(self._queue, 65536)
            length = _HEADER.unpack_from(events)[3]
            if not length:  # the folder itself is gone
                return
            name = events[_HEADER.size : _HEADER.size + length].rstrip(b"\0").decode()
            _, front, body = (self._folder / name).read_bytes().decode().split("---\n", 2)
            keys = yaml.load(front, Loader=yaml.CBaseLoader)
            row = (str(keys.get("title", "")), "", body)
            self._conn.execute("INSERT INTO limit_fts VALUES (?, ?, ?)", row)
            self._seen.set()


if __name__ == "__main__":
    print(json.dumps(index(Path(sys.argv[1]), Path(sys.argv[2]), sys.stdin.read())))
