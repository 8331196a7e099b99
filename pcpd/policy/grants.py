"""The model of access.yaml: who may do what, where; nothing else is allowed."""

from dataclasses import dataclass
from datetime import datetime

RIGHTS = ("read", "propose", "write", "review", "forget", "record")
CATEGORIES = ("semantic", "episodic", "procedural", "profile", "conversation")


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of access.yaml. `sensitivity: sensitive` covers both values; `until` is exclusive."""

    principal: str
    partitions: tuple[str, ...]
    categories: tuple[str, ...]
    rights: tuple[str, ...]
    sensitivity: str = "normal"
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """All grants in force. Empty: nobody but the controller sees anything."""

    grants: tuple[Grant, ...] = ()
