"""Sets a damaged database aside under a dated name, with its write-ahead log, so that nothing is lost."""

from datetime import datetime
from pathlib import Path

from pcpd import durable
from pcpd.errors import Broken

# The log goes before the main file: a log that stayed behind would be replayed into the next database.
SUFFIXES = ("-wal", "-shm", "")


def orphaned(path: Path) -> bool:
    """Tells whether a write-ahead log lies there whose database is gone."""
    return not path.exists() and _beside(path, "-wal").exists()


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
