"""How a vault begins: `initialise` makes a folder a vault, `open_memory` opens the media of one that is owned."""

import os
import pwd
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pcpd import durable
from pcpd.access.access_file import AccessFile
from pcpd.errors import Invalid, PcpError, Usage
from pcpd.history.repository import Repository
from pcpd.index.store import Index
from pcpd.ledger import audit, keys, trail
from pcpd.ledger.audit import AuditRow, Filter
from pcpd.ledger.ledger import Ledger
from pcpd.memory import doctor
from pcpd.memory.account import account_for_lost
from pcpd.memory.identity import CONTEXT_FILE, read_context
from pcpd.memory.memory import ATTACHMENT_LIMIT, Clock, Media, Memory, Place
from pcpd.memory.policy_seen import note_policy
from pcpd.memory.quotas import HOUR, Limits
from pcpd.pages.ids import new_context_id
from pcpd.policy.context import Context, Member, Partition, render_context, set_id
from pcpd.vault.files import Files

FEATURES = ("review",)
RESET = "the index was damaged or of another version, and was made anew from the pages; nothing is lost"

MOST_RECALLED = 50_000
"""Audit rows that are looked at for what agents did within the last hour."""


@dataclass(frozen=True, slots=True)
class World:
    """What comes from outside: the clocks, and the environment that git may see."""

    clock: Clock
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Begun:
    """What `initialise` did: the context, whether it was made now, and what to know about the history."""

    context: Context
    created: bool
    history: str


def initialise(
    root: Path,
    world: World,
    entropy: bytes,
    *,
    features: Sequence[str] = FEATURES,
    new_id: bool = False,
) -> Begun:
    """Makes a folder a vault: its context, and a repository unless there is one. What is there already stays.

    `new_id` gives an existing vault an id of its own, and with it state without grants and tokens. Raises
    `Usage` for a folder that cannot be one, `Invalid` when it has a context that cannot be read.
    """
    if root.exists() and not root.is_dir():
        raise Usage("vault.not-a-folder", f"{root} is a file", hint="name a folder")
    root.mkdir(parents=True, exist_ok=True)
    file = root / CONTEXT_FILE
    created = not file.exists()
    if created:
        file.parent.mkdir(exist_ok=True)
        durable.write(file, render_context(_first_context(world.clock, entropy, features)), mode=0o644)
    elif new_id:
        context_id = new_context_id(world.clock.now(), entropy)
        durable.write(file, set_id(file.read_bytes(), context_id), mode=0o644)
    context = read_context(root)
    return Begun(context, created, _begin_history(root, context.id, world))


def open_memory(
    place: Place,
    context: Context,
    world: World,
    *,
    attachment_limit: int = ATTACHMENT_LIMIT,
    limits: Limits | None = None,
) -> Memory:
    """Opens the media of a vault whose lock the caller holds. Where no history can be kept, `status` tells why.

    Raises `Broken` when state cannot be kept where it is, such as on a network file system.
    """
    for folder in (place.state, place.config):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _refuse_network(place.state)
    doctor.clear(place.state)
    clock = world.clock
    ledger = Ledger.open(place.state, clock.now)
    device = keys.get_or_create(ledger, "device")[:4].hex()
    history, why = _open_history(place.root, context.id, device, world)
    media = Media(
        Files(place.root, clock.now), Index.open(place.state), history, ledger, AccessFile(place.config)
    )
    memory = Memory(place, media, context, clock, attachment_limit=attachment_limit)
    memory.health.notice("history", why)
    memory.health.notice("index-reset", RESET if media.index.was_reset else None)

    def reopen_history() -> None:
        # The old one is not closed: a commit may be under way in it, and fails or finishes by itself.
        memory.history, why = _open_history(place.root, context.id, device, world)
        memory.health.notice("history", why)

    memory.reopen_history = reopen_history
    memory.on_policy = partial(note_policy, memory)
    account_for_lost(memory)
    memory.quotas.limits = limits or Limits()
    memory.quotas.recall(_last_hour(ledger))
    return memory


def _last_hour(ledger: Ledger) -> list[AuditRow]:
    """Gives the audit rows of the last hour, oldest first, as far as the newest of them go."""
    _, end = trail.end(ledger)
    wanted = Filter(since=ledger.stamp(-HOUR))
    return audit.rows(ledger, wanted, after=max(0, end - MOST_RECALLED), limit=MOST_RECALLED)


def _refuse_network(folder: Path) -> None:
    kind = durable.network_filesystem(folder)
    if kind is not None:
        raise Invalid(
            "state.network",
            f"the state folder {folder} lies on a network file system ({kind}), where SQLite loses data",
            hint="set XDG_STATE_HOME to a folder on a local disk",
        )


def _first_context(clock: Clock, entropy: bytes, features: Sequence[str]) -> Context:
    controller = f"human:{_login()}"
    return Context(
        id=new_context_id(clock.now(), entropy),
        version="0.3",
        controller=controller,
        features=tuple(features),
        principals=(Member(controller, "controller"),),
        partitions=(Partition("personal", "Everything by default", default=True),),
    )


def _login() -> str:
    """Gives the person's login as the name of a principal, or `me` where it has none that fits."""
    try:
        login = pwd.getpwuid(os.getuid()).pw_name.lower()
    except KeyError:
        return "me"
    return re.sub(r"[^a-z0-9._-]+", "-", login).strip("-.") or "me"


def _begin_history(root: Path, context_id: str, world: World) -> str:
    history, why = _open_history(root, context_id, "init", world)
    if history is not None:
        history.close()
    return why


def _open_history(root: Path, context_id: str, device: str, world: World) -> tuple[Repository | None, str]:
    try:
        history = Repository.open(
            root,
            context_id=context_id,
            device=device,
            create=True,
            environment=world.environment,
            clock=lambda: world.clock.now_ns() / 1e9,
        )
    except PcpError as error:
        return None, f"no history is kept: {error.message}"
    return history, ""
