"""Sets a damaged database aside under a dated name, with its write-ahead log, so that nothing is lost."""

from datetime import datetime
from pathlib import Path

from pcpd import durable
from pcpd.errors import Broken

# The log goes before the main file: a log that stayed behind would be replayed into the next database.
SUFFIXES = ("-wal", "-shm", "")
MAGIC = b"SQLite format 3\0"


def fault_of(path: Path) -> str | None:
    """Says what is wrong with a database before SQLite opens it and, closing it, drops its log; else None."""
    if not path.exists():
        return "its main file is gone, its log is there" if _beside(path, "-wal").exists() else None
    try:
        with path.open("rb") as file:
            begin = file.read(len(MAGIC))
    except OSError:
        return None  # what can be done about that, opening it will say
    return None if begin in {b"", MAGIC} else "it is no database"


def set_aside(path: Path, now: datetime) -> Path:
    """Renames the database and its companions to `<stem>-corrupt-<date>`; gives the new name.

    Taken names get a number. Safe to repeat after a crash in the middle. Raises `Broken` (`ledger.aside`).
    """
    target = _free(path, f"{path.stem}-corrupt-{now:%Y-%m-%d}")
    try:
        for suffix in SUFFIXES:
            source = _beside(path, suffix)
            if source.exists():
                source.rename(_beside(target, suffix))
        durable.sync_folder(path.parent)
    except OSError as error:
        raise Broken(
            "ledger.aside",
            f"{path} is damaged and cannot be set aside as {target.name}: {error.strerror}",
            hint="move it away yourself, with its -wal and -shm files, then start again",
        ) from error
    return target


def _free(path: Path, stem: str) -> Path:
    names = (f"{stem}-{number}" if number > 1 else stem for number in range(1, 10_000))
    for name in names:
        target = path.with_name(name + path.suffix)
        if not any(_beside(target, suffix).exists() for suffix in SUFFIXES):
            return target
    raise Broken("ledger.aside", f"{path.parent} holds too many files named {stem}", hint="move them away")


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
