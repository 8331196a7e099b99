"""The model of `.pcp/context.yaml`: what the context is called, who is in it, how pages are classed.

The file comes with the vault, so also by `git pull` from others: it never gives a right (see `grants`), and
its bytes are hostile. Keys that are not known here are left alone and stay on every edit.
"""

import json
import re
from dataclasses import dataclass, replace

from pcpd.errors import Invalid
from pcpd.policy import lists, principals
from pcpd.policy.strict_yaml import Checker, Findings, compose, one_of, shown

ROLES = ("controller", "curator", "agent", "member")
STATUSES = ("active", "removed")
FORMAT_VERSION = "0.3"
FILE = ".pcp/context.yaml"

_ID = re.compile(r"ctx_[0-9]{1,12}_[0-9a-f]{8}", re.ASCII)
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
# Words that a parser of YAML 1.1 or 1.2 takes for something else than a string.
_NOT_STRINGS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_PLAIN = re.compile(r"[A-Za-z]([A-Za-z0-9_./:-]*[A-Za-z0-9_])?", re.ASCII)
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){1,2}", re.ASCII)


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
        """The partition of a page that names none: the one marked default, the first, or `personal`."""
        marked = [partition.name for partition in self.partitions if partition.default]
        listed = [partition.name for partition in self.partitions]
        return (marked or listed or ["personal"])[0]


def parse_context(data: bytes) -> Context:
    """Gives what the bytes of a context.yaml say. Raises `Invalid` (`context.invalid`) with all problems."""
    findings = Findings("context.invalid", FILE)
    root = compose(data, findings)
    if root is None:
        raise findings.stop(1, "is empty; it needs at least `id` and `controller`")
    top = Checker(root, "", findings)
    context = Context(
        id=top.text("id", _id_problem, required=True) or "",
        version=top.text("version", _version_problem) or FORMAT_VERSION,
        controller=top.text("controller", principals.problem_of, required=True) or "",
        features=top.texts("features", slug_problem),
        principals=_members(top, findings),
        partitions=_partitions(top, findings),
        profile=_profile(top),
    )
    findings.check()
    return context


def render_context(context: Context) -> bytes:
    """Gives a new context.yaml that reads back as `context`."""
    lines = [
        f"id: {context.id}",
        f"version: {spelled(context.version)}",
        f"controller: {spelled(context.controller)}",
        f"features: [{', '.join(map(spelled, context.features))}]",
        "principals:" if context.principals else "principals: []",
        *(f"  - {_member_item(member)}" for member in context.principals),
        "partitions:" if context.partitions else "partitions: []",
        *(f"  - {_partition_item(partition)}" for partition in context.partitions),
    ]
    if context.profile is not None:
        lines.append(f"profile: {spelled(context.profile)}")
    return ("\n".join(lines) + "\n").encode()


def add_principal(data: bytes, principal: str, role: str) -> bytes:
    """Gives the file with a principal added at the end of `principals`; every other byte stays.

    One that is listed already leaves the file as it is, also where its status is `removed`: taking somebody
    back is the person's own edit. Raises `Invalid` when the file, the principal or the role is wrong.
    """
    before = parse_context(data)
    principals.check_principal(principal)
    problem = one_of(*ROLES)(role)
    if problem:
        raise Invalid("context.role", f"the role {problem}", hint="agents are added as agent")
    if any(member.id == principal for member in before.principals):
        return data
    member = Member(principal, role)
    after = lists.append_item(data, "principals", _member_item(member))
    wanted = (*before.principals, member)
    if after is None or not _reads_as(after, replace(before, principals=wanted)):
        raise Invalid(
            "context.layout",
            f"{FILE}: {principal} cannot be added without touching other lines of `principals`",
            hint=f"add this line to `principals` yourself: - {_member_item(member)}",
        )
    return after


def set_id(data: bytes, context_id: str) -> bytes:
    """Gives the file with another id; every other byte stays. Raises `Invalid` when it is wrong."""
    before = parse_context(data)
    line = rb"(?m)^(id[ \t]*:[ \t]*)[^\s#]+"
    after = re.sub(line, lambda match: match[1] + context_id.encode(), data, count=1)
    if not _reads_as(after, replace(before, id=context_id)):
        raise Invalid(
            "context.layout",
            f"{FILE}: the id cannot be changed without touching more",
            hint="edit it by hand",
        )
    return after


def slug_problem(text: str) -> str | None:
    """Says what is wrong with the name of a partition or a feature."""
    if _SLUG.fullmatch(text):
        return None
    return f"{shown(text)} must be 1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit"


def spelled(text: str) -> str:
    """Gives a YAML scalar that every parser reads back as the string `text`: plain where that is plain."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_STRINGS:
        return text
    inner = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else _escaped(char) for char in inner)


def _reads_as(data: bytes, wanted: Context) -> bool:
    try:
        return parse_context(data) == wanted
    except Invalid:
        return False


def _escaped(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _member_item(member: Member) -> str:
    status = "" if member.status == "active" else f", status: {member.status}"
    return f"{{id: {spelled(member.id)}, role: {member.role}{status}}}"


def _partition_item(partition: Partition) -> str:
    description = f", description: {spelled(partition.description)}" if partition.description else ""
    default = ", default: true" if partition.default else ""
    return f"{{name: {spelled(partition.name)}{description}{default}}}"


def _members(top: Checker, findings: Findings) -> tuple[Member, ...]:
    members: dict[str, Member] = {}
    for item in top.items("principals"):
        entry = Checker(item.node, item.section, findings)
        name = entry.text("id", principals.problem_of, required=True)
        role = entry.text("role", one_of(*ROLES), required=True)
        status = entry.text("status", one_of(*STATUSES)) or "active"
        if name in members:
            entry.wrong(item, f"{name} is listed twice")
        elif name and role:
            members[name] = Member(name, role, status)
    return tuple(members.values())


def _partitions(top: Checker, findings: Findings) -> tuple[Partition, ...]:
    partitions: dict[str, Partition] = {}
    for item in top.items("partitions"):
        entry = Checker(item.node, item.section, findings)
        name = entry.text("name", slug_problem, required=True)
        description = entry.text("description") or ""
        default = entry.flag("default")
        if default and any(other.default for other in partitions.values()):
            entry.wrong(item, "is a second partition marked default")
        if name in partitions:
            entry.wrong(item, f"{name} is listed twice")
        elif name:
            partitions[name] = Partition(name, description, default)
    return tuple(partitions.values())


def _profile(top: Checker) -> str | None:
    text = top.text("profile", _profile_problem)
    return None if text is None else text.removesuffix("/").removesuffix(".md")


def _id_problem(text: str) -> str | None:
    # The id names folders on this device: nothing but this form may come near a path.
    return None if _ID.fullmatch(text) else f"{shown(text)} must look like ctx_1763000000_a3f2b1c4"


def _version_problem(text: str) -> str | None:
    return None if _VERSION.fullmatch(text) else f'{shown(text)} must look like "{FORMAT_VERSION}"'


def _profile_problem(text: str) -> str | None:
    segments = text.removesuffix("/").removesuffix(".md").split("/")
    if "\0" in text or any(segment in {"", ".", ".."} for segment in segments):
        return f"{shown(text)} is no path of a page or folder inside the vault"
    return None
