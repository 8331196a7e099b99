"""The model of `.pcp/context.yaml`: what the context is called, who is in it, how pages are classed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """A principal that the context lists. `role`: controller, curator, agent or member."""

    id: str
    role: str
    status: str = "active"


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the vault that consent is given for."""

    name: str
    description: str = ""
    default: bool = False


@dataclass(frozen=True, slots=True)
class Context:
    """What context.yaml says. Source: pages.md §4."""

    id: str
    version: str
    controller: str
    features: tuple[str, ...] = ()
    principals: tuple[Member, ...] = ()
    partitions: tuple[Partition, ...] = ()
    profile: str | None = None

    @property
    def default_partition(self) -> str:
        """The partition of a page that names none: the one marked default, else the first, else `personal`."""
        marked = [partition.name for partition in self.partitions if partition.default]
        listed = [partition.name for partition in self.partitions]
        return (marked or listed or ["personal"])[0]
