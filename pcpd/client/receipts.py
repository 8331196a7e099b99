"""What each `pcpd connect` did, kept beside the vault's state so that all of it can be taken back, and no more.

One file a client and configuration file, without the token itself; before each edit the old bytes of the
configuration are kept too. All of it is for its owner alone: such files hold the tokens of other servers.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pcpd import durable
from pcpd.client.entries import Trace
from pcpd.errors import Conflict

FOLDER = "connections"
BACKUPS_KEPT = 3

Grant = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Receipt:
    """One connected client: the entry in its file, and what it was given for it.

    `tokens` are ids, the present one first; those behind it wait to be revoked. `grants` are those that connect
    itself made, likewise; `agreed` is what the person agreed to, whoever wrote it down. `trace` is what the entry
    stands in the place of; `made_file` that the file was new, `made_folders` the folders made for it, inner first.
    """

    client: str
    config: str
    key: str
    name: str
    principal: str
    tokens: tuple[str, ...]
    grants: tuple[Grant, ...]
    agreed: Grant
    trace: Trace
    made_file: bool
    made_folders: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The name under which it is kept: one for each client and file."""
        digest = hashlib.sha256(self.config.encode("utf-8", "surrogateescape")).hexdigest()
        return f"{self.client}-{digest[:8]}"


class Receipts:
    """The receipts of one vault on this device."""

    def __init__(self, state: Path) -> None:
        """Names the vault's state folder."""
        self.folder = state / FOLDER

    def all(self) -> list[Receipt]:
        """Gives every receipt that can be read, by client and file."""
        found = (_read(path) for path in sorted(self.folder.glob("*.json")))
        return [each for each in found if each is not None]

    def of(self, client: str, config: str | None = None) -> list[Receipt]:
        """Gives the receipts of one client, or of one of its files."""
        return [each for each in self.all() if each.client == client and config in {None, each.config}]

    def heir(self, receipt: Receipt, grant: Grant) -> Receipt | None:
        """Gives another connection that the person agreed to with just that grant, so that it must stay."""
        others = (each for each in self.all() if each.stem != receipt.stem)
        return next((each for each in others if each.agreed == grant), None)

    def save(self, receipt: Receipt) -> None:
        """Keeps a receipt in the place of an earlier one, and returns when it is on the disk."""
        data = json.dumps(asdict(receipt), ensure_ascii=True, indent=2).encode()
        self._make(self.folder)
        durable.write(self.folder / f"{receipt.stem}.json", data)

    def drop(self, receipt: Receipt) -> None:
        """Forgets a receipt."""
        (self.folder / f"{receipt.stem}.json").unlink(missing_ok=True)

    def back_up(self, stem: str, data: bytes) -> Path:
        """Keeps the bytes of a configuration file; gives where. The oldest of more than three go."""
        folder = self.folder / "backups"
        self._make(folder)
        kept = sorted(folder.glob(f"{stem}.*"))
        number = int(kept[-1].suffix[1:]) + 1 if kept else 1
        path = folder / f"{stem}.{number:06}"
        durable.write(path, data)
        for old in kept[: len(kept) + 1 - BACKUPS_KEPT]:
            old.unlink(missing_ok=True)
        return path

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other connects of this vault out. Raises `Conflict` (`connect.busy`)."""
        self._make(self.folder)
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Conflict(
                "connect.busy", "another `pcpd connect` is at work on this vault", hint="try again"
            ) from None
        finally:
            os.close(handle)

    def _make(self, folder: Path) -> None:
        for each in (self.folder, folder):
            each.mkdir(mode=0o700, exist_ok=True)


def _read(path: Path) -> Receipt | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        said = json.loads(path.read_bytes())
        said["trace"] = Trace(**said["trace"])
        rows = {name: tuple(said.get(name, ())) for name in ("tokens", "grants", "made_folders")}
        return Receipt(**{**said, **rows})
    return None
