"""The owner's log: files that rotate, in which what repeats is counted instead of said again.

A disk that is full or a lock that stays makes the same error every few seconds for days. It is said once, and
after an hour with the number of times, so that the log tells how long it lasted and what else happened.
"""

import logging
import logging.handlers
import os
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path

FILE_BYTES = 2 * 1024 * 1024
FILES = 3
AGAIN_S = 3600.0
MOST_KNOWN = 1_000

log = logging.getLogger("pcpd")


class Repeats(logging.Filter):
    """Lets a warning or error pass once, and once an hour after that, with how often it came meanwhile.

    `monotonic` gives seconds. A thousand different ones are remembered; then all is forgotten.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tells whether the record is written, and adds the count to its text."""
        if record.levelno < logging.WARNING:
            return True
        now, text = self._monotonic(), record.getMessage()
        said_at, count = self._known.get(text, (None, 0))
        if said_at is not None and now - said_at < AGAIN_S:
            self._known[text] = (said_at, count + 1)
            return False
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[text] = (now, 0)
        if count:
            record.msg, record.args = f"{text} ({count} more times since it was last said)", ()
        return True


class Private(logging.handlers.RotatingFileHandler):
    """A log whose files, those to come as well, only their owner may read: they name pages."""

    def _open(self) -> TextIOWrapper:
        return open(self.baseFilename, "a", encoding=self.encoding, opener=_private)


def open_in(folder: Path, level: str, monotonic: Callable[[], float]) -> None:
    """Logs to `pcpd.log` in a folder, 2 MiB at most, with three older files beside it, from now on."""
    folder.mkdir(exist_ok=True, mode=0o700)
    handler = Private(folder / "pcpd.log", maxBytes=FILE_BYTES, backupCount=FILES, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(Repeats(monotonic))
    log.handlers = [handler]
    log.setLevel(level.upper())
    log.propagate = False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
